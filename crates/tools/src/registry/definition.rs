//! Definitions of tools, checked and put into one form.
//!
//! The definitions of tools stand first in a prompt, so each byte of them counts: equal definitions become equal
//! bytes. Keys are sorted, white space goes, numbers have one text ([`contexture_ir::canonical_json`]); the order of a
//! schema's properties is sorted too unless the tool keeps it.
//!
//! Not here: which names a provider takes; that differs by target and is decided where requests are written.

use std::collections::BTreeMap;

use contexture_ir::{Fields, FunctionTool, Raw, ToolDefinition, canonical_json, quote_json};

use crate::error::ToolError;
use crate::names::ToolId;
use crate::registry::tool::{PropertyOrder, Tool};
use contexture_ir::truncate_chars;

/// The longest name, in bytes. Providers take 64 to 128.
const NAME_BYTES: usize = 256;
/// The longest schema of one tool, in bytes.
pub(crate) const SCHEMA_BYTES: usize = 1 << 20;
/// The deepest nesting of a schema.
pub(crate) const SCHEMA_DEPTH: usize = 100;

/// Checks the name of a tool or group.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), ToolError> {
    // Control characters would break the lists in which names are shown to models and people.
    if name.is_empty() || name.len() > NAME_BYTES || name.chars().any(char::is_control) {
        return Err(ToolError::BadName {
            what,
            name: truncate_chars(name, 80),
        });
    }
    Ok(())
}

/// The tool with its definition checked and in canonical form.
pub(crate) fn canonicalize_tool(mut tool: Tool) -> Result<Tool, ToolError> {
    let id = tool.id();
    check_name("tool", id.name.as_str())?;
    let order = tool.order;
    match &mut tool.definition {
        // The provider matches its own tools by type at the top level of the list; within a group it would not
        // find them.
        ToolDefinition::Provider(_) if id.group.is_some() => {
            Err(ToolError::ProviderToolInGroup { tool: id })
        }
        ToolDefinition::Provider(_) => Ok(tool),
        ToolDefinition::Function(function) => {
            canonicalize_function(function, &id, order)?;
            Ok(tool)
        }
    }
}

fn canonicalize_function(
    function: &mut FunctionTool,
    id: &ToolId,
    order: PropertyOrder,
) -> Result<(), ToolError> {
    let Some(schema) = &function.parameters else {
        return Ok(());
    };
    let bad = |path: &str, expected, found: &str| ToolError::BadSchema {
        tool: id.clone(),
        path: path.to_owned(),
        expected,
        found: truncate_chars(found, 60),
    };
    let text = schema.get();
    // Size and depth before shape: what follows parses and recurses.
    if text.len() > SCHEMA_BYTES {
        let found = format!("{} bytes", text.len());
        return Err(bad("/", "at most 1,048,576 bytes", &found));
    }
    if !nests_at_most(text, SCHEMA_DEPTH) {
        return Err(bad("/", "nesting of at most 100", "deeper nesting"));
    }
    check_object_schema(text).map_err(|(path, expected, found)| bad(path, expected, &found))?;
    let canonical = match order {
        PropertyOrder::Sorted => canonical_json(text),
        // Only `properties` keeps its order; everything else is sorted, so that equal schemas still give equal
        // bytes.
        PropertyOrder::AsWritten => {
            let mut out = String::with_capacity(text.len());
            write_canonical(text, KeyOrder::Sorted, &mut out).map(|()| out)
        }
    };
    let canonical = canonical.and_then(|text| Raw::parse(text).ok());
    let Some(canonical) = canonical else {
        return Err(bad("/", "a JSON value", text));
    };
    function.parameters = Some(canonical);
    Ok(())
}

/// Whether brackets nest no deeper than `limit`. `text` is valid JSON.
// A scan of bytes: a parsed value would already have been built by the time its depth is known.
pub(crate) fn nests_at_most(text: &str, limit: usize) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > limit {
                    return false;
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

/// Where, what was expected, what was found.
type SchemaFlaw = (&'static str, &'static str, String);

/// A schema of arguments: an object that admits objects, with `properties` and `required` in their shapes.
fn check_object_schema(text: &str) -> Result<(), SchemaFlaw> {
    let flaw = |path, expected, found: &str| Err((path, expected, found.to_owned()));
    let Ok(fields) = Fields::parse(text) else {
        return flaw("/", "a JSON Schema, an object", text);
    };
    // A schema without a type is common and admits objects too.
    if let Some(kind) = fields.get(&["type"])
        && !admits_objects(kind.get())
    {
        return flaw("/type", "\"object\", for arguments are one", kind.get());
    }
    if let Some(properties) = fields.get(&["properties"]) {
        let Ok(properties) = Fields::parse(properties.get()) else {
            return flaw("/properties", "an object of schemas", properties.get());
        };
        // The first byte tells objects and booleans, the only two forms of a schema.
        let is_schema = |text: &str| matches!(text.as_bytes().first(), Some(b'{' | b't' | b'f'));
        if let Some((_, value)) = properties.iter().find(|(_, v)| !is_schema(v.get())) {
            return flaw("/properties", "an object of schemas", value.get());
        }
    }
    match fields.get(&["required"]) {
        Some(required) if serde_json::from_str::<Vec<String>>(required.get()).is_err() => {
            flaw("/required", "a list of names", required.get())
        }
        _ => Ok(()),
    }
}

/// Whether a schema's `type`, a word or a list of words, admits objects.
fn admits_objects(kind: &str) -> bool {
    kind == "\"object\""
        || serde_json::from_str::<Vec<String>>(kind)
            .is_ok_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

/// Whether an object's keys are sorted or stay in order.
#[derive(Clone, Copy, PartialEq)]
enum KeyOrder {
    Sorted,
    AsWritten,
}

/// Canonical but for the order of properties. The nesting is bounded before.
fn write_canonical(text: &str, keys: KeyOrder, out: &mut String) -> Option<()> {
    let first = *text.as_bytes().first()?;
    if first == b'[' {
        let values: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).ok()?;
        out.push('[');
        for (index, value) in values.into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write_canonical(value.get(), KeyOrder::Sorted, out)?;
        }
        out.push(']');
        return Some(());
    }
    if first != b'{' {
        // Scalars have one canonical text, whatever the order of keys around them.
        out.push_str(&canonical_json(text)?);
        return Some(());
    }
    let fields = Fields::parse(text).ok()?;
    // A repeated key keeps its first place and its last value.
    let last: BTreeMap<&str, &str> = fields.iter().map(|(k, v)| (k, v.get())).collect();
    let mut order: Vec<&str> = Vec::with_capacity(last.len());
    match keys {
        KeyOrder::Sorted => order.extend(last.keys()),
        KeyOrder::AsWritten => {
            let mut seen = std::collections::BTreeSet::new();
            order.extend(fields.iter().map(|(k, _)| k).filter(|k| seen.insert(*k)));
        }
    }
    out.push('{');
    for (index, key) in order.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&quote_json(key));
        out.push(':');
        // Only the keyword `properties` keeps order, not a property of that name.
        let inner = if keys == KeyOrder::Sorted && key == "properties" {
            KeyOrder::AsWritten
        } else {
            KeyOrder::Sorted
        };
        write_canonical(last.get(key)?, inner, out)?;
    }
    out.push('}');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str, order: PropertyOrder) -> Result<String, ToolError> {
        let raw = Raw::parse(text).unwrap();
        let tool = canonicalize_tool(Tool::function("f", "", raw).with_property_order(order))?;
        let function = tool.as_function().unwrap();
        Ok(function.parameters.as_ref().unwrap().get().to_owned())
    }

    #[test]
    fn equal_definitions_have_equal_bytes() {
        let a =
            r#"{ "type":"object", "properties":{"b":{"type":"integer","minimum":1.0},"a":{}} }"#;
        let b = r#"{"properties":{"a":{},"b":{"minimum":1,"type":"integer"}},"type":"object"}"#;
        let sorted = PropertyOrder::Sorted;
        assert_eq!(schema(a, sorted).unwrap(), b);
        assert_eq!(schema(a, sorted), schema(b, sorted));
        let written = PropertyOrder::AsWritten;
        assert_eq!(
            schema(a, written).unwrap(),
            r#"{"properties":{"b":{"minimum":1,"type":"integer"},"a":{}},"type":"object"}"#
        );
        let named =
            r#"{"properties":{"properties":{"type":"string","enum":["b","a"]},"a":{"x":1,"b":2}}}"#;
        assert_eq!(
            schema(named, written).unwrap(),
            r#"{"properties":{"properties":{"enum":["b","a"],"type":"string"},"a":{"b":2,"x":1}}}"#
        );
    }

    #[test]
    fn what_is_no_schema_of_arguments_is_told() {
        for (text, path) in [
            ("[]", "/"),
            ("true", "/"),
            (r#"{"type":"string"}"#, "/type"),
            (r#"{"type":["null","string"]}"#, "/type"),
            (r#"{"properties":[]}"#, "/properties"),
            (r#"{"properties":{"a":"string"}}"#, "/properties"),
            (r#"{"required":"a"}"#, "/required"),
            (r#"{"required":[1]}"#, "/required"),
        ] {
            let error = schema(text, PropertyOrder::Sorted).unwrap_err();
            assert!(
                matches!(&error, ToolError::BadSchema { path: at, .. } if at == path),
                "{text}: {error}"
            );
        }
        for text in [
            "{}",
            r#"{"type":["object","null"]}"#,
            r#"{"properties":{"a":true}}"#,
        ] {
            schema(text, PropertyOrder::Sorted).unwrap();
        }
        let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(200), "}".repeat(200));
        let error = schema(&deep, PropertyOrder::AsWritten)
            .unwrap_err()
            .to_string();
        assert!(error.contains("nesting"), "{error}");
    }
}
