//! Cache breaks: calls that paid again for what the call before them had in the provider's cache.
//!
//! Of the call before, so much was in the cache as it read and wrote, by its own report; where the provider caches by itself
//! and reports no writes, only what it read is sure. The next request could have read that much, or all of itself if it is
//! shorter. What it reads less is billed again. Less than [`MIN_BREAK_TOKENS`] is no break: prefixes are cached in steps, and
//! markers move.
//!
//! Why is read from the log alone, in an order of certainty: another model reads nothing of the first one's cache; a
//! compaction replaces the history; after a pause longer than the cache's life nothing is left; then what the program did
//! between the two calls. Where the log shows none of that, the reason is unknown, and said to be.

use contexture_catalogue::{CacheKind, ModelSpec};
use contexture_sessions::{LogEvent, LoggedCall};
use serde::Serialize;

use crate::price::PriceBook;

/// Tokens from which on a shorter read is a break: the smallest prefix that most models cache.
pub const MIN_BREAK_TOKENS: u64 = 1_024;

/// For how many seconds a prefix is kept where the catalogue does not say.
const USUAL_SECONDS: u64 = 300;
/// The same where it was written for the longer time.
const LONG_SECONDS: u64 = 3_600;

/// Why a cache was missed, as far as the log shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BreakReason {
    /// Another model answered than before.
    ModelChanged,
    /// The history was replaced by a summary.
    Compacted,
    /// The pause was longer than the provider keeps a prefix.
    Paused,
    /// The session was resumed by a new process of the program.
    Resumed,
    /// The list of tools changed.
    ToolsChanged,
    /// Instructions or settings changed.
    SettingsChanged,
    /// Earlier content was edited, cleared or taken back.
    Edited,
    /// The log shows no reason.
    Unknown,
}

impl BreakReason {
    /// All reasons, in the order in which they are looked for.
    pub const ALL: [Self; 8] = [
        Self::ModelChanged,
        Self::Compacted,
        Self::Paused,
        Self::Resumed,
        Self::ToolsChanged,
        Self::SettingsChanged,
        Self::Edited,
        Self::Unknown,
    ];

    /// The reason in a few words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ModelChanged => "model changed",
            Self::Compacted => "compacted",
            Self::Paused => "paused too long",
            Self::Resumed => "resumed",
            Self::ToolsChanged => "tools changed",
            Self::SettingsChanged => "settings changed",
            Self::Edited => "history edited",
            Self::Unknown => "unknown",
        }
    }

    /// What a user can do about it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::ModelChanged => "choose the model before the work begins",
            Self::Compacted => "compact between tasks, while the history is short",
            Self::Paused => "end a task before a break, or compact before going on",
            Self::Resumed => "keep the session open, or begin a new one",
            Self::ToolsChanged => "connect tool servers before the session begins",
            Self::SettingsChanged => "change instructions between sessions",
            Self::Edited => "rewind early; a late one sends the rest again",
            Self::Unknown => "the provider dropped it, or the log does not say",
        }
    }
}

/// A cache break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundBreak {
    /// Why, as far as the log shows.
    pub reason: BreakReason,
    /// Tokens that were billed again.
    pub tokens: u64,
    /// What they cost more than a read, in pico-dollars; `None` if no price is known.
    pub pico_dollars: Option<u128>,
    /// Seconds between the two requests; `None` if the log has no times.
    pub pause_seconds: Option<u64>,
}

/// Tells whether `call` paid again for what `previous`, whose request it goes on from, had in the cache.
#[must_use]
pub fn find_break(
    previous: &LoggedCall,
    call: &LoggedCall,
    model: Option<&ModelSpec>,
) -> Option<FoundBreak> {
    // A request that got shorter can lose no more than it has.
    let could_read = cached_after(previous).min(call.tokens.input());
    let tokens = could_read.saturating_sub(call.tokens.cache_read);
    if tokens < MIN_BREAK_TOKENS {
        return None;
    }
    let pause_seconds = pause_seconds(previous, call);
    Some(FoundBreak {
        reason: break_reason(previous, call, pause_seconds, model),
        tokens,
        pico_dollars: model.and_then(|model| extra_cost(call, tokens, model)),
        pause_seconds,
    })
}

/// How many tokens of its request a call surely left in the cache.
const fn cached_after(call: &LoggedCall) -> u64 {
    call.tokens.cache_read.saturating_add(call.tokens.written())
}

/// Seconds from one request to the next.
fn pause_seconds(previous: &LoggedCall, call: &LoggedCall) -> Option<u64> {
    // A prefix lives from its last use, which is when a request is taken up and not when its answer ends.
    let from = previous.asked_ms.or(previous.at_ms)?;
    let to = call.asked_ms.or(call.at_ms)?;
    u64::try_from(to.saturating_sub(from))
        .ok()
        .map(|ms| ms / 1_000)
}

fn break_reason(
    previous: &LoggedCall,
    call: &LoggedCall,
    pause_seconds: Option<u64>,
    model: Option<&ModelSpec>,
) -> BreakReason {
    let shows = |event| call.events.contains(event);
    // An unnamed model is no other one: older logs name none at all.
    let is_other_model = !previous.model.is_empty() && previous.model != call.model;
    // In the order of certainty: what certainly ends a prefix comes before what may.
    if is_other_model {
        return BreakReason::ModelChanged;
    }
    if shows(LogEvent::Compacted) {
        return BreakReason::Compacted;
    }
    if pause_seconds.is_some_and(|pause| pause > kept_seconds(previous, model)) {
        return BreakReason::Paused;
    }
    let by_event = [
        (LogEvent::Resumed, BreakReason::Resumed),
        (LogEvent::ToolsChanged, BreakReason::ToolsChanged),
        (LogEvent::SettingsChanged, BreakReason::SettingsChanged),
        (LogEvent::TakenBack, BreakReason::Edited),
        (LogEvent::Cleared, BreakReason::Edited),
    ];
    let shown = by_event.into_iter().find(|(event, _)| shows(*event));
    shown.map_or(BreakReason::Unknown, |(_, reason)| reason)
}

/// For how many seconds without use the provider keeps what a call left in the cache.
fn kept_seconds(call: &LoggedCall, model: Option<&ModelSpec>) -> u64 {
    // The catalogue lists the usual time first, then the longer one.
    let mut times = model
        .map_or(&[] as &[u64], |model| &model.cache.ttls_seconds)
        .iter();
    let usual = times.next().copied();
    if call.tokens.cache_write_long > 0 {
        return times.next().copied().unwrap_or(LONG_SECONDS);
    }
    let idle = model.and_then(|model| model.cache.idle_seconds);
    usual.or(idle).unwrap_or(USUAL_SECONDS)
}

/// What tokens cost more than they would have as a read: at the price of writing as far as the call wrote, else of input.
fn extra_cost(call: &LoggedCall, tokens: u64, model: &ModelSpec) -> Option<u128> {
    let rates = PriceBook::rates(model, &call.tokens)?;
    let (usual, long) = (call.tokens.cache_write, call.tokens.cache_write_long);
    // What is sent again stands before what is new, and so do the marks for the longer time.
    let long = tokens.min(long);
    let usual = (tokens - long).min(usual);
    let fresh = tokens - long - usual;
    let write = match model.cache.kind {
        CacheKind::Explicit => rates.write,
        _ => rates.write.max(rates.input),
    };
    let paid = [
        (long, rates.write_long),
        (usual, write),
        (fresh, rates.input),
    ];
    let paid: u128 = paid
        .into_iter()
        .map(|(tokens, rate)| u128::from(tokens) * u128::from(rate))
        .sum();
    Some(paid.saturating_sub(u128::from(tokens) * u128::from(rates.read)))
}
