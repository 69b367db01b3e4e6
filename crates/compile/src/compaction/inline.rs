//! Manifests in the place of what a single compile would leave out, for those who keep no tree.
//!
//! Not here: compactions that are stored, which are the engine's.

use contexture_ir::{Compaction, Item, Part, Raw, TextPart};
use contexture_tokens::TokenCounter;

use super::manifest::{Covered, Manifest};
use super::render::Allowance;
use crate::passes::cover::COVERS;
use crate::report::document::{OmitReason, Omitted};
use crate::request::{Cover, PathItem};

/// A manifest takes at most this per cent of what it stands for …
const SHARE: u64 = 15;
/// … and may always take so many tokens.
const LEAST: u64 = 200;

/// A path with manifests behind its end, and what each stands for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inlined {
    pub(crate) path: Vec<PathItem>,
    pub(crate) covers: Vec<Cover>,
}

/// Stands manifests for what was trimmed of a path of `items` items or stood for before; `None` if
/// nothing was trimmed. Neighbouring spans become one.
pub(crate) fn inline(
    before: &Inlined,
    items: usize,
    omitted: &[Omitted],
    counter: &dyn TokenCounter,
) -> Option<Inlined> {
    let trimmed = omitted
        .iter()
        .filter(|span| span.why == OmitReason::Trimmed);
    let trimmed = trimmed
        .filter(|span| span.last < items)
        .map(|span| (span.first, span.last));
    let mut spans: Vec<(usize, usize)> = trimmed.collect();
    if spans.is_empty() {
        return None;
    }
    spans.extend(before.covers.iter().map(|cover| (cover.first, cover.last)));
    spans.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::new();
    for (first, last) in spans {
        match merged.last_mut() {
            Some(span) if first <= span.1 + 1 => span.1 = span.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    let mut inlined = Inlined {
        path: before.path.get(..items).unwrap_or(&before.path).to_vec(),
        covers: Vec::new(),
    };
    let inside = |at: usize| {
        merged
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&at))
    };
    let readable = |keep: &dyn Fn(usize) -> bool| -> Vec<Covered<'_>> {
        let all = before.path.iter().take(items).enumerate();
        all.filter(|(at, item)| item.audience.model && keep(*at))
            .map(|(index, item)| Covered {
                index,
                item: &item.item,
                hash: Some(item.hash),
            })
            .collect()
    };
    let view = readable(&|at| !inside(at));
    for &(first, last) in &merged {
        let originals = readable(&|at| (first..=last).contains(&at));
        let weigh = |one: &Covered<'_>| counter.count(&one.item.text()).count;
        let tokens: u64 = originals.iter().map(weigh).sum();
        let most = (tokens.saturating_mul(SHARE) / 100).max(LEAST);
        let manifest = Manifest::of(&originals).beside(&view);
        let text = manifest.render(Allowance::Tokens(most, counter)).text;
        let mut compaction = Compaction {
            summary: vec![Part::SummaryText(TextPart::new(text))],
            ..Compaction::default()
        };
        let span = format!(r#"{{"first":{first},"last":{last}}}"#);
        compaction
            .extra
            .set(COVERS, Raw::parse(span).unwrap_or_else(|_| Raw::null()));
        inlined.covers.push(Cover {
            compaction: inlined.path.len(),
            first,
            last,
        });
        inlined.path.push(PathItem::new(Item::from(compaction)));
    }
    Some(inlined)
}
