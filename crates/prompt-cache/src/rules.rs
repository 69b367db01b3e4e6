//! How one model caches prompts behind one format.
//!
//! What differs between models is the catalogue's ([`contexture_catalogue::CacheSupport`]). What is the
//! same for all models of a provider is here or in [`contexture_wire::CacheKeyRules`], with its source:
//!
//! * The order is tools, system, messages; a change anywhere ends the prefix there (Anthropic, "Prompt
//!   caching", and OpenAI, "Prompt caching": <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>,
//!   <https://developers.openai.com/api/docs/guides/prompt-caching>, read on 2026-11-21).
//! * A read keeps the prefix for its whole time anew, without charge (same pages).
//! * OpenAI brings requests with the same `prompt_cache_key` and beginning to the same machine (same page, "Requests are
//!   routed"); whether other providers behind its formats take the field is not known.
//! * Gemini caches prefixes by itself and promises neither a read nor a time
//!   (<https://ai.google.dev/gemini-api/docs/caching>).

use contexture_catalogue::{CacheKind, ModelSpec, Price};
use contexture_wire::{CacheTtl, Format, marker_field};
use serde::{Deserialize, Serialize};

/// How long an unmarked prefix is taken to be kept where nothing is known: five minutes.
const IDLE_SECONDS: u64 = 300;

/// How one model caches prompts behind one format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheRules {
    /// The format the model is spoken to in.
    pub format: Format,
    /// Who decides what is cached.
    pub kind: CacheKind,
    /// The shortest prefix that is cached, in tokens; 0 if not known.
    pub minimum: u64,
    /// How many markers a request may carry; 0 where it can carry none.
    #[serde(rename = "max_marks")]
    pub max_markers: usize,
    /// How many content blocks up to a marker are searched for earlier ones; absent if all are.
    pub lookback: Option<usize>,
    /// In steps of how many tokens an unmarked prefix is cached.
    pub step: u64,
    /// Whether the provider sets one of the markers by itself, on the newest message.
    pub marks_newest: bool,
    /// Whether a request may carry a key by which requests with one prefix are brought to one cache.
    #[serde(default)]
    pub keyed: bool,
    /// For how many milliseconds without use a prefix is kept.
    pub usual_ms: u64,
    /// For how many it is kept if asked; absent where there is no choice.
    pub long_ms: Option<u64>,
    /// What it costs to keep a cache object for an hour, by the token; absent where there are none or it
    /// is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_hour: Option<Price>,
}

impl CacheRules {
    /// The rules for a model behind a format. Markers exist only where the format has a word for them.
    #[must_use]
    pub fn for_model(model: &ModelSpec, format: Format) -> Self {
        let cache = &model.cache;
        let key = format.spec().cache_key();
        let kind = match cache.kind {
            // The same model behind a format without its markers has no cache that could be asked for.
            CacheKind::Explicit if !key.explicit_markers => CacheKind::None,
            kind => kind,
        };
        let speaks = marker_field(format).is_some() && kind != CacheKind::None;
        let max_markers = if speaks { cache.max_marks as usize } else { 0 };
        let mut ttls = cache.ttls_seconds.iter().map(|seconds| seconds * 1_000);
        let usual = ttls.next();
        Self {
            format,
            kind,
            minimum: cache.minimum_tokens.unwrap_or(0),
            max_markers,
            lookback: cache.lookback_blocks.map(|blocks| blocks as usize),
            step: cache.step_tokens.unwrap_or(1).max(1),
            // An automatic cache with markers: the provider marks the newest block by itself.
            marks_newest: kind == CacheKind::Automatic && max_markers > 0,
            keyed: key
                .routing_key
                .is_some_and(|key| key.provider == model.provider),
            usual_ms: usual.unwrap_or(cache.idle_seconds.unwrap_or(IDLE_SECONDS) * 1_000),
            long_ms: ttls.next(),
            storage_hour: cache.storage_hour,
        }
    }

    /// No cache at all.
    #[must_use]
    pub const fn none(format: Format) -> Self {
        Self {
            format,
            kind: CacheKind::None,
            minimum: 0,
            max_markers: 0,
            lookback: None,
            step: 1,
            marks_newest: false,
            keyed: false,
            usual_ms: 0,
            long_ms: None,
            storage_hour: None,
        }
    }

    /// Whether only markers decide what is kept.
    #[must_use]
    pub const fn is_marker_based(&self) -> bool {
        matches!(self.kind, CacheKind::Explicit) || self.marks_newest
    }

    /// Whether a request can name a cache object made beforehand.
    #[must_use]
    pub fn supports_cached_content(&self) -> bool {
        // The kind first: for most models it is another, and the format need not be asked.
        matches!(self.kind, CacheKind::CachedContent)
            && self.format.spec().cache_key().cached_content.is_some()
    }

    /// For how many milliseconds without use a prefix is kept.
    #[must_use]
    pub fn ttl_ms(&self, ttl: CacheTtl) -> u64 {
        match ttl {
            CacheTtl::Usual => self.usual_ms,
            CacheTtl::Long => self.long_ms.unwrap_or(self.usual_ms),
        }
    }
}
