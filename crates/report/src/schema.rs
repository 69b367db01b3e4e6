//! The shapes of other crates' types that a report holds, word by word, for its published JSON Schema.
//!
//! That real reports agree with the schema is checked by the tests of `contexture-compile`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::json;

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

/// The name of a provider's format.
pub(crate) struct Format;

impl JsonSchema for Format {
    fn schema_name() -> Cow<'static, str> {
        "Format".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = contexture_wire::Format::PROVIDERS.map(contexture_wire::Format::as_str);
        json_schema!({"type": "string", "enum": names})
    }
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
enum CacheKind {
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
enum Ttl {
    /// The provider's usual time.
    Usual,
    /// The longer one.
    Long,
}

/// The cache plan of one payload, and what the provider is expected to bill for its input.
///
/// A prediction holds if the call before was sent, and this one is before what it left is forgotten.
/// Tokens are best guesses, where the budget goes by high bounds.
#[derive(JsonSchema, Serialize)]
pub(crate) struct CacheReport {
    /// Who decides what is cached.
    kind: CacheKind,
    /// The marks in force, in payload order.
    marks: Vec<MarkReport>,
    /// Input tokens by what is paid for them.
    predicted: CacheUsage,
    /// Their cost in pico-dollars (10⁻¹² dollars); absent where the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// What the same tokens would cost without a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_uncached: Option<u64>,
    /// Where clearing was a matter of money: whether it paid, and both figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    rewriting: Option<RewriteValue>,
    /// The cache object named for the request, and whether it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<ContentReport>,
    /// Whether there was no call before on this plan.
    first: bool,
    /// For how many seconds the provider keeps what is read or written, at least; 0 without a cache.
    kept_seconds: u64,
}

/// One mark.
#[derive(JsonSchema, Serialize)]
struct MarkReport {
    /// What it ends: `tools`, `system`, `messages[12]`, counted in pieces of the payload.
    ends: String,
    /// Why it stands there.
    why: MarkerReason,
    /// For how long.
    ttl: Ttl,
}

/// Why a mark stands where it does.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MarkReason")]
enum MarkerReason {
    /// The end of tools and system prompt.
    Head,
    /// The end of what stands before the history.
    Anchor,
    /// Where the history ended in the call before: the end of this one is too far from it.
    Bridge,
    /// The end of the history.
    Rolling,
    /// It came with the items.
    Given,
    /// The provider sets it by itself.
    Provider,
}

/// The input tokens of one call or of many, by what is paid for them.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "CacheUse")]
struct CacheUsage {
    /// Read from the cache.
    read: u64,
    /// Written for the usual time, where writing has a price of its own.
    write: u64,
    /// Written for the longer time.
    write_long: u64,
    /// Neither.
    fresh: u64,
}

/// Whether a rewriting pays, and both figures, in pico-dollars.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Worth")]
struct RewriteValue {
    /// Whether it saves more than it costs.
    rewrite: bool,
    /// What it saves over the calls to come.
    saving: u128,
    /// What it costs: at once, or in each call that it makes too short to be cached.
    cost: u128,
}

/// What became of the cache object that was named for a payload.
#[derive(JsonSchema, Serialize)]
struct ContentReport {
    /// Its name.
    name: String,
    /// The tokens that it holds of the payload; 0 if it is not used.
    tokens: u64,
    /// Why it is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<ContentIgnored>,
}

/// Why a payload does not name a cache object.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum ContentIgnored {
    /// The model has no cache objects, or is not spoken to in their format.
    Unsupported,
    /// The payload does not begin with what it was made from.
    PrefixChanged,
    /// It holds less than tools and system prompt, which are refused beside it.
    HeadOutside,
    /// It holds all messages, and a request must have one of its own.
    NothingLeft,
    /// A parameter names another.
    Named,
}

#[test]
fn the_mirrored_words_are_those_of_the_types() {
    use contexture_catalogue::CacheKind as Cache;
    use contexture_prompt_cache::{ContentIgnored as Ignored, MarkerReason as Reason};
    use contexture_wire::{CacheTtl as Time, LossKind as Lost};
    for (ours, theirs) in [
        (json!(Ttl::Usual), json!(Time::Usual)),
        (json!(Ttl::Long), json!(Time::Long)),
        (json!(CacheKind::None), json!(Cache::None)),
        (json!(CacheKind::Automatic), json!(Cache::Automatic)),
        (json!(CacheKind::Explicit), json!(Cache::Explicit)),
        (json!(CacheKind::CachedContent), json!(Cache::CachedContent)),
        (json!(MarkerReason::Head), json!(Reason::Head)),
        (json!(MarkerReason::Anchor), json!(Reason::Anchor)),
        (json!(MarkerReason::Bridge), json!(Reason::Bridge)),
        (json!(MarkerReason::Rolling), json!(Reason::Rolling)),
        (json!(MarkerReason::Given), json!(Reason::Given)),
        (json!(MarkerReason::Provider), json!(Reason::Provider)),
        (
            json!(ContentIgnored::Unsupported),
            json!(Ignored::Unsupported),
        ),
        (
            json!(ContentIgnored::PrefixChanged),
            json!(Ignored::PrefixChanged),
        ),
        (
            json!(ContentIgnored::HeadOutside),
            json!(Ignored::HeadOutside),
        ),
        (
            json!(ContentIgnored::NothingLeft),
            json!(Ignored::NothingLeft),
        ),
        (json!(ContentIgnored::Named), json!(Ignored::Named)),
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
        (json!(SegmentBand::Tools), json!("tools")),
        (json!(SegmentBand::System), json!("system")),
        (json!(SegmentBand::Anchor), json!("anchor")),
        (json!(SegmentBand::History), json!("history")),
        (json!(SegmentBand::Live), json!("live")),
        (json!(SegmentBand::Tail), json!("tail")),
        (json!(SegmentBand::Framing), json!("framing")),
    ] {
        assert_eq!(ours, theirs);
    }
}
