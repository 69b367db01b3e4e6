//! Which part of a path a compaction may stand for.
//!
//! A path can be cut between rounds, and nowhere where a call would lose its output or an earlier compaction a part of
//! what it stands for.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use contexture_compile::{Cover, PathItem};
use contexture_ir::{Item, NodeId};
use contexture_store::Node;

/// Where a path can be cut: `legal[i]` is the cut before its item `i`.
#[derive(Debug)]
pub(crate) struct CutPoints {
    legal: Vec<bool>,
}

/// What decides whether two neighbours are of one block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CutSide {
    User,
    Model,
    Outputs,
    /// It belongs to what stands before it.
    Beside,
}

fn cut_side(item: &Item) -> CutSide {
    match item {
        Item::FunctionCallOutput(_) => CutSide::Outputs,
        Item::Message(_) if !item.is_model_output() => CutSide::User,
        Item::Compaction(_) | Item::Extension(_) => CutSide::Beside,
        _ => CutSide::Model,
    }
}

impl CutPoints {
    /// The seams of a path, whatever is covered.
    pub(crate) fn from_path(nodes: &[Arc<Node>], items: &[PathItem]) -> Self {
        let mut legal = vec![true; items.len() + 1];
        let mut before = CutSide::User;
        for (at, item) in items.iter().enumerate().skip(1) {
            let now = cut_side(&item.item);
            // Outputs belong to the calls before them, neighbours of one side to one round.
            let joined = now == CutSide::Beside || now == before || now == CutSide::Outputs;
            if let Some(cut) = legal.get_mut(at) {
                *cut = !joined;
            }
            if now != CutSide::Beside {
                before = now;
            }
        }
        let places: BTreeMap<NodeId, usize> = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.id, at))
            .collect();
        // A cut between a call and its output, counted by where such stretches begin and end.
        let mut open = vec![0_i64; items.len() + 2];
        for (at, node) in nodes.iter().enumerate() {
            let call = node.answers.and_then(|call| places.get(&call).copied());
            if let Some(call) = call.filter(|call| *call < at) {
                for (place, step) in [(call + 1, 1), (at + 1, -1)] {
                    if let Some(open) = open.get_mut(place) {
                        *open += step;
                    }
                }
            }
        }
        // A running sum over the marks: linear, however many calls overlap.
        let mut depth = 0;
        for (cut, step) in legal.iter_mut().zip(open) {
            depth += step;
            *cut &= depth == 0;
        }
        Self { legal }
    }

    /// The same without cuts inside what is covered.
    pub(crate) fn excluding_covers(mut self, covers: &[Cover]) -> Self {
        for cover in covers {
            // The cut before the first covered item stays legal: a new span may begin where an earlier one does.
            let inside = cover.first + 1..=cover.last;
            if let Some(cuts) = self.legal.get_mut(inside) {
                cuts.fill(false);
            }
        }
        self
    }

    /// The smallest span with whole blocks that has these items.
    pub(crate) fn align_span(&self, span: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
        let cut = |at: &usize| self.legal.get(*at) == Some(&true);
        let first = (0..=*span.start()).rev().find(cut)?;
        let end = (span.end() + 1..self.legal.len()).find(cut)?;
        Some(first..=end - 1)
    }

    /// The longest span from `start` on behind which at least `keep` of the weights stand.
    pub(crate) fn longest_span(
        &self,
        start: usize,
        weights: &[u64],
        keep: u64,
    ) -> Option<RangeInclusive<usize>> {
        let cut = |at: usize| self.legal.get(at) == Some(&true);
        let first = (start..weights.len()).find(|at| cut(*at))?;
        let mut kept_weight = 0_u64;
        for (at, weight) in weights.iter().enumerate().rev() {
            if at <= first {
                break;
            }
            kept_weight = kept_weight.saturating_add(*weight);
            // `at` begins what stays; something stays in any case.
            if kept_weight >= keep.max(1) && cut(at) {
                return Some(first..=at - 1);
            }
        }
        None
    }
}

/// Whether two spans neither nest nor part.
pub(crate) fn is_partial_overlap(span: &RangeInclusive<usize>, cover: &Cover) -> bool {
    let apart = cover.last < *span.start() || *span.end() < cover.first;
    let inside = span.contains(&cover.first) && span.contains(&cover.last);
    let around = cover.first <= *span.start() && *span.end() <= cover.last;
    !(apart || inside || around)
}

#[cfg(test)]
mod tests {
    use contexture_ir::{FunctionCall, FunctionCallOutput, Message, Output, Role};

    use super::*;

    fn seams(items: Vec<Item>) -> CutPoints {
        CutPoints::from_path(&[], &PathItem::from_items(items))
    }

    fn user() -> Item {
        Message::text(Role::User, "u").into()
    }

    fn model() -> Item {
        Message::text(Role::Assistant, "a").into()
    }

    fn call() -> Item {
        FunctionCall::new("c", "f", "{}").into()
    }

    fn output() -> Item {
        FunctionCallOutput::new("c", Output::Text("o".into())).into()
    }

    #[test]
    fn a_path_is_cut_between_rounds() {
        let seams = seams(vec![
            user(),
            model(),
            call(),
            output(),
            model(),
            user(),
            user(),
        ]);
        let cuts: Vec<usize> = (0..8).filter(|at| seams.legal[*at]).collect();
        assert_eq!(cuts, [0, 1, 4, 5, 7]);
        assert_eq!(seams.align_span(&(2..=2)), Some(1..=3));
        assert_eq!(seams.align_span(&(5..=6)), Some(5..=6));
        let weights = [10; 7];
        assert_eq!(seams.longest_span(1, &weights, 15), Some(1..=4));
        assert_eq!(seams.longest_span(0, &weights, 25), Some(0..=3));
        assert_eq!(seams.longest_span(0, &weights, 10_000), None);
        assert_eq!(seams.longest_span(0, &weights, 0), Some(0..=4));
        let covered = seams.excluding_covers(&[Cover {
            compaction: 6,
            first: 1,
            last: 4,
        }]);
        assert_eq!(covered.align_span(&(4..=4)), Some(1..=4));
    }

    #[test]
    fn spans_nest_or_part() {
        let cover = Cover {
            compaction: 9,
            first: 2,
            last: 4,
        };
        for (span, expected) in [
            (0..=1, false),
            (5..=6, false),
            (2..=4, false),
            (0..=8, false),
            (3..=3, false),
            (1..=3, true),
            (4..=5, true),
        ] {
            assert_eq!(is_partial_overlap(&span, &cover), expected, "{span:?}");
        }
    }
}
