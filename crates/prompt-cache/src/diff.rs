//! Two requests compared as a provider's cache compares them: where the prefix breaks, why, and what
//! that costs.
//!
//! Markers are not compared, nor is white space outside texts. The order of members is: it is part of
//! what a provider reads. Reasons are the provider's own words: those of Anthropic's cache diagnostics
//! (<https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics>) and of OpenAI's
//! (<https://developers.openai.com/api/docs/guides/prompt-caching/diagnostics>), both read on 2026-11-21. Gemini has
//! none and gets Anthropic's.

use contexture_catalogue::{CacheKind, ModelSpec};
use contexture_ir::{Fields, slice_range};
use contexture_tokens::TokenCounter;
use contexture_wire::{CacheKeyRules, Format, RequestPart, marker_field};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cost::Rates;
use crate::markers::{CacheMarker, MarkerPolicy, active_markers, place_markers};
use crate::outline::{
    Outline, OutlineError, OutlineSegment, ParsedOutline, parse_outline, setting_value,
};
use crate::predict::CacheSimulator;
use crate::rules::CacheRules;

/// How many characters are shown before and behind a difference.
const SHOWN: (usize, usize) = (24, 48);

/// What two requests are compared for.
#[derive(Clone, Copy, Debug)]
pub struct DiffTarget<'a> {
    /// The format of both.
    pub format: Format,
    /// The model, for its cache and its prices; without it every prefix counts as cached, and there
    /// is no money.
    pub model: Option<&'a ModelSpec>,
    /// What counts tokens.
    pub counter: &'a dyn TokenCounter,
}

/// What the second of two requests finds in a cache that the first has filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheDiff {
    /// Whether everything of the first that is cached stands at the beginning of the second.
    pub holds: bool,
    /// Where they differ first; absent if one begins with the whole other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// How many tokens the second has, at a best guess.
    pub tokens: u64,
    /// How many of them it reads from the cache.
    pub read: u64,
    /// How many it would read if nothing had changed, and does not.
    pub rebilled: u64,
    /// What those cost; absent if no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<RebilledCost>,
}

/// What tokens cost that are not read from a cache, in pico-dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RebilledCost {
    /// As it is.
    pub now: u128,
    /// If they were read from the cache.
    pub cached: u128,
}

/// The first difference of two requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Where it is: `tools[3].description`, `messages[12].content[0].text`, `model`.
    pub path: String,
    /// The name of the tool it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The provider's word for the reason.
    pub reason: &'static str,
    /// The offset of the first differing byte in the cache's order, of markers and white space cleared.
    pub byte: usize,
    /// How many bytes the second request has in that order.
    pub bytes: usize,
    /// Where that is in the second request's text; absent where it says nothing there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_byte: Option<usize>,
    /// What the first says there, shortened.
    pub before: String,
    /// What the second says there, shortened.
    pub after: String,
    /// What to do about it.
    pub hint: &'static str,
}

/// Why two requests cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// The first is no request of the format.
    #[error("the first request cannot be read")]
    First(#[source] OutlineError),
    /// The second is no request of the format.
    #[error("the second request cannot be read")]
    Second(#[source] OutlineError),
}

/// Compares two requests of one format.
///
/// # Errors
/// [`DiffError`] if one of them is no request of that format.
pub fn cache_diff(
    first: &str,
    second: &str,
    target: &DiffTarget<'_>,
) -> Result<CacheDiff, DiffError> {
    let DiffTarget {
        format, counter, ..
    } = *target;
    let a = parse_outline(format, first, counter).map_err(DiffError::First)?;
    let b = parse_outline(format, second, counter).map_err(DiffError::Second)?;
    let rules = assumed_rules(target);
    let common = a.outline.common_prefix(&b.outline);
    let (before, after) = (&a.outline.segments, &b.outline.segments);
    // A longer request that begins with the other one is no difference: that is how conversations
    // grow.
    let differ =
        a.outline.scope != b.outline.scope || (common < before.len() && common < after.len());
    let difference = differ.then(|| first_difference(&a, &b, second, common));
    let markers = active_or_placed_markers(&a.outline, &rules);
    let cached = cached_segment_count(&a.outline, &rules, &markers);
    let mut trace = CacheSimulator::new(rules.clone());
    trace.record_call(&a.outline, &markers, 0);
    // What the first request would read if it came again is the most that the second could have read.
    let full = trace.clone().record_call(&a.outline, &markers, 0).read;
    let used = trace.record_call(
        &b.outline,
        &self::active_or_placed_markers(&b.outline, &rules),
        0,
    );
    // An extended request reads less than all of itself without having lost anything.
    let rebilled = if differ {
        full.saturating_sub(used.read)
    } else {
        0
    };
    let tokens = b.outline.tokens();
    let rates = target
        .model
        .and_then(|model| Rates::for_request(&model.prices, rules.kind, tokens));
    let money = rates.map(|rates| rebilled_cost(rebilled, &rates, &rules));
    let scope = a.outline.scope == b.outline.scope;
    Ok(CacheDiff {
        holds: !differ || (scope && common >= cached),
        difference,
        tokens,
        read: used.read,
        rebilled,
        money,
    })
}

/// The cache that two requests are compared for.
fn assumed_rules(target: &DiffTarget<'_>) -> CacheRules {
    match target.model {
        Some(model) => CacheRules::for_model(model, target.format),
        // Without a model every prefix counts as cached, so the diff shows where requests part whatever
        // the provider does.
        None => CacheRules {
            kind: CacheKind::Automatic,
            usual_ms: 1,
            ..CacheRules::none(target.format)
        },
    }
}

/// What tokens cost that are not read from the cache.
fn rebilled_cost(tokens: u64, rates: &Rates, rules: &CacheRules) -> RebilledCost {
    let times = |rate: u64| u128::from(tokens) * u128::from(rate);
    // With markers the lost part is written anew, at the higher price of writing.
    let now = if rules.is_marker_based() {
        rates.write
    } else {
        rates.input
    };
    RebilledCost {
        now: times(now),
        cached: times(rates.read),
    }
}

/// The markers of a request; those that belong there if it has none.
fn active_or_placed_markers(outline: &Outline, rules: &CacheRules) -> Vec<CacheMarker> {
    let own = outline.whole.is_some() || outline.segments.iter().any(|one| !one.markers.is_empty());
    // A request that sets no markers is compared as it could have been marked: otherwise nothing would
    // be cached and every diff would say so.
    match own {
        true => active_markers(outline, rules),
        false => place_markers(outline, rules, &[], MarkerPolicy::default()).markers,
    }
}

/// How many segments of a request are cached.
fn cached_segment_count(outline: &Outline, rules: &CacheRules, markers: &[CacheMarker]) -> usize {
    let last = markers.iter().map(|marker| marker.segment + 1).max();
    match last.filter(|_| rules.is_marker_based()) {
        Some(end) => end,
        None => outline.segments.len(),
    }
}

fn first_difference(
    a: &ParsedOutline<'_>,
    b: &ParsedOutline<'_>,
    second: &str,
    common: usize,
) -> Difference {
    // First, because another model or cache key makes every later difference irrelevant.
    if let Some((path, reason)) = scope_change(a, b) {
        return scope_difference(a, b, second, (path, reason));
    }
    let parts =
        |reading: &ParsedOutline<'_>| reading.outline.segments.get(common).map(|one| one.part);
    let part = parts(a).min(parts(b)).unwrap_or(RequestPart::Messages);
    // Where one request lacks the part, the path is that of the other.
    let owner = if parts(b) == Some(part) { b } else { a };
    let segment = owner.outline.segments.get(common);
    let leaf = segment_difference(a, b, common, part);
    let at = common_prefix_len(leaf.before, leaf.after);
    Difference {
        tool: (part == RequestPart::Tools)
            .then(|| tool_name(owner.texts.get(common).copied().unwrap_or_default()))
            .flatten(),
        reason: change_reason(
            a.outline.format.spec().cache_key(),
            part,
            segment.map_or(0, |one| one.index),
            leaf.after,
        ),
        byte: differing_byte(a, b, common),
        bytes: byte_count(b, usize::MAX),
        text_byte: slice_offset(second, leaf.after).map(|start| start + at),
        before: text_around(leaf.before, at),
        after: text_around(leaf.after, at),
        hint: change_hint(part),
        path: leaf.path,
    }
}

/// The difference of requests that never share a cache.
fn scope_difference(
    a: &ParsedOutline<'_>,
    b: &ParsedOutline<'_>,
    second: &str,
    (path, reason): (&'static str, &'static str),
) -> Difference {
    let value =
        |reading: &ParsedOutline<'_>| text_around(setting_value(&reading.fields, &[path]), 0);
    let place = b.fields.get(&[path]);
    Difference {
        path: path.to_owned(),
        tool: None,
        reason,
        byte: 0,
        bytes: byte_count(b, usize::MAX),
        text_byte: place.and_then(|one| slice_offset(second, one.get())),
        before: value(a),
        after: value(b),
        hint: "a cache is never shared across these: keep it the same within a conversation",
    }
}

/// The innermost difference of two requests in the first segment that they do not share, which is of this part.
fn segment_difference<'a>(
    a: &ParsedOutline<'a>,
    b: &ParsedOutline<'a>,
    common: usize,
    part: RequestPart,
) -> JsonDifference<'a> {
    fn segment<'r>(reading: &'r ParsedOutline<'_>, at: usize) -> Option<&'r OutlineSegment> {
        reading.outline.segments.get(at)
    }
    let is_in = |reading| segment(reading, common).is_some_and(|one| one.part == part);
    let owner = if is_in(b) { b } else { a };
    let path = segment(owner, common).map_or_else(String::new, |one| one.path.clone());
    let (here, there) = (a.texts.get(common).copied(), b.texts.get(common).copied());
    // Only values in the same place are compared member by member; a tool against a message would give
    // an arbitrary path.
    match (here, there) {
        (Some(here), Some(there)) if is_in(a) && is_in(b) => {
            innermost_difference(here, there, path, a.outline.format, 32)
        }
        _ => JsonDifference {
            path,
            before: here.filter(|_| is_in(a)).unwrap_or_default(),
            after: there.filter(|_| is_in(b)).unwrap_or_default(),
        },
    }
}

/// The offset of the first differing byte in the cache's order.
fn differing_byte(a: &ParsedOutline<'_>, b: &ParsedOutline<'_>, common: usize) -> usize {
    fn bare<'r>(reading: &'r ParsedOutline<'_>, at: usize) -> &'r str {
        reading.bare.get(at).map_or("", String::as_str)
    }
    byte_count(b, common) + common_prefix_len(bare(a, common), bare(b, common))
}

/// How many bytes the first so many segments have.
fn byte_count(reading: &ParsedOutline<'_>, segments: usize) -> usize {
    let counted = reading.outline.segments.iter().take(segments);
    counted.map(|one| one.bytes).sum()
}

/// The member across which a cache is not shared that differs first, and the word for it.
fn scope_change(
    a: &ParsedOutline<'_>,
    b: &ParsedOutline<'_>,
) -> Option<(&'static str, &'static str)> {
    if a.model != b.model {
        return Some(("model", "model_changed"));
    }
    let own = |reading: &ParsedOutline<'_>, name: &str| {
        setting_value(&reading.fields, &[name]).to_owned()
    };
    let scopes = a.outline.format.spec().cache_key().scopes.iter();
    scopes
        .copied()
        .find(|(name, _)| own(a, name) != own(b, name))
}

fn change_reason(
    rules: &CacheKeyRules,
    part: RequestPart,
    setting: usize,
    after: &str,
) -> &'static str {
    let compaction = rules.reasons.compaction;
    let compacted = compaction.filter(|(sign, _)| after.contains(sign));
    match (part, compacted) {
        (RequestPart::Tools, _) => "tools_changed",
        (RequestPart::Form | RequestPart::Settings, _) => {
            rules.settings.get(setting).map_or("", |one| one.reason)
        }
        (_, Some((_, reason))) => reason,
        (RequestPart::System, None) => rules.reasons.system,
        (RequestPart::Messages, None) => rules.reasons.messages,
    }
}

const fn change_hint(part: RequestPart) -> &'static str {
    match part {
        RequestPart::Tools => {
            "tools stand before everything: keep their order and their words, and say what changes behind the history"
        }
        RequestPart::Form | RequestPart::Settings => {
            "keep this setting the same within a conversation"
        }
        RequestPart::System => {
            "say what changes behind the history: a tail or volatile contribution"
        }
        RequestPart::Messages => {
            "earlier messages were edited: append instead, or clear and shorten them in few large steps"
        }
    }
}

/// The innermost values that differ.
struct JsonDifference<'a> {
    path: String,
    before: &'a str,
    after: &'a str,
}

fn innermost_difference<'a>(
    before: &'a str,
    after: &'a str,
    path: String,
    format: Format,
    depth: usize,
) -> JsonDifference<'a> {
    let whole = |path| JsonDifference {
        path,
        before,
        after,
    };
    // Deeper nesting is shown as one value: the path would be too long to read, and recursion stays
    // bounded.
    if depth == 0 {
        return whole(path);
    }
    if let (Ok(a), Ok(b)) = (Fields::parse(before), Fields::parse(after)) {
        let own = |fields: &Fields<'a>| -> Vec<(String, &'a str)> {
            let all = fields
                .iter()
                .filter(|(key, _)| Some(*key) != marker_field(format));
            all.map(|(key, value)| (key.to_owned(), value.get()))
                .collect()
        };
        let (a, b) = (own(&a), own(&b));
        let first = a.iter().zip(&b).find(|(a, b)| a != b);
        return match first {
            Some(((name, before), (other, after))) if name == other => {
                innermost_difference(before, after, format!("{path}.{name}"), format, depth - 1)
            }
            _ => whole(path),
        };
    }
    let list = |text: &'a str| -> Option<Vec<&'a RawValue>> { serde_json::from_str(text).ok() };
    if let (Some(a), Some(b)) = (list(before), list(after)) {
        let first = a.iter().zip(&b).position(|(a, b)| a.get() != b.get());
        return match first.and_then(|at| Some((at, a.get(at)?, b.get(at)?))) {
            Some((at, before, after)) => innermost_difference(
                before.get(),
                after.get(),
                format!("{path}[{at}]"),
                format,
                depth - 1,
            ),
            None => whole(path),
        };
    }
    whole(path)
}

/// How many bytes both begin with, cut at a character.
fn common_prefix_len(a: &str, b: &str) -> usize {
    let letters = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
    letters.map(|(letter, _)| letter.len_utf8()).sum()
}

/// A stretch of a text around a place.
fn text_around(text: &str, at: usize) -> String {
    let (before, behind) = SHOWN;
    let (start, rest) = text.split_at_checked(at).unwrap_or((text, ""));
    let skipped = start.chars().count().saturating_sub(before);
    let mut out: String = start
        .chars()
        .skip(skipped)
        .chain(rest.chars().take(behind))
        .collect();
    if skipped > 0 {
        out.insert(0, '…');
    }
    if rest.chars().nth(behind).is_some() {
        out.push('…');
    }
    out
}

/// Where a slice of a text begins in it; nothing if it is empty, or a slice of another.
fn slice_offset(text: &str, part: &str) -> Option<usize> {
    let range = slice_range(text, part).filter(|range| !range.is_empty());
    range.map(|range| range.start)
}

fn tool_name(tool: &str) -> Option<String> {
    let fields = Fields::parse(tool).ok()?;
    let own = setting_value(&fields, &["name"]);
    let inner = setting_value(&fields, &["function", "name"]);
    serde_json::from_str(if own.is_empty() { inner } else { own }).ok()
}
