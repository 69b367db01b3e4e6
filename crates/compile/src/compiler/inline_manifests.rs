//! Manifests in the place of what a single compile would leave out, for those who keep no tree.
//!
//! They obey the laws of [`crate::compaction_schedule`]. The text of a manifest is never kept: it is made of the items again
//! in each compile, and is the same as long as its span and those before it are.
//!
//! Not here: compactions that are stored, which are the engine's.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use contexture_condense::{CoveredItem, Manifest, READ_TOOL, TextBudget, ToolHints, has_read_tool};
use contexture_ir::{Compaction, Item, Part, Raw, TextPart};
use contexture_tokens::TokenCounter;

use crate::compaction_schedule::{
    MANIFEST_PERCENT, StandingCompaction, absorbed_count, gains_enough, manifest_budget,
    without_quoted_rules,
};
use crate::history::{ActiveCovers, COVERS};
use crate::input::{CompileRequest, Cover, PathItem};
use contexture_report::{OmitReason, Omitted};
use serde::{Deserialize, Serialize};

/// A span of a path for which a manifest stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InlineSpan {
    /// Index of its first item.
    pub(crate) first: usize,
    /// Index of its last item.
    pub(crate) last: usize,
    /// Length of the path when the manifest was made. What came later changes nothing of what it says.
    pub(crate) made_at: usize,
    /// How often its items were summarised, this manifest included.
    #[serde(default = "first_generation")]
    pub(crate) generation: u32,
}

const fn first_generation() -> u32 {
    1
}

/// Whether a compile stands alone, or others come before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallRow {
    One,
    Next,
}

/// A path with manifests behind its end, and what each stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct InlinedManifests {
    pub(crate) path: Vec<PathItem>,
    pub(crate) covers: Vec<Cover>,
    /// What each manifest takes, in the order of the spans; 0 for a span whose manifest would gain too little.
    pub(crate) tokens: Vec<u64>,
}

impl InlinedManifests {
    /// Of the spans, those that have a manifest: what goes without one may have one with what is trimmed next.
    pub(crate) fn with_manifest(&self, spans: &[InlineSpan]) -> Vec<InlineSpan> {
        let spans = spans.iter().zip(&self.tokens);
        let made = spans.filter(|(_, tokens)| **tokens > 0);
        made.map(|(span, _)| *span).collect()
    }
}

/// Returns the spans of a path of `items` items that were trimmed and are in none of the spans that have a manifest.
/// Neighbours are one.
pub(crate) fn trimmed_spans(
    covered: &[InlineSpan],
    items: usize,
    omitted: &[Omitted],
) -> Vec<RangeInclusive<usize>> {
    let trimmed = omitted.iter().filter(|span| {
        // Manifests stand behind the end of the path and may be trimmed themselves; they are no originals.
        span.reason == OmitReason::Trimmed && span.last < items
    });
    // What was said before the newest manifest and is in none, such as a question that was kept once, is no new history.
    let behind = covered.iter().map(|span| span.last + 1).max().unwrap_or(0);
    let trimmed = trimmed.filter(|span| span.last >= behind);
    let spans = trimmed.map(|span| span.first.max(behind)..=span.last);
    merge_spans(Vec::new(), spans.collect())
}

/// Joins spans that touch.
pub(crate) fn merge_spans(
    mut spans: Vec<RangeInclusive<usize>>,
    more: Vec<RangeInclusive<usize>>,
) -> Vec<RangeInclusive<usize>> {
    spans.extend(more);
    spans.sort_unstable_by_key(|span| (*span.start(), *span.end()));
    let mut merged: Vec<RangeInclusive<usize>> = Vec::new();
    for next in spans {
        match merged.last_mut() {
            Some(span) if *next.start() <= span.end() + 1 => {
                *span = *span.start()..=*span.end().max(next.end());
            }
            _ => merged.push(next),
        }
    }
    merged
}

/// Returns the spans with a manifest once the new ones have theirs: the first of them takes some of those before it in.
/// `tokens` is what their manifests take.
pub(crate) fn next_spans(
    before: &[InlineSpan],
    tokens: &[u64],
    new: &[RangeInclusive<usize>],
    items: usize,
    all: u64,
) -> Vec<InlineSpan> {
    let mut spans = before.to_vec();
    for (at, new) in new.iter().enumerate() {
        let span = |first: usize, generation| InlineSpan {
            first,
            last: *new.end(),
            made_at: items,
            generation,
        };
        let standing = before.iter().zip(tokens);
        let standing: Vec<StandingCompaction> = standing
            .map(|(span, tokens)| StandingCompaction {
                tokens: *tokens,
                generation: span.generation,
            })
            .collect();
        // One compaction only: further spans are parts of the same one, between messages that stay.
        let absorbed = match at {
            0 => absorbed_count(&standing, items, all),
            _ => 0,
        };
        let taken_in = spans.split_off(spans.len().saturating_sub(absorbed));
        let generation = taken_in.iter().map(|span| span.generation).max();
        let first = taken_in.first().map_or(*new.start(), |span| span.first);
        spans.push(span(first, generation.unwrap_or(0).saturating_add(1)));
    }
    spans
}

/// Stands manifests for spans of a path.
pub(crate) fn inline_manifests(
    path: &[PathItem],
    spans: &[InlineSpan],
    (request, row): (&CompileRequest, CallRow),
    hints: &ToolHints,
    counter: &dyn TokenCounter,
) -> InlinedManifests {
    let mut inlined = InlinedManifests {
        path: path.to_vec(),
        ..InlinedManifests::default()
    };
    if spans.is_empty() {
        return inlined;
    }
    let covers = (path.len()..).zip(spans);
    let covers = covers.map(|(compaction, span)| Cover {
        compaction,
        first: span.first,
        last: span.last,
    });
    let covers: Vec<Cover> = covers.collect();
    let readable = path.iter().enumerate();
    // Hidden items must not leak through the manifest.
    let readable = readable.filter(|(_, item)| item.audience.model);
    let all: Vec<(usize, &Item)> = readable.map(|(at, one)| (at, &*one.item)).collect();
    let covering = ActiveCovers::from_covers(&covers, path.len(), |at| at >= path.len());
    let pinned = |at: usize| path.get(at).is_some_and(|item| item.pinned);
    let target = request.dialect.format;
    let view: BTreeSet<usize> = covering
        .shown_indexes(&all, pinned, target)
        .into_iter()
        .collect();
    let of = |keep: &dyn Fn(usize) -> bool| -> Vec<CoveredItem<'_>> {
        let kept = all.iter().filter(|(at, _)| keep(*at));
        kept.map(|(index, item)| CoveredItem {
            index: *index,
            item,
            // What is not stored has no link.
            hash: path
                .get(*index)
                .filter(|item| item.node.is_some())
                .map(|item| item.hash),
            // A list of items says no more than their roles.
            origin: None,
        })
        .collect()
    };
    let most = manifests_limit(request);
    for (at, span) in spans.iter().enumerate() {
        let InlineSpan {
            first,
            last,
            made_at,
            ..
        } = *span;
        let beside = of(&|at| at < made_at && view.contains(&at));
        let originals = of(&|at| (first..=last).contains(&at) && !view.contains(&at));
        // Identifiers that the model still sees elsewhere would be written twice.
        let manifest = Manifest::from_items_with(&originals, hints)
            .without_identifiers(&beside)
            .with_read_tool(has_read_tool(&request.tools).then_some(READ_TOOL));
        let manifest = without_quoted_rules(manifest, request.history.standing_rules);
        let covered = weigh_up_to(&originals, most.saturating_mul(4), counter);
        let left = most.saturating_sub(inlined.tokens.iter().sum());
        let budget = match row {
            CallRow::Next => manifest_budget(most, &inlined.tokens),
            // No other compile follows for which room would have to be left, but other spans may.
            CallRow::One if at + 1 < spans.len() => left / 4 * 3,
            CallRow::One => left,
        };
        let budget = budget.min(covered / 2);
        let text = manifest.render(TextBudget::Tokens(budget, counter)).text;
        let tokens = counter.count(&text).high;
        // A manifest that gains little would be trimmed in the next round.
        if !gains_enough(covered, tokens) || tokens > left {
            inlined.tokens.push(0);
            continue;
        }
        inlined.tokens.push(tokens);
        let mut compaction = Compaction {
            summary: vec![Part::SummaryText(TextPart::new(text))],
            ..Compaction::default()
        };
        let place = format!(r#"{{"first":{first},"last":{last}}}"#);
        compaction
            .extra
            // Marks the compaction as ours: one that no cover names is not shown.
            .set(COVERS, Raw::parse(place).unwrap_or_else(|_| Raw::null()));
        inlined.covers.push(Cover {
            compaction: inlined.path.len(),
            first,
            last,
        });
        inlined.path.push(PathItem::new(Item::from(compaction)));
    }
    inlined
}

/// What items weigh, as far as it matters: a span that is much longer than its manifest gains enough.
fn weigh_up_to(items: &[CoveredItem<'_>], most: u64, counter: &dyn TokenCounter) -> u64 {
    let mut all = 0_u64;
    for one in items {
        all = all.saturating_add(counter.count(&one.item.text()).count);
        if all > most {
            break;
        }
    }
    all
}

/// What all manifests of a request may take, in tokens.
pub(crate) const fn manifests_limit(request: &CompileRequest) -> u64 {
    request.window / 100 * MANIFEST_PERCENT as u64
        + request.window % 100 * MANIFEST_PERCENT as u64 / 100
}
