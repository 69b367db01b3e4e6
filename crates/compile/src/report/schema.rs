//! The JSON Schema of reports, made from the types: `docs/schema/report.schema.json`.
//!
//! Types of other crates that a report holds are mirrored here, word by word; that real reports agree with
//! the published schema is checked in `tests/it/schema.rs`.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

use crate::contribution::Band;
use crate::report::document::Report;

const PUBLISHED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/schema/report.schema.json"
);

/// Something the target's format cannot say.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Loss {
    /// Where: `items[12].content[0]`.
    path: String,
    /// What kind of thing was lost.
    what: LossKind,
    /// Why, in a sentence fragment without a full stop.
    why: String,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum LossKind {
    Item,
    Part,
    Field,
    Role,
    Order,
    Opaque,
    Value,
    Tool,
    Option,
    Alternative,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SegmentBand {
    Tools,
    System,
    Anchor,
    History,
    Live,
    Tail,
    Framing,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CacheKind {
    /// There is no cache, or nothing is known of one.
    None,
    /// The provider, by equal prefixes.
    Automatic,
    /// The request, by marks on its blocks.
    Explicit,
    /// The provider by equal prefixes, and the caller by cache objects made beforehand.
    CachedContent,
}

#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ttl {
    /// The provider's usual time.
    Usual,
    /// The longer one.
    Long,
}

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
         UPDATE_GOLDENS=1 cargo nextest run -p contexture-compile schema"
    );
}

#[test]
fn the_mirrored_words_are_those_of_the_types() {
    use contexture_catalogue::CacheKind as Cache;
    use contexture_wire::{CacheTtl as Time, Format as Wire, LossKind as Lost};
    for (ours, theirs) in [
        (json!(Ttl::Usual), json!(Time::Usual)),
        (json!(Ttl::Long), json!(Time::Long)),
        (json!(CacheKind::None), json!(Cache::None)),
        (json!(CacheKind::Automatic), json!(Cache::Automatic)),
        (json!(CacheKind::Explicit), json!(Cache::Explicit)),
        (json!(CacheKind::CachedContent), json!(Cache::CachedContent)),
        (json!(LossKind::Item), json!(Lost::Item)),
        (json!(LossKind::Part), json!(Lost::Part)),
        (json!(LossKind::Field), json!(Lost::Field)),
        (json!(LossKind::Role), json!(Lost::Role)),
        (json!(LossKind::Order), json!(Lost::Order)),
        (json!(LossKind::Opaque), json!(Lost::Opaque)),
        (json!(LossKind::Value), json!(Lost::Value)),
        (json!(LossKind::Tool), json!(Lost::Tool)),
        (json!(LossKind::Option), json!(Lost::Option)),
        (json!(LossKind::Alternative), json!(Lost::Alternative)),
        (json!(Format::OpenaiChat), json!(Wire::OpenAiChat.as_str())),
        (
            json!(Format::OpenaiResponses),
            json!(Wire::OpenAiResponses.as_str()),
        ),
        (json!(Format::Anthropic), json!(Wire::Anthropic.as_str())),
        (json!(Format::Gemini), json!(Wire::Gemini.as_str())),
        (json!(SegmentBand::System), json!(Band::System.as_str())),
        (json!(SegmentBand::Anchor), json!(Band::Anchor.as_str())),
        (json!(SegmentBand::History), json!(Band::History.as_str())),
        (json!(SegmentBand::Live), json!(Band::Live.as_str())),
        (json!(SegmentBand::Tail), json!(Band::Tail.as_str())),
        (json!(SegmentBand::Tools), json!("tools")),
        (json!(SegmentBand::Framing), json!("framing")),
    ] {
        assert_eq!(ours, theirs);
    }
}
