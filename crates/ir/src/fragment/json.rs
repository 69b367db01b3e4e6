//! Fragments and their data as JSON, both ways.
//!
//! Inside data, an object with a string `name` and a key `data` **is a fragment**, as it is for the
//! programs that share this format, provided it has no other keys than those of a fragment: `id`
//! (string), `metadata`, `persist` (boolean), `type` (`"fragment"`). One more key, and it is an
//! ordinary object: nothing of it may be lost.
//!
//! A number is read as an integer of up to 64 bits, else as the nearest float. A key that stands
//! twice keeps its first place and its last value.

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::error::FragmentError;
use super::tree::{Body, Fragment, FragmentData, MAX_DEPTH};
use crate::raw::Raw;

impl FragmentData {
    /// Reads JSON text; keys keep their order.
    pub fn from_json(text: &str) -> Result<Self, FragmentError> {
        Self::try_from(parse_json(text)?)
    }

    /// A value as data and nothing else: an object that looks like a fragment stays an object with its keys. For
    /// values that were never meant to hold fragments, such as an application's state.
    ///
    /// Fails on a tree deeper than [`MAX_DEPTH`].
    ///
    /// ```
    /// use contexture_ir::FragmentData;
    ///
    /// let person = serde_json::json!({"name": "Ada", "data": "notes"});
    /// assert!(FragmentData::try_from(person.clone())?.is_fragment());
    /// assert!(FragmentData::literal_data(person)?.is_object());
    /// # Ok::<(), contexture_ir::FragmentError>(())
    /// ```
    pub fn literal_data(value: Value) -> Result<Self, FragmentError> {
        data_from_value(value, ObjectMode::Stay, 0)
    }

    /// The data as JSON. Fails on a tree deeper than [`MAX_DEPTH`] and on a message inside it.
    pub fn to_json(&self) -> Result<Value, FragmentError> {
        data_to_value(self, 0)
    }
}

impl Fragment {
    /// Reads `{"name", "data", "id"?, "metadata"?, "persist"?}`.
    pub fn from_json(text: &str) -> Result<Self, FragmentError> {
        Self::try_from(parse_json(text)?)
    }

    /// The fragment as `{"name", "data", …}`; `id`, `metadata` and `persist` only where they say
    /// something. [`Fragment::from_json`] gives the same fragment back.
    ///
    /// Fails on a message, and on a tree deeper than [`MAX_DEPTH`].
    pub fn to_json(&self) -> Result<Value, FragmentError> {
        fragment_to_value(self, 0)
    }
}

impl TryFrom<Value> for FragmentData {
    type Error = FragmentError;

    fn try_from(value: Value) -> Result<Self, FragmentError> {
        data_from_value(value, ObjectMode::MayBeFragments, 0)
    }
}

impl TryFrom<Value> for Fragment {
    type Error = FragmentError;

    fn try_from(value: Value) -> Result<Self, FragmentError> {
        match value {
            Value::Object(map) => fragment_from_map(map, 0),
            other => Err(FragmentError::NotAFragment {
                found: json_type_name(&other).to_owned(),
            }),
        }
    }
}

/// Parses JSON text; nesting beyond the parser's own limit is our error.
pub(super) fn parse_json(text: &str) -> Result<Value, FragmentError> {
    serde_json::from_str(text).map_err(|source| {
        // The parser refuses deep nesting with a plain syntax error. Only then is the text scanned again, so
        // that valid documents are read once.
        if nests_deeper(text, MAX_DEPTH - 1) {
            FragmentError::TooDeep
        } else {
            FragmentError::Json { source }
        }
    })
}

/// A word for a value's type, for messages.
pub(super) fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Reads one `{"name", "data", …}` whose data starts at `depth`.
pub(super) fn fragment_from_map(
    mut map: Map<String, Value>,
    depth: usize,
) -> Result<Fragment, FragmentError> {
    let name = match map.shift_remove("name") {
        Some(Value::String(name)) => name,
        Some(other) => return Err(field_type_error("fragment", "name", "a string", &other)),
        None => return Err(missing_field("fragment", "name")),
    };
    let kind = map.shift_remove("type");
    // A message has an id and parts that a serialised fragment cannot hold, so reading one as data would lose
    // them.
    if kind.as_ref().is_some_and(|kind| kind == "message") {
        return Err(FragmentError::Message { name });
    }
    // Programs that share this format write `"type": "fragment"` or leave the field out.
    if let Some(other) = kind.filter(|kind| !kind.is_null() && kind != "fragment") {
        return Err(field_type_error(
            &name,
            "type",
            "\"fragment\", or none",
            &other,
        ));
    }
    let Some(data) = map.shift_remove("data") else {
        return Err(missing_field(&name, "data"));
    };
    let id = match map.shift_remove("id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(other) => return Err(field_type_error(&name, "id", "a string", &other)),
    };
    // Absent means stored: an old document without the field keeps its meaning.
    let persist = match map.shift_remove("persist") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(persist)) => persist,
        Some(other) => return Err(field_type_error(&name, "persist", "a boolean", &other)),
    };
    let metadata = match map.shift_remove("metadata") {
        None | Some(Value::Null) => None,
        Some(value) => Raw::from_value(&value).ok(),
    };
    // Checked after every known field was taken: a field that we would drop is an error, never a silent loss.
    if let Some((field, _)) = map.into_iter().next() {
        return Err(FragmentError::UnexpectedField { kind: name, field });
    }
    let body = Body::Data(data_from_value(data, ObjectMode::MayBeFragments, depth)?);
    Ok(Fragment {
        id,
        name,
        body,
        metadata,
        persist,
    })
}

/// How an object that looks like a fragment is read.
#[derive(Clone, Copy)]
enum ObjectMode {
    MayBeFragments,
    Stay,
}

fn data_from_value(
    value: Value,
    objects: ObjectMode,
    depth: usize,
) -> Result<FragmentData, FragmentError> {
    Ok(match value {
        Value::Null => FragmentData::Null,
        Value::Bool(value) => FragmentData::Bool(value),
        Value::Number(number) => FragmentData::Number(number),
        Value::String(text) => FragmentData::Text(text),
        // Scalars are allowed at any depth; only containers make a level.
        Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => {
            return Err(FragmentError::TooDeep);
        }
        Value::Array(items) => FragmentData::Array(
            items
                .into_iter()
                .map(|item| data_from_value(item, objects, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        // Inside data a stray key decides: an object that is nearly a fragment stays an object, and nothing of
        // it is lost.
        Value::Object(map)
            if matches!(objects, ObjectMode::MayBeFragments) && is_fragment(&map) =>
        {
            FragmentData::Fragment(Box::new(fragment_from_map(map, depth + 1)?))
        }
        Value::Object(map) => FragmentData::Object(
            map.into_iter()
                .map(|(key, value)| Ok((key, data_from_value(value, objects, depth + 1)?)))
                .collect::<Result<IndexMap<_, _>, FragmentError>>()?,
        ),
    })
}

fn is_fragment(map: &Map<String, Value>) -> bool {
    map.contains_key("data")
        && map.get("name").is_some_and(Value::is_string)
        // The types are checked too. An object whose `id` is a number is somebody's data, not a fragment with a
        // fault.
        && map.iter().all(|(key, value)| match key.as_str() {
            "name" | "data" | "metadata" => true,
            "id" => value.is_string() || value.is_null(),
            "persist" => value.is_boolean() || value.is_null(),
            "type" => value == "fragment" || value.is_null(),
            _ => false,
        })
}

fn data_to_value(data: &FragmentData, depth: usize) -> Result<Value, FragmentError> {
    Ok(match data {
        FragmentData::Null => Value::Null,
        FragmentData::Bool(value) => Value::Bool(*value),
        FragmentData::Number(number) => Value::Number(number.clone()),
        FragmentData::Text(text) => Value::String(text.clone()),
        // Checked before descending, so that a hostile tree ends in an error and not in a stack overflow.
        FragmentData::Array(_) | FragmentData::Object(_) | FragmentData::Fragment(_)
            if depth >= MAX_DEPTH =>
        {
            return Err(FragmentError::TooDeep);
        }
        FragmentData::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| data_to_value(item, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        FragmentData::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, value)| Ok((key.clone(), data_to_value(value, depth + 1)?)))
                .collect::<Result<_, FragmentError>>()?,
        ),
        FragmentData::Fragment(inner) => fragment_to_value(inner, depth + 1)?,
    })
}

fn fragment_to_value(fragment: &Fragment, depth: usize) -> Result<Value, FragmentError> {
    let Body::Data(data) = &fragment.body else {
        return Err(FragmentError::Message {
            name: fragment.name.clone(),
        });
    };
    let mut map = Map::new();
    if let Some(id) = &fragment.id {
        map.insert("id".to_owned(), Value::String(id.clone()));
    }
    map.insert("name".to_owned(), Value::String(fragment.name.clone()));
    map.insert("data".to_owned(), data_to_value(data, depth)?);
    // Metadata that is not JSON any more cannot occur: `Raw` was checked when it was made.
    if let Some(metadata) = fragment
        .metadata
        .as_ref()
        .and_then(|raw| raw.parse_as::<Value>().ok())
    {
        map.insert("metadata".to_owned(), metadata);
    }
    // Only the exception is written, so that documents of stored fragments keep the bytes they always had.
    if !fragment.persist {
        map.insert("persist".to_owned(), Value::Bool(false));
    }
    Ok(Value::Object(map))
}

/// Whether brackets outside strings nest deeper than `limit`.
// Counts brackets and does not parse: it runs on text that the parser refused.
fn nests_deeper(text: &str, limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return true;
        }
    }
    false
}

fn missing_field(kind: &str, field: &str) -> FragmentError {
    FragmentError::MissingField {
        kind: kind.to_owned(),
        field: field.to_owned(),
    }
}

fn field_type_error(
    kind: &str,
    field: &str,
    expected: &'static str,
    found: &Value,
) -> FragmentError {
    FragmentError::Field {
        kind: kind.to_owned(),
        field: field.to_owned(),
        expected,
        found: json_type_name(found).to_owned(),
    }
}
