//! The provider's own dialect of schemas, as JSON Schema.
//!
//! It follows OpenAPI: types in capitals, `nullable`, counts as strings. Only what differs is
//! rewritten; the original is kept beside the result by whoever asks.

use contexture_ir::Raw;
use serde_json::{Map, Value};

/// The schema as JSON Schema; the same text where nothing differs or it cannot be read.
pub(super) fn to_json_schema(schema: &Raw) -> Raw {
    let Ok(value) = schema.parse_as::<Value>() else {
        return schema.clone();
    };
    let converted = convert_schema(value.clone());
    // What is JSON Schema already keeps its bytes.
    if converted == value {
        return schema.clone();
    }
    Raw::from_value(&converted).unwrap_or_else(|_| schema.clone())
}

fn convert_schema(value: Value) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let mut out = Map::new();
    let mut nullable = false;
    for (key, value) in members {
        let key = json_schema_key(&key).map_or(key, str::to_owned);
        let value = match (key.as_str(), value) {
            // The provider's own schemas spell types in capitals.
            ("type", Value::String(word)) => Value::String(word.to_ascii_lowercase()),
            ("nullable", Value::Bool(flag)) => {
                nullable = flag;
                continue;
            }
            // Names of properties are the user's own: only their schemas are converted.
            ("properties" | "$defs" | "defs", Value::Object(map)) => Value::Object(
                map.into_iter()
                    .map(|(k, v)| (k, convert_schema(v)))
                    .collect(),
            ),
            ("anyOf", Value::Array(list)) => list.into_iter().map(convert_schema).collect(),
            ("items" | "additionalProperties", value) => convert_schema(value),
            // The provider's counts are 64 bits wide and may come as text.
            (key, Value::String(count)) if key.starts_with("min") || key.starts_with("max") => {
                count
                    .parse::<u64>()
                    .map_or(Value::String(count), Value::from)
            }
            (_, value) => value,
        };
        out.insert(key, value);
    }
    // At the end, because the members may come in any order and this one changes others.
    if nullable {
        allow_null(&mut out);
    }
    Value::Object(out)
}

fn allow_null(schema: &mut Map<String, Value>) {
    if let Some(kind) = schema.get_mut("type") {
        *kind = Value::Array(vec![kind.take(), "null".into()]);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

/// The JSON Schema name of a key written in snake_case.
fn json_schema_key(key: &str) -> Option<&'static str> {
    Some(match key {
        "any_of" => "anyOf",
        "max_items" => "maxItems",
        "min_items" => "minItems",
        "max_length" => "maxLength",
        "min_length" => "minLength",
        "max_properties" => "maxProperties",
        "min_properties" => "minProperties",
        "additional_properties" => "additionalProperties",
        "property_ordering" => "propertyOrdering",
        _ => return None,
    })
}
