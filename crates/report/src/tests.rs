//! The published schema of reports is that of the types.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::document::Report;

const PUBLISHED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/schema/report.schema.json"
);

/// The schema of the types as they are now.
fn current_schema() -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Report>();
    let mut schema = schema.to_value();
    plain_descriptions(&mut schema);
    let own = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Contexture report",
    });
    let mut out = own.as_object().unwrap().clone();
    let made = schema.as_object().unwrap();
    let rest = made
        .iter()
        .filter(|(name, _)| !["$schema", "title"].contains(&name.as_str()));
    out.extend(rest.map(|(name, value)| (name.clone(), value.clone())));
    format!("{}\n", serde_json::to_string_pretty(&out).unwrap())
}

/// Descriptions without the marks of Rust's documentation, and without its line breaks.
fn plain_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (name, value) in object {
                match value {
                    Value::String(text) if name == "description" => {
                        *text = text.replace("[`", "`").replace("`]", "`");
                        *text = text.replace("crate::", "").replace('\n', " ");
                    }
                    value => plain_descriptions(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(plain_descriptions),
        _ => {}
    }
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let current = current_schema();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(PUBLISHED, &current).unwrap();
    }
    let published = std::fs::read_to_string(PUBLISHED).unwrap_or_default();
    assert!(
        published == current,
        "docs/schema/report.schema.json is not current: \
         UPDATE_GOLDENS=1 cargo nextest run -p contexture-report schema"
    );
}
