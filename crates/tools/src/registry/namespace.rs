//! Namespaces: a group that is offered as one tool with the arguments `{action, args}`.
//!
//! The schema of `args` is any of the actions' own schemas, where the target takes that, so that the model is still
//! bound to real parameters; each action is described from its JSON Schema. References inside a schema are moved with
//! it; where that cannot be done, and for targets that take no alternatives, `args` is any object and the description
//! alone tells. Arguments are checked against the action's own schema in either case.
//!
//! Not here: what a call of it means ([`crate::calls::resolve`]).

use std::fmt::Write as _;

use contexture_ir::{Fields, FunctionTool, Raw, quote_json};
use serde::{Deserialize, Serialize};

use crate::registry::RegistryEntry;
use crate::registry::tool::ToolGroup;
use crate::schema::{SchemaPosition, member_position};
use contexture_ir::truncate_chars;

/// The argument that names the tool that is meant.
pub(crate) const ACTION: &str = "action";
/// The argument that holds that tool's arguments.
pub(crate) const ARGUMENTS: &str = "args";

const ANY_OBJECT: &str = "{\"type\":\"object\"}";
/// Of a word in a description this many characters are shown.
const WORD: usize = 120;
/// How deep types are described.
const TYPE_DEPTH: usize = 3;

/// How the schema of a namespace's arguments is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgsSchema {
    /// Any of the actions' schemas (`anyOf`).
    #[default]
    AnyOf,
    /// One schema that any object fits.
    Flat,
}

/// The tool that stands for these actions of a group.
pub(crate) fn namespace_tool<'e>(
    group: &ToolGroup,
    actions: impl Iterator<Item = &'e RegistryEntry> + Clone,
    style: ArgsSchema,
) -> FunctionTool {
    let names: Vec<String> = actions
        .clone()
        .map(|action| quote_json(action.id.name.as_str()))
        .collect();
    // Written in canonical form by hand: keys sorted, no white space. These bytes stand in the cached prefix.
    let schema = format!(
        "{{\"additionalProperties\":false,\"properties\":{{\"{ACTION}\":{{\"enum\":[{}],\"type\":\"string\"}},\
         \"{ARGUMENTS}\":{}}},\"required\":[\"{ACTION}\",\"{ARGUMENTS}\"],\"type\":\"object\"}}",
        names.join(","),
        arguments_schema(actions.clone(), style)
    );
    FunctionTool {
        name: group.name.as_str().to_owned(),
        description: Some(namespace_description(group, actions)),
        parameters: Raw::parse(schema).ok(),
        ..FunctionTool::default()
    }
}

fn arguments_schema<'e>(
    actions: impl Iterator<Item = &'e RegistryEntry>,
    style: ArgsSchema,
) -> String {
    // Some targets refuse alternatives; the description then carries the parameters alone.
    if style == ArgsSchema::Flat {
        return ANY_OBJECT.to_owned();
    }
    let schema = |entry: &'e RegistryEntry| {
        let function = entry.tool.as_function()?;
        function.parameters.as_ref().map(Raw::get)
    };
    let schemas: Vec<&str> = actions.map(|a| schema(a).unwrap_or(ANY_OBJECT)).collect();
    let base = format!("#/properties/{ARGUMENTS}");
    // One schema that cannot be moved makes the whole argument an open object: a partial `anyOf` would forbid
    // the action that is missing.
    let moved: Option<Vec<String>> = match schemas.as_slice() {
        [] => None,
        // A lone action needs no alternatives, which some models follow badly.
        [only] => move_references(only, &base).map(|schema| vec![schema]),
        several => several
            .iter()
            .enumerate()
            .map(|(at, schema)| move_references(schema, &format!("{base}/anyOf/{at}")))
            .collect(),
    };
    match moved.as_deref() {
        None => ANY_OBJECT.to_owned(),
        Some([only]) => only.clone(),
        Some(several) => format!("{{\"anyOf\":[{}]}}", several.join(",")),
    }
}

/// The schema as it reads at `base` of a larger one: `#/$defs/x` becomes `base/$defs/x`. `None` if it names places in
/// another way (`$id`, `$anchor`, …), for those would mean something else there.
fn move_references(schema: &str, base: &str) -> Option<String> {
    let mut out = String::with_capacity(schema.len() + 64);
    rewrite_references(schema, base, SchemaPosition::Schema, &mut out)?;
    Some(out)
}

/// Depth is bounded by the registry.
fn rewrite_references(
    text: &str,
    base: &str,
    place: SchemaPosition,
    out: &mut String,
) -> Option<()> {
    // Data may hold a member called `$ref` that refers to nothing.
    if place == SchemaPosition::Data {
        out.push_str(text);
        return Some(());
    }
    match text.as_bytes().first()? {
        b'[' => {
            let values: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).ok()?;
            out.push('[');
            for (index, value) in values.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                rewrite_references(value.get(), base, place, out)?;
            }
            out.push(']');
        }
        b'{' => {
            out.push('{');
            for (index, (key, value)) in Fields::parse(text).ok()?.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&quote_json(key));
                out.push(':');
                let value = value.get();
                match (place, key) {
                    (SchemaPosition::Schema, "$ref") => {
                        let reference: String = serde_json::from_str(value).ok()?;
                        // Only references within the schema can be moved. Others would point out of the tool.
                        let inner = reference.strip_prefix('#')?;
                        // A plain name after `#` is an anchor, whose place is not known here.
                        if !inner.is_empty() && !inner.starts_with('/') {
                            return None;
                        }
                        out.push_str(&quote_json(&format!("{base}{inner}")));
                    }
                    // These give a schema an address or a name of its own, which would clash or dangle inside a
                    // larger one.
                    (
                        SchemaPosition::Schema,
                        "$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor" | "$recursiveRef"
                        | "$recursiveAnchor",
                    ) => return None,
                    _ => rewrite_references(value, base, member_position(place, key), out)?,
                }
            }
            out.push('}');
        }
        _ => out.push_str(text),
    }
    Some(())
}

fn namespace_description<'e>(
    group: &ToolGroup,
    actions: impl Iterator<Item = &'e RegistryEntry>,
) -> String {
    // The group's own words first, then one block an action: models read the beginning best.
    let mut out = group.description.clone();
    if !out.is_empty() {
        out.push_str("\n\n");
    }
    out.push_str("`action` names one of these, `args` are its arguments:");
    for action in actions {
        let _ = write!(out, "\n- {}(", action.id.name);
        let function = action.tool.as_function();
        let schema = function.and_then(|function| function.parameters.as_ref());
        let parameters = schema.map(|schema| list_parameters(schema.get()));
        let parameters = parameters.unwrap_or_default();
        for (index, parameter) in parameters.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            // The mark of TypeScript for optional members, which models know.
            let mark = if parameter.required { "" } else { "?" };
            let _ = write!(out, "{comma}{}{mark}: {}", parameter.name, parameter.kind);
        }
        out.push(')');
        if let Some(text) = function.and_then(|function| function.description.as_deref()) {
            let _ = write!(out, ": {text}");
        }
        for parameter in parameters.iter().filter(|p| !p.description.is_empty()) {
            let _ = write!(out, "\n    {}: {}", parameter.name, parameter.description);
        }
    }
    out
}

struct Parameter {
    name: String,
    kind: String,
    description: String,
    required: bool,
}

/// The properties of an object schema, as a person would list them.
fn list_parameters(schema: &str) -> Vec<Parameter> {
    let Ok(fields) = Fields::parse(schema) else {
        return Vec::new();
    };
    let required = fields.get(&["required"]);
    let required: Vec<String> = required
        .and_then(|names| serde_json::from_str(names.get()).ok())
        .unwrap_or_default();
    let Some(Ok(properties)) = fields.get(&["properties"]).map(|p| Fields::parse(p.get())) else {
        return Vec::new();
    };
    let parameter = |(name, schema): (&str, &serde_json::value::RawValue)| Parameter {
        name: name.to_owned(),
        kind: type_summary(schema.get(), TYPE_DEPTH),
        description: string_field(schema.get(), "description").unwrap_or_default(),
        required: required.iter().any(|required| required == name),
    };
    properties.iter().map(parameter).collect()
}

fn string_field(schema: &str, key: &'static str) -> Option<String> {
    let fields = Fields::parse(schema).ok()?;
    serde_json::from_str(fields.get(&[key])?.get()).ok()
}

/// A schema's type in a few words: `string`, `integer[]`, `"a" | "b"`, `object`.
fn type_summary(schema: &str, depth: usize) -> String {
    // At the bound the type is `any`: a deep type in prose helps nobody.
    let (Some(depth), Ok(fields)) = (depth.checked_sub(1), Fields::parse(schema)) else {
        return "any".to_owned();
    };
    let list = |key: &'static str| -> Option<Vec<&serde_json::value::RawValue>> {
        serde_json::from_str(fields.get(&[key])?.get()).ok()
    };
    let joined = |kinds: Vec<String>| truncate_chars(&kinds.join(" | "), WORD);
    // From the most to the least specific: a constant says more than an enumeration, and that more than a type.
    if let Some(constant) = fields.get(&["const"]) {
        return truncate_chars(constant.get(), WORD);
    }
    if let Some(values) = list("enum") {
        return joined(values.iter().map(|value| value.get().to_owned()).collect());
    }
    // `oneOf` and `anyOf` differ for a validator, not for a reader.
    if let Some(kinds) = list("anyOf").or_else(|| list("oneOf")) {
        return joined(
            kinds
                .iter()
                .map(|one| type_summary(one.get(), depth))
                .collect(),
        );
    }
    // The last segment of the reference is the name that the schema's author gave the type.
    if let Some(reference) = string_field(schema, "$ref") {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return truncate_chars(name, WORD);
    }
    match fields.get(&["type"]).map(|kind| kind.get()) {
        Some("\"array\"") => match fields.get(&["items"]) {
            Some(items) => format!("{}[]", type_summary(items.get(), depth)),
            None => "array".to_owned(),
        },
        Some(one) if one.starts_with('"') => string_field(schema, "type").unwrap_or_default(),
        // A list of types, such as `["string", "null"]`.
        Some(_) => joined(
            list("type")
                .unwrap_or_default()
                .iter()
                .map(|kind| kind.get().trim_matches('"').to_owned())
                .collect(),
        ),
        None => "any".to_owned(),
    }
}
