//! Reads lists of fragments in JSON, as people and programs write them.

use serde_json::Value;

use super::error::FragmentError;
use super::json::{fragment_from_map, json_type_name, parse_json};
use super::registry::{FragmentRegistry, from_serialized};
use super::tree::Fragment;

/// Reads a list of fragments: `[…]` or `{"fragments": […]}`.
///
/// An element is a fragment (`{"name", "data", "id"?, "metadata"?, "persist"?}`) or a serialised one
/// (`{"type": "hint", "text": …}`). The error names the element's place and what was expected there.
///
/// ```
/// let list = contexture_ir::parse_fragments(
///     r#"[{"type": "role", "content": "You answer briefly."}, {"name": "unit", "data": "cents"}]"#,
/// )?;
/// assert_eq!(list[0].name, "role");
/// # Ok::<(), contexture_ir::FragmentError>(())
/// ```
pub fn parse_fragments(text: &str) -> Result<Vec<Fragment>, FragmentError> {
    parse_fragments_with(text, &FragmentRegistry::new())
}

/// As [`parse_fragments`], with an application's own serialised types.
pub fn parse_fragments_with(
    text: &str,
    registry: &FragmentRegistry,
) -> Result<Vec<Fragment>, FragmentError> {
    fragments_from_value(parse_json(text)?, registry)
}

/// As [`parse_fragments_with`], from a parsed document.
pub fn fragments_from_value(
    document: Value,
    registry: &FragmentRegistry,
) -> Result<Vec<Fragment>, FragmentError> {
    let elements = match document {
        Value::Array(elements) => elements,
        Value::Object(mut map) => match map.shift_remove("fragments") {
            Some(Value::Array(elements)) => elements,
            Some(other) => {
                return Err(FragmentError::NotFragments {
                    found: format!("{} under `fragments`", json_type_name(&other)),
                });
            }
            None => {
                return Err(FragmentError::NotFragments {
                    found: "an object without it".to_owned(),
                });
            }
        },
        other => {
            return Err(FragmentError::NotFragments {
                found: json_type_name(&other).to_owned(),
            });
        }
    };
    elements
        .into_iter()
        .enumerate()
        .map(|(index, value)| {
            parse_element(value, registry).map_err(|error| FragmentError::At {
                index,
                error: Box::new(error),
            })
        })
        .collect()
}

fn parse_element(value: Value, registry: &FragmentRegistry) -> Result<Fragment, FragmentError> {
    // The arms are ordered from certain to likely. Both `name` and `data` make a fragment even if `type` is
    // there too; a lone `type` makes a serialised one; a lone `name` is read as a fragment for the sake of its
    // error, which names the missing field.
    match value {
        Value::Object(map) if map.contains_key("name") && map.contains_key("data") => {
            fragment_from_map(map, 0)
        }
        Value::Object(map) if map.contains_key("type") => {
            from_serialized(&Value::Object(map), registry)
        }
        Value::Object(map) if map.contains_key("name") => fragment_from_map(map, 0),
        other => Err(FragmentError::NotAFragment {
            found: json_type_name(&other).to_owned(),
        }),
    }
}
