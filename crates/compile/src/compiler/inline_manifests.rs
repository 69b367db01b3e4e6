//! Manifests in the place of what a single compile would leave out, for those who keep no tree.
//!
//! Not here: compactions that are stored, which are the engine's.

use std::collections::BTreeSet;

use contexture_condense::{CoveredItem, Manifest, TextBudget};
use contexture_ir::{Compaction, Item, Part, Raw, TextPart};
use contexture_tokens::TokenCounter;
use contexture_wire::Format;

use crate::history::{ActiveCovers, COVERS};
use crate::input::{Cover, PathItem};
use contexture_report::{OmitReason, Omitted};
use serde::{Deserialize, Serialize};

/// A manifest takes at most this per cent of what it stands for, and all of them of the room for the request …
const SHARE: u64 = 15;
/// … and each may always take so many tokens.
const LEAST: u64 = 200;

/// A span of a path for which a manifest stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InlineSpan {
    /// Index of its first item.
    pub(crate) first: usize,
    /// Index of its last item.
    pub(crate) last: usize,
    /// Length of the path when the manifest was made. What came later changes nothing of what it says.
    pub(crate) made_at: usize,
}

/// A path with manifests behind its end, and what each stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct InlinedManifests {
    pub(crate) path: Vec<PathItem>,
    pub(crate) covers: Vec<Cover>,
}

/// Returns the spans that need manifests on a path of `items` items: those that had one, and what was trimmed; `None` if
/// nothing was. Neighbouring spans become one.
pub(crate) fn next_spans(
    before: &[InlineSpan],
    items: usize,
    omitted: &[Omitted],
) -> Option<Vec<InlineSpan>> {
    let trimmed = omitted
        .iter()
        .filter(|span| span.reason == OmitReason::Trimmed);
    let trimmed = trimmed
        // Manifests of the round before stand behind the end of the path and may be trimmed
        // themselves; they are no originals.
        .filter(|span| span.last < items)
        .map(|span| InlineSpan {
            first: span.first,
            last: span.last,
            made_at: items,
        });
    let mut spans: Vec<InlineSpan> = trimmed.collect();
    if spans.is_empty() {
        return None;
    }
    // Earlier spans are taken in again: the compile that trims more has to cover all of it anew.
    spans.extend(before);
    spans.sort_unstable_by_key(|span| (span.first, span.last));
    let mut merged: Vec<InlineSpan> = Vec::new();
    for next in spans {
        match merged.last_mut() {
            // Touching spans become one manifest, which says more in the same room than two.
            Some(span) if next.first <= span.last + 1 => {
                span.last = span.last.max(next.last);
                span.made_at = items;
            }
            _ => merged.push(next),
        }
    }
    Some(merged)
}

/// Stands manifests for spans of a path, in a request of at most `limit` tokens.
pub(crate) fn inline_manifests(
    path: &[PathItem],
    spans: &[InlineSpan],
    (target, limit): (Format, u64),
    counter: &dyn TokenCounter,
) -> InlinedManifests {
    let covers = (path.len()..).zip(spans);
    let covers = covers.map(|(compaction, span)| Cover {
        compaction,
        first: span.first,
        last: span.last,
    });
    let mut inlined = InlinedManifests {
        path: path.to_vec(),
        covers: covers.collect(),
    };
    let readable = path.iter().enumerate();
    // Hidden items must not leak through the manifest.
    let readable = readable.filter(|(_, item)| item.audience.model);
    let all: Vec<(usize, &Item)> = readable.map(|(at, one)| (at, &*one.item)).collect();
    let covering = ActiveCovers::from_covers(&inlined.covers, path.len(), |at| at >= path.len());
    let pinned = |at: usize| path.get(at).is_some_and(|item| item.pinned);
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
        })
        .collect()
    };
    for span in spans {
        let InlineSpan {
            first,
            last,
            made_at,
        } = *span;
        let beside = of(&|at| at < made_at && view.contains(&at));
        let originals = of(&|at| (first..=last).contains(&at) && !view.contains(&at));
        let weigh = |one: &CoveredItem<'_>| counter.count(&one.item.text()).count;
        let tokens: u64 = originals.iter().map(weigh).sum();
        // A manifest that takes as much as what it stands for would be trimmed in the next round.
        let of_span = tokens.saturating_mul(SHARE) / 100;
        // However long a history grows, most of the room is for what is new.
        let of_room = limit.saturating_mul(SHARE) / 100 / (spans.len() as u64).max(1);
        let most = of_span.min(of_room).max(LEAST);
        // Identifiers that the model still sees elsewhere would be written twice.
        let manifest = Manifest::from_items(&originals).without_identifiers(&beside);
        let text = manifest.render(TextBudget::Tokens(most, counter)).text;
        let mut compaction = Compaction {
            summary: vec![Part::SummaryText(TextPart::new(text))],
            ..Compaction::default()
        };
        let span = format!(r#"{{"first":{first},"last":{last}}}"#);
        compaction
            .extra
            // Marks the compaction as ours: one that no cover names is not shown.
            .set(COVERS, Raw::parse(span).unwrap_or_else(|_| Raw::null()));
        inlined.path.push(PathItem::new(Item::from(compaction)));
    }
    inlined
}
