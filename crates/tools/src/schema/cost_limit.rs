//! The limit on the work of one check.
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
        // Positions that hold data are skipped by the guards: nothing in them refers.
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
                    // The outermost id names the whole schema and moves nothing.
                    (SchemaPosition::Schema, "$id" | "id", Value::String(_)) if outermost => {
                        return Ok(());
                    }
                    // Each of these changes what a pointer or reference means, so the walk below could not
                    // follow it.
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
    // Percent-encoded pointers would have to be decoded the way the validator does it. No real tool uses them.
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
    // `None` means that the budget or the depth ran out.
    walk.visit_schema(schema, value, DEPTH).is_some()
}

struct CostCounter<'s> {
    root: &'s Value,
    left: u32,
}

impl<'s> CostCounter<'s> {
    fn visit_schema(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Option<()> {
        // Every visit costs one step, so that a schema of empty alternatives is bounded too.
        self.left = self.left.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        let Value::Object(keywords) = schema else {
            return Some(());
        };
        // All branches are counted, although a validator may stop early: the limit is on the worst case.
        for (keyword, inner) in keywords {
            match (keyword.as_str(), inner) {
                ("$ref", Value::String(reference)) => {
                    // A reference to an ancestor recurses on the same value; the step budget and the depth end
                    // it.
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
                        // Members that are absent cost nothing, which is what keeps recursive schemas over
                        // small values cheap.
                        if let Some(value) = value.get(name) {
                            self.visit_schema(schema, value, depth)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(schemas)) => {
                    // Not matched against the names: assuming that every pattern matches is an upper bound and
                    // needs no regular expression.
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
                // Keywords that look at the value alone take constant work.
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
