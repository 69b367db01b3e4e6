//! A finished payload made ready for the provider's cache: marks set, or a cache object named.

use contexture_ir::ContentHash;
use contexture_prompt_cache::{
    CacheAdvice, CacheReport, CacheRules, CachedContent, CachedPrefix, CallHorizon, ContentIgnored,
    ContentReport, MarkerPlan, Prefix, Rates, SegmentList, advise_cache_object, place_markers,
    predict_usage,
};

use crate::blocks::SharedElements;
use crate::growing::PrefixHashes;
use crate::input::CompileInput;
use crate::payload::body::Payload;
use crate::payload::outline::SplitOutline;

/// What the cache has to do with a payload.
pub(crate) struct MarkedPayload {
    pub(crate) cache: CacheReport,
    pub(crate) kept: Vec<CachedPrefix>,
    pub(crate) advice: Option<CacheAdvice>,
    /// The hash over all segments of the outline.
    pub(crate) segments: ContentHash,
}

/// Sets the cache marks or names the cache object, and tells what is expected of the cache and what it
/// will keep.
pub(crate) fn apply_caching(
    payload: &mut Payload,
    input: &CompileInput<'_>,
    target: &str,
    (shared, hashes): (&SharedElements, &mut PrefixHashes),
) -> MarkedPayload {
    let policy = &input.request.cache;
    let same = |prefix: &&Prefix| prefix.target == target;
    let before = input.plan.prefix.as_ref().filter(same);
    // What the call before left counts only for the same target: another model has another cache.
    let previous = before.map_or(&[][..], |_| &input.plan.cached_prefixes);
    let mut outline = payload.split_outline(shared, hashes);
    // Cheap: envelope and rope are shared.
    let unmarked = payload.clone();
    // What cannot carry its mark after all (a blank output at OpenAI) leaves it to what stands before.
    let marking = loop {
        let mut marking = match policy.marker_policy {
            Some(marks) => place_markers(&outline, &policy.rules, previous, marks),
            None => MarkerPlan::from_existing(&outline, &policy.rules),
        };
        let failed = payload.set_markers(&mut marking);
        if failed.is_empty() {
            break marking;
        }
        // Each round forbids at least one segment, so this ends.
        outline.forbid_markers(&failed);
        *payload = unmarked.clone();
    };
    let mut predicted = predict_usage(&outline, &policy.rules, &marking.markers, previous);
    let content = policy.content.as_ref();
    let content =
        content.map(|content| use_cached_content(payload, content, &outline, &policy.rules));
    // Tokens in an object are billed as read, whatever the automatic cache would have found.
    let held = content.as_ref().map_or(0, |content| content.tokens);
    let more = held.saturating_sub(predicted.read).min(predicted.fresh);
    (predicted.read, predicted.fresh) = (predicted.read + more, predicted.fresh - more);
    let rates = Rates::for_request(&policy.prices, policy.rules.kind, predicted.total_tokens());
    let horizon = CallHorizon {
        calls: input.request.history.expected_calls(),
        state: policy.state,
    };
    let prefix = |segments| payload.cached_prefix_hash(&outline, segments);
    // An object is advised only where none is in use.
    let advice = (held == 0)
        .then(|| advise_cache_object(&outline, &policy.rules, rates.as_ref(), &horizon, prefix))
        .flatten();
    let first = before.is_none();
    let cache = CacheReport {
        content,
        first,
        ..CacheReport::new(&policy.rules, &outline, &marking, predicted, rates)
    };
    MarkedPayload {
        cache,
        kept: marking.cached_prefixes,
        advice,
        segments: outline.prefix_hash(usize::MAX),
    }
}

/// Names the cache object, if it holds just how the payload begins.
fn use_cached_content(
    payload: &mut Payload,
    content: &CachedContent,
    outline: &SplitOutline<'_>,
    rules: &CacheRules,
) -> ContentReport {
    let named = match rules.supports_cached_content() {
        true => payload.name_cached_content(content, outline),
        false => Err(ContentIgnored::Unsupported),
    };
    let (tokens, ignored) = match named {
        Ok(naming) => {
            *payload = naming;
            let held = outline.totals(0..content.segments).tokens;
            (Some(held), None)
        }
        Err(why) => (None, Some(why)),
    };
    ContentReport {
        name: content.name.clone(),
        tokens: tokens.unwrap_or(0),
        ignored,
    }
}
