//! Whether a cache object made beforehand is worth thinking of: Gemini's `cachedContents`.
//!
//! Such an object holds tools, system prompt and what stands before the history, for a time that is
//! paid for by the hour; requests name it in `cachedContent` and leave those parts out. Making one is a
//! call of its own, which this crate does not do; a name that a request carries already is passed
//! through as any field is (<https://ai.google.dev/gemini-api/docs/caching>, read on 2026-11-21).

use contexture_catalogue::CacheKind;
use serde::Serialize;

use crate::cache::outline::{Lasts, Outline};
use crate::cache::rules::CacheRules;

/// How long an object is kept unless said otherwise: an hour.
const USUAL_SECONDS: u64 = 3_600;

/// A cache object that could be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheObject {
    /// How many segments of the outline it would hold, from the first on.
    pub segments: usize,
    /// Their tokens, at a best guess.
    pub tokens: u64,
    /// For how many seconds the provider keeps it unless told otherwise.
    pub ttl_seconds: u64,
}

/// The cache object for a payload: nothing where the provider has none, or what lasts is too short.
#[must_use]
pub fn cache_object(outline: &Outline, rules: &CacheRules) -> Option<CacheObject> {
    if rules.kind != CacheKind::CachedContent {
        return None;
    }
    let lasting = outline
        .segments
        .iter()
        .take_while(|one| one.lasts == Lasts::Epoch);
    let (mut segments, mut tokens) = (0, 0_u64);
    for one in lasting {
        segments += 1;
        tokens = tokens.saturating_add(one.tokens.guess());
    }
    (segments > 0 && tokens >= rules.minimum).then_some(CacheObject {
        segments,
        tokens,
        ttl_seconds: USUAL_SECONDS,
    })
}
