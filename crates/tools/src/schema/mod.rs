//! JSON Schemas of arguments: what stands where in one, and arguments checked against one.
//!
//! Schemas may be hostile, for tools come from servers of strangers. So whoever walks a schema must know whether a value
//! is a schema, a map of schemas or data ([`member_position`]: a property may be called `$ref`), and a check is measured
//! before it is made (`cost_limit`).
//!
//! Not here: the canonical form of a definition ([`crate::registry`]).

#[cfg(feature = "validate")]
mod cost_limit;
#[cfg(feature = "validate")]
mod validate;

#[cfg(feature = "validate")]
pub use validate::{ArgumentFault, SchemaError, SchemaValidator};

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
// Within a map of names every key is a name, even one spelt like a keyword.
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
