//! What stands where in a JSON Schema: schemas, names of schemas, or data.

/// What a value stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A schema, or a list of them.
    Schema,
    /// Names, each with a schema: a property may be called `$ref`.
    Named,
    /// Data (`enum`, `const`, `default`, `examples`): nothing in it refers.
    Data,
}

/// What the value of a member is, given what holds the member.
pub(crate) fn inside(place: Place, key: &str) -> Place {
    match (place, key) {
        (Place::Named, _) => Place::Schema,
        (
            _,
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
            | "dependencies",
        ) => Place::Named,
        (_, "enum" | "const" | "default" | "examples" | "required" | "dependentRequired") => {
            Place::Data
        }
        _ => Place::Schema,
    }
}
