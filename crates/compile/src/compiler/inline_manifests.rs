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

/// A manifest takes at most this per cent of what it stands for …
const SHARE: u64 = 15;
/// … and may always take so many tokens.
const LEAST: u64 = 200;

/// A path with manifests behind its end, and what each stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct InlinedManifests {
    pub(crate) path: Vec<PathItem>,
    pub(crate) covers: Vec<Cover>,
}

/// Stands manifests for what was trimmed of a path of `items` items or stood for before; `None` if
/// nothing was trimmed. Neighbouring spans become one.
pub(crate) fn inline_manifests(
    before: &InlinedManifests,
    items: usize,
    omitted: &[Omitted],
    target: Format,
    counter: &dyn TokenCounter,
) -> Option<InlinedManifests> {
    let trimmed = omitted
        .iter()
        .filter(|span| span.reason == OmitReason::Trimmed);
    let trimmed = trimmed
        // Manifests of the round before stand behind the end of the path and may be trimmed
        // themselves; they are no originals.
        .filter(|span| span.last < items)
        .map(|span| (span.first, span.last));
    let mut spans: Vec<(usize, usize)> = trimmed.collect();
    if spans.is_empty() {
        return None;
    }
    // Earlier spans are taken in again: the compile that trims more has to cover all of it anew.
    spans.extend(before.covers.iter().map(|cover| (cover.first, cover.last)));
    spans.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (first, last) in spans {
        match merged.last_mut() {
            // Touching spans become one manifest, which says more in the same room than two.
            Some(span) if first <= span.1 + 1 => span.1 = span.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    let path = before.path.get(..items).unwrap_or(&before.path);
    let covers = (path.len()..).zip(merged);
    let covers = covers.map(|(compaction, (first, last))| Cover {
        compaction,
        first,
        last,
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
            hash: path.get(*index).map(|item| item.hash),
        })
        .collect()
    };
    let beside = of(&|at| view.contains(&at));
    for &Cover { first, last, .. } in &inlined.covers {
        let originals = of(&|at| (first..=last).contains(&at) && !view.contains(&at));
        let weigh = |one: &CoveredItem<'_>| counter.count(&one.item.text()).count;
        let tokens: u64 = originals.iter().map(weigh).sum();
        // A manifest that takes as much as what it stands for would be trimmed in the next round.
        let most = (tokens.saturating_mul(SHARE) / 100).max(LEAST);
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
    Some(inlined)
}
