//! Cache objects made beforehand: Gemini's `cachedContents`.
//!
//! Such an object holds tools, system prompt and the first messages, for a time that is paid for by the
//! hour; requests name it in `cachedContent` and leave out what it holds, as they must: tools, system
//! prompt and the settings of tools are refused beside it
//! (<https://ai.google.dev/gemini-api/docs/caching>, read on 2026-11-22). An object is known here by the
//! hash over what it was made from, so it is named only in a payload that begins with just that.
//!
//! Whether one pays is a matter of the provider's own cache, which keeps prefixes without being asked
//! and for the same price of reading: where that serves the calls to come, an object saves nothing.
//! Where calls come further apart than it remembers ([`CacheState::Cold`]), each of them pays for the
//! whole prefix, and an object is advised if it costs less than that.
//!
//! Not here: making one, which is a call of its own; `Payload::cache_object` of the compiler
//! has the body for it.

use contexture_ir::ContentHash;
use serde::{Deserialize, Serialize};

use crate::cost::{CacheState, Rates};
use crate::outline::{SegmentList, SegmentStability};
use crate::rules::CacheRules;

/// How long an object is kept unless said otherwise: an hour, which is what storage is paid by.
const USUAL_SECONDS: u64 = 3_600;

/// The shortest object where the catalogue says nothing, in tokens.
const MINIMUM: u64 = 4_096;

/// A cache object at the provider, and what it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedContent {
    /// Its name: `cachedContents/abc`.
    pub name: String,
    /// How many segments of the payload's outline it holds, from the first on.
    pub segments: usize,
    /// The hash over them: [`CacheAdvice::prefix`], or
    /// `Payload::cache_prefix` of the payload it was made from.
    #[serde(with = "contexture_ir::hex")]
    pub prefix: ContentHash,
}

/// A cache object that would pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheAdvice {
    /// How many segments of the outline it would hold, from the first on: what stands before the history.
    pub segments: usize,
    /// The hash over them, by which the object is known later.
    #[serde(with = "contexture_ir::hex")]
    pub prefix: ContentHash,
    /// Their bytes in the payload.
    pub bytes: usize,
    /// Their tokens, at a best guess.
    pub tokens: u64,
    /// For how many seconds it is paid for: as long as the provider keeps it unless told otherwise.
    pub ttl_seconds: u64,
    /// What it saves over the calls to come, in pico-dollars: making and keeping it are taken off.
    pub saving: u128,
}

/// What became of the cache object that was named for a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContentReport {
    /// Name that the provider gave the object.
    pub name: String,
    /// The tokens that it holds of the payload; 0 if it is not used.
    pub tokens: u64,
    /// Why it is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<ContentIgnored>,
}

/// Why a payload does not name a cache object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentIgnored {
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

impl ContentIgnored {
    /// The reason in a few words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unsupported => "the target has no cache objects",
            Self::PrefixChanged => "the payload does not begin with what it was made from",
            Self::HeadOutside => "it does not hold all of tools and system prompt",
            Self::NothingLeft => "it would leave no message to send",
            Self::Named => "a parameter names another",
        }
    }
}

/// What decides whether a cache object pays.
#[derive(Clone, Copy, Debug)]
pub struct CallHorizon {
    /// How many calls are expected to come within an object's time.
    pub calls: u64,
    /// How the cache serves them.
    pub state: CacheState,
}

/// The cache object that would pay; `prefix` gives the hash over the first segments.
#[must_use]
pub fn advise_cache_object(
    outline: &impl SegmentList,
    rules: &CacheRules,
    rates: Option<&Rates>,
    horizon: &CallHorizon,
    prefix: impl FnOnce(usize) -> ContentHash,
) -> Option<CacheAdvice> {
    // A warm automatic cache reads the same prefix at the same price without an object.
    let applies = rules.supports_cached_content() && horizon.state == CacheState::Cold;
    let (rates, storage) = (rates?, rules.storage_hour.filter(|_| applies)?);
    let (segments, tokens, bytes) = epoch_prefix(outline);
    let minimum = if rules.minimum > 0 {
        rules.minimum
    } else {
        MINIMUM
    };
    // Made once at the price of input, kept, and then read by each call.
    let cost = u128::from(rates.input) + u128::from(storage.micro_dollars_per_million());
    let gain = u128::from(rates.input.saturating_sub(rates.read)) * u128::from(horizon.calls);
    let saving = gain.saturating_sub(cost).saturating_mul(u128::from(tokens));
    (segments > 0 && tokens >= minimum && saving > 0).then(|| CacheAdvice {
        segments,
        prefix: prefix(segments),
        bytes,
        tokens,
        ttl_seconds: USUAL_SECONDS,
        saving,
    })
}

/// How many segments, tokens and bytes stand before the history.
fn epoch_prefix(outline: &impl SegmentList) -> (usize, u64, usize) {
    let (mut segments, mut tokens, mut bytes) = (0, 0_u64, 0);
    // What stands before the history: the history grows, so an object with a part of it would soon be
    // useless.
    while let Some(one) = outline.segment(segments)
        && one.stability == SegmentStability::Epoch
    {
        segments += 1;
        tokens = tokens.saturating_add(one.tokens.midpoint());
        bytes += one.bytes;
    }
    (segments, tokens, bytes)
}
