//! What is published of the configuration is what holds. The API's description is served.

use std::path::Path;

use contexture_server::Config;

#[test]
fn the_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/config.schema.json");
    let current = format!("{}\n", Config::schema_json());
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == current,
        "docs/schema/config.schema.json is not current: UPDATE_GOLDENS=1 cargo nextest run -p contexture-server published"
    );
}
