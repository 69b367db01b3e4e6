//! Serialised fragments: `{"type": "guardrail", "rule": …}` and back.
//!
//! Nineteen kinds are built in, the table `KINDS` of `builtin_types.rs`: a new builder needs a row there. An application
//! registers its own in a [`FragmentRegistry`], which is asked first. The serialised form is about content: id,
//! metadata and `persist` are not in it ([`Fragment::to_json`] has them).
//!
//! The items of `policies` may be serialised fragments themselves, at any depth.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::fragment::builtin_types::{
    Field, FieldType, FragmentKind, FragmentShape, builtin_kind, is_empty,
};
use crate::fragment::convert::object;
use crate::fragment::error::FragmentError;
use crate::fragment::json::json_type_name;
use crate::fragment::tree::{Fragment, FragmentData, MAX_DEPTH};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A serialised type that an application defines.
pub trait FragmentType: fmt::Debug + Send + Sync {
    /// The serialised form of a fragment, or `None` if the fragment is not of this type.
    fn serialize(&self, fragment: &Fragment) -> Result<Option<Value>, BoxError>;

    /// The fragment of a serialised form, `type` included.
    fn deserialize(&self, document: &Map<String, Value>) -> Result<Fragment, BoxError>;
}

/// Serialised types by name. They are asked in the order of registration and before the built-in
/// ones, so a built-in type can be replaced.
#[derive(Clone, Debug, Default)]
pub struct FragmentRegistry {
    types: IndexMap<String, Arc<dyn FragmentType>>,
}

impl FragmentRegistry {
    /// A registry of the built-in types only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same registry with one more type. A name registered again keeps its place.
    #[must_use]
    pub fn with_type(
        mut self,
        kind: impl Into<String>,
        definition: impl FragmentType + 'static,
    ) -> Self {
        self.types.insert(kind.into(), Arc::new(definition));
        self
    }
}

/// The serialised form of a fragment.
///
/// Fails on a message, on a fragment that neither a registered nor a built-in type describes, and on
/// a tree deeper than [`MAX_DEPTH`].
pub fn to_serialized(
    fragment: &Fragment,
    registry: &FragmentRegistry,
) -> Result<Value, FragmentError> {
    // Once, before the descent: what a fragment holds is no deeper than the fragment.
    if fragment.is_deeper_than(MAX_DEPTH) {
        return Err(FragmentError::TooDeep);
    }
    serialize_fragment(fragment, registry)
}

/// The fragment of a serialised form.
///
/// Fails on an unknown `type`, on a missing or unknown field, and on one of the wrong type.
pub fn from_serialized(
    document: &Value,
    registry: &FragmentRegistry,
) -> Result<Fragment, FragmentError> {
    deserialize_fragment(document, registry, MAX_DEPTH)
}

fn serialize_fragment(
    fragment: &Fragment,
    registry: &FragmentRegistry,
) -> Result<Value, FragmentError> {
    let Some(data) = fragment.data() else {
        return Err(FragmentError::Message {
            name: fragment.name.clone(),
        });
    };
    // In the order of registration, and before the built-in types, so that an application can replace one.
    for (name, definition) in &registry.types {
        let serialized =
            definition
                .serialize(fragment)
                .map_err(|source| FragmentError::Registered {
                    kind: name.clone(),
                    source,
                })?;
        if let Some(value) = serialized {
            return Ok(value);
        }
    }
    let Some(kind) = builtin_kind(&fragment.name) else {
        return Err(FragmentError::UnsupportedName {
            name: fragment.name.clone(),
        });
    };
    let mut document = Map::new();
    document.insert("type".to_owned(), Value::String(kind.name.to_owned()));
    match &kind.shape {
        FragmentShape::Text(field) if data.is_primitive() => {
            document.insert((*field).to_owned(), data.to_json()?);
        }
        FragmentShape::Fields(fields) => write_fields(kind, fields, data, registry, &mut document)?,
        FragmentShape::Entries => {
            document.insert("entries".to_owned(), entries_to_json(kind, data)?);
        }
        // A text type over a list or an object has no serialised form. The guard of the first arm lets it fall
        // through to here.
        FragmentShape::Text(_) => return Err(shape_error(kind)),
    }
    Ok(Value::Object(document))
}

fn write_fields(
    kind: &FragmentKind,
    fields: &[Field],
    data: &FragmentData,
    registry: &FragmentRegistry,
    document: &mut Map<String, Value>,
) -> Result<(), FragmentError> {
    let FragmentData::Object(entries) = data else {
        return Err(shape_error(kind));
    };
    // Before the fields are written: a serialised form without this key would come back as another fragment.
    if let Some(stray) = entries
        .keys()
        .find(|key| fields.iter().all(|field| field.name != key.as_str()))
    {
        return Err(FragmentError::UnexpectedField {
            kind: kind.name.to_owned(),
            field: stray.clone(),
        });
    }
    for field in fields {
        match entries.get(field.name) {
            Some(value) if matches_field_type(field, value) => {
                document.insert(field.name.to_owned(), value_to_json(value, registry)?);
            }
            // Optional and empty: left out, as the builders leave it out.
            None | Some(FragmentData::Null) if field.optional => {}
            _ => return Err(shape_error(kind)),
        }
    }
    Ok(())
}

fn matches_field_type(field: &Field, value: &FragmentData) -> bool {
    match (field.field_type, value) {
        (FieldType::Text, value) => value.is_primitive(),
        (FieldType::Texts, FragmentData::Array(items)) => {
            items.iter().all(FragmentData::is_primitive)
        }
        (FieldType::Data, FragmentData::Array(_)) => true,
        _ => false,
    }
}

/// Data as JSON in which fragments are in their serialised form.
fn value_to_json(data: &FragmentData, registry: &FragmentRegistry) -> Result<Value, FragmentError> {
    match data {
        FragmentData::Fragment(inner) => serialize_fragment(inner, registry),
        FragmentData::Array(items) => items
            .iter()
            .map(|item| value_to_json(item, registry))
            .collect(),
        FragmentData::Object(entries) => entries
            .iter()
            .map(|(key, value)| Ok((key.clone(), value_to_json(value, registry)?)))
            .collect::<Result<Map<_, _>, _>>()
            .map(Value::Object),
        other => other.to_json(),
    }
}

fn entries_to_json(kind: &FragmentKind, data: &FragmentData) -> Result<Value, FragmentError> {
    let FragmentData::Array(items) = data else {
        return Err(shape_error(kind));
    };
    let mut entries = Map::new();
    for item in items {
        let FragmentData::Object(entry) = item else {
            return Err(shape_error(kind));
        };
        match (entry.get("term"), entry.get("expression"), entry.len()) {
            (Some(FragmentData::Text(term)), Some(expression), 2) if expression.is_primitive() => {
                // Two entries with one term would be one key of the object, and one expression would be lost.
                if entries
                    .insert(term.clone(), expression.to_json()?)
                    .is_some()
                {
                    return Err(shape_error(kind));
                }
            }
            _ => return Err(shape_error(kind)),
        }
    }
    Ok(Value::Object(entries))
}

fn deserialize_fragment(
    document: &Value,
    registry: &FragmentRegistry,
    depth_left: usize,
) -> Result<Fragment, FragmentError> {
    let not_one = || FragmentError::NotAFragment {
        found: json_type_name(document).to_owned(),
    };
    let map = document.as_object().ok_or_else(not_one)?;
    let name = map
        .get("type")
        .and_then(Value::as_str)
        .ok_or_else(not_one)?;
    // These names are reserved for messages and never looked up, even if an application registered a type of
    // that name.
    if matches!(name, "user" | "assistant" | "message") {
        return Err(FragmentError::Message {
            name: name.to_owned(),
        });
    }
    // Registered types first, as in writing: otherwise a replaced built-in type would be read by the wrong
    // reader.
    if let Some(definition) = registry.types.get(name) {
        return definition
            .deserialize(map)
            .map_err(|source| FragmentError::Registered {
                kind: name.to_owned(),
                source,
            });
    }
    let Some(kind) = builtin_kind(name) else {
        return Err(FragmentError::UnsupportedType {
            kind: name.to_owned(),
        });
    };
    // Strict on purpose. A misspelt field that was ignored would be an instruction that the model never sees.
    reject_unknown_fields(kind, map)?;
    let data = match &kind.shape {
        FragmentShape::Text(field) => text_field(kind, field, map)?,
        FragmentShape::Fields(fields) => read_fields(kind, fields, map, registry, depth_left)?,
        FragmentShape::Entries => read_entries(kind, map)?,
    };
    Ok(Fragment::new(kind.name, data))
}

fn reject_unknown_fields(
    kind: &FragmentKind,
    map: &Map<String, Value>,
) -> Result<(), FragmentError> {
    let known = |key: &str| match &kind.shape {
        FragmentShape::Text(field) => key == *field,
        FragmentShape::Fields(fields) => fields.iter().any(|field| field.name == key),
        FragmentShape::Entries => key == "entries",
    };
    match map.keys().find(|key| *key != "type" && !known(key)) {
        Some(field) => Err(FragmentError::UnexpectedField {
            kind: kind.name.to_owned(),
            field: field.clone(),
        }),
        None => Ok(()),
    }
}

fn text_field(
    kind: &FragmentKind,
    field: &str,
    map: &Map<String, Value>,
) -> Result<FragmentData, FragmentError> {
    match map.get(field) {
        None | Some(Value::Null) => Err(missing_field(kind, field)),
        Some(value) => text_value(kind, field, value),
    }
}

fn read_fields(
    kind: &FragmentKind,
    fields: &[Field],
    map: &Map<String, Value>,
    registry: &FragmentRegistry,
    depth_left: usize,
) -> Result<FragmentData, FragmentError> {
    let mut entries = IndexMap::with_capacity(fields.len());
    for field in fields {
        let value = match (map.get(field.name), field.field_type) {
            (None | Some(Value::Null), _) if field.optional => continue,
            (None | Some(Value::Null), _) => return Err(missing_field(kind, field.name)),
            (Some(value), FieldType::Text) => text_value(kind, field.name, value)?,
            (Some(Value::Array(items)), FieldType::Texts) => items
                .iter()
                .map(|item| text_value(kind, field.name, item))
                .collect::<Result<Vec<_>, _>>()?
                .into(),
            (Some(Value::Array(items)), FieldType::Data) => {
                // An array and the object around it are two levels of the tree that the builder would make.
                let below = depth_left.checked_sub(2).ok_or(FragmentError::TooDeep)?;
                items
                    .iter()
                    .map(|item| deserialize_data(item, registry, below))
                    .collect::<Result<Vec<_>, _>>()?
                    .into()
            }
            (Some(other), _) => return Err(field_type_error(kind, field.name, "an array", other)),
        };
        // Explicitly empty and absent are one, so that a document read and written again has one form.
        if !(field.optional && is_empty(&value)) {
            entries.insert(field.name, value);
        }
    }
    Ok(object(entries))
}

/// Data in which every object with a string `type` is a serialised fragment.
fn deserialize_data(
    value: &Value,
    registry: &FragmentRegistry,
    depth_left: usize,
) -> Result<FragmentData, FragmentError> {
    let below = || depth_left.checked_sub(1).ok_or(FragmentError::TooDeep);
    match value {
        // Only a string `type` marks a serialised fragment; data may well have a `type` of its own that is a
        // number.
        Value::Object(map) if map.get("type").is_some_and(Value::is_string) => {
            Ok(deserialize_fragment(value, registry, below()?)?.into())
        }
        Value::Object(map) => {
            let below = below()?;
            map.iter()
                .map(|(key, value)| Ok((key.clone(), deserialize_data(value, registry, below)?)))
                .collect::<Result<IndexMap<_, _>, _>>()
                .map(FragmentData::Object)
        }
        Value::Array(items) => {
            let below = below()?;
            items
                .iter()
                .map(|item| deserialize_data(item, registry, below))
                .collect::<Result<Vec<_>, _>>()
                .map(FragmentData::Array)
        }
        // Scalars cannot fail to convert; depth was accounted for by the containers around them.
        other => FragmentData::try_from(other.clone()),
    }
}

fn read_entries(
    kind: &FragmentKind,
    map: &Map<String, Value>,
) -> Result<FragmentData, FragmentError> {
    let entries = match map.get("entries") {
        None | Some(Value::Null) => return Err(missing_field(kind, "entries")),
        Some(Value::Object(entries)) => entries,
        Some(other) => return Err(field_type_error(kind, "entries", "an object", other)),
    };
    entries
        .iter()
        .map(|(term, expression)| {
            let expression = text_value(kind, "entries", expression)?;
            Ok(object([
                ("term", FragmentData::from(term.as_str())),
                ("expression", expression),
            ]))
        })
        .collect::<Result<Vec<_>, _>>()
        .map(FragmentData::Array)
}

fn text_value(
    kind: &FragmentKind,
    field: &str,
    value: &Value,
) -> Result<FragmentData, FragmentError> {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => {
            FragmentData::try_from(value.clone())
        }
        other => Err(field_type_error(kind, field, "a text", other)),
    }
}

fn missing_field(kind: &FragmentKind, field: &str) -> FragmentError {
    FragmentError::MissingField {
        kind: kind.name.to_owned(),
        field: field.to_owned(),
    }
}

fn field_type_error(
    kind: &FragmentKind,
    field: &str,
    expected: &'static str,
    found: &Value,
) -> FragmentError {
    FragmentError::Field {
        kind: kind.name.to_owned(),
        field: field.to_owned(),
        expected,
        found: json_type_name(found).to_owned(),
    }
}

fn shape_error(kind: &FragmentKind) -> FragmentError {
    let expected = match &kind.shape {
        FragmentShape::Text(_) => "a text".to_owned(),
        FragmentShape::Entries => "a list of {term, expression}, each term once".to_owned(),
        FragmentShape::Fields(fields) => {
            let names = fields
                .iter()
                .map(|field| format!("{}{}", field.name, if field.optional { "?" } else { "" }));
            format!("an object of {}", names.collect::<Vec<_>>().join(", "))
        }
    };
    FragmentError::Shape {
        name: kind.name.to_owned(),
        expected,
    }
}
