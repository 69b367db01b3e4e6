//! What stands where in a JSON Schema: schemas, names of schemas, or data.

/// What a value stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaPosition {
    /// A schema, or a list of them.
    Schema,
    /// Names, each with a schema: a property may be called `$ref`.
    NamedSchemas,
    /// Data (`enum`, `const`, `default`, `examples`): nothing in it refers.
    Data,
}

/// What the value of a member is, given what holds the member.
pub(crate) fn member_position(place: SchemaPosition, key: &str) -> SchemaPosition {
    match (place, key) {
        (SchemaPosition::NamedSchemas, _) => SchemaPosition::Schema,
        (
            _,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies",
        ) => SchemaPosition::NamedSchemas,
        (_, "enum" | "const" | "default" | "examples" | "required" | "dependentRequired") => {
            SchemaPosition::Data
        }
        _ => SchemaPosition::Schema,
    }
}
