//! How much work a check would be.
//!
//! A schema of a few hundred bytes can ask for more evaluations than there are atoms: alternatives that refer to
//! alternatives, each twice. So the evaluations are walked first, without doing them, and counted; and what refers in
//! ways that the walk cannot follow is refused.

use serde_json::Value;

use crate::schema::{SchemaPosition, member_position};

/// The most evaluations of a schema against a value in one check.
pub(super) const STEPS: u32 = 1_000_000;
/// How deep evaluations may nest.
const DEPTH: usize = 400;

/// Checks that every reference is a JSON pointer to something in the schema, and that no part renames the whole.
pub(super) fn check_references(schema: &Value) -> Result<(), String> {
    scan_references(schema, schema, SchemaPosition::Schema, true)
}

/// Nesting is bounded by the reader of JSON.
fn scan_references(
    root: &Value,
    value: &Value,
    place: SchemaPosition,
    outermost: bool,
) -> Result<(), String> {
    match value {
        Value::Array(values) if place != SchemaPosition::Data => values
            .iter()
            .try_for_each(|value| scan_references(root, value, place, false)),
        Value::Object(members) if place != SchemaPosition::Data => {
            members.iter().try_for_each(|(key, value)| {
                match (place, key.as_str(), value) {
                    (SchemaPosition::Schema, "$ref", Value::String(reference)) => {
                        let known = reference_target(root, reference).is_some();
                        return known.then_some(()).ok_or_else(|| {
                            format!("$ref {reference:?} is no JSON pointer to a part of the schema")
                        });
                    }
                    (SchemaPosition::Schema, "$id" | "id", Value::String(_)) if outermost => {
                        return Ok(());
                    }
                    (
                        SchemaPosition::Schema,
                        "$id" | "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$vocabulary",
                        _,
                    ) => return Err(format!("{key} is not supported here")),
                    _ => {}
                }
                scan_references(root, value, member_position(place, key), false)
            })
        }
        _ => Ok(()),
    }
}

/// What a reference within the schema stands for.
fn reference_target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.contains('%') {
        return None;
    }
    root.pointer(pointer)
}

/// Whether checking `value` takes no more than [`STEPS`] evaluations.
pub(super) fn is_bounded(schema: &Value, value: &Value) -> bool {
    let mut walk = CostCounter {
        root: schema,
        left: STEPS,
    };
    walk.visit_schema(schema, value, DEPTH).is_some()
}

struct CostCounter<'s> {
    root: &'s Value,
    left: u32,
}

impl<'s> CostCounter<'s> {
    fn visit_schema(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        let Value::Object(keywords) = schema else {
            return Some(());
        };
        for (keyword, inner) in keywords {
            match (keyword.as_str(), inner) {
                ("$ref", Value::String(reference)) => {
                    if let Some(target) = reference_target(self.root, reference) {
                        self.visit_schema(target, value, depth)?;
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    for schema in schemas {
                        self.visit_schema(schema, value, depth)?;
                    }
                }
                ("not" | "if" | "then" | "else", schema) => {
                    self.visit_schema(schema, value, depth)?
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    for schema in schemas.values() {
                        self.visit_schema(schema, value, depth)?;
                    }
                }
                ("properties", Value::Object(schemas)) => {
                    for (name, schema) in schemas {
                        if let Some(value) = value.get(name) {
                            self.visit_schema(schema, value, depth)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(schemas)) => {
                    for schema in schemas.values() {
                        self.visit_members(schema, value, depth)?;
                    }
                }
                ("prefixItems" | "items", Value::Array(schemas)) => {
                    let values = value.as_array().map_or(&[][..], Vec::as_slice);
                    for (schema, value) in schemas.iter().zip(values) {
                        self.visit_schema(schema, value, depth)?;
                    }
                }
                (
                    "additionalProperties"
                    | "unevaluatedProperties"
                    | "propertyNames"
                    | "items"
                    | "additionalItems"
                    | "unevaluatedItems"
                    | "contains",
                    schema,
                ) => self.visit_members(schema, value, depth)?,
                _ => {}
            }
        }
        Some(())
    }

    /// Each member or element.
    fn visit_members(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Option<()> {
        match value {
            Value::Object(members) => members
                .values()
                .try_for_each(|value| self.visit_schema(schema, value, depth)),
            Value::Array(values) => values
                .iter()
                .try_for_each(|value| self.visit_schema(schema, value, depth)),
            _ => Some(()),
        }
    }
}
