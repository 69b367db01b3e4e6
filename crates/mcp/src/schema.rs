//! Schemas of what tools take and answer, in the part of JSON Schema that all clients understand.
//!
//! Everything stands in its place, without references; an absent value is left out, never null; nothing but types,
//! bounds and words.

use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// What a value of this type may be given as.
pub(crate) fn input_schema<T: JsonSchema>() -> JsonObject {
    generate_schema::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// What a value of this type is answered as.
pub(crate) fn output_schema<T: JsonSchema>() -> JsonObject {
    generate_schema::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate_schema<T: JsonSchema>(mut settings: SchemaSettings) -> JsonObject {
    // Not all clients understand `$ref` and `$schema`: a schema stands without both.
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let settings = settings.with_transform(RecursiveTransform(simplify_schema));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The root's are the Rust type's; the tool has a title and a description of its own.
    schema.remove("title");
    schema.remove("description");
    match schema.to_value() {
        Value::Object(object) => object,
        // A schema may also be `true`; no type of ours gives one.
        _ => JsonObject::new(),
    }
}

fn simplify_schema(schema: &mut Schema) {
    // Formats of numbers are Rust's, not JSON's.
    schema.remove("format");
    // Optional fields come as ["string", "null"], which not all clients read. Absent fields are
    // left out, so null need not be allowed.
    if let Some(Value::Array(types)) = schema.get("type")
        && let [one, Value::String(null)] = types.as_slice()
        && null == "null"
    {
        let one = one.clone();
        schema.insert("type".to_owned(), one);
    }
}
