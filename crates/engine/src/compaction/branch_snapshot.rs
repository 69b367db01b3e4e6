//! A branch as a compaction sees it: the path, the covers in effect, what the view shows.
//!
//! Not here: what is stored for a span (`compact`).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use contexture_compile::compaction::{
    ActiveCovers, CoveredItem, StandingCompaction, absorbed_count,
};
use contexture_compile::{CompactAdvice, Cover};
use contexture_ir::{ContentHash, Item, NodeId, Part, ResponseId};
use contexture_store::{EntityKind, Error as StoreError, Node, NodeKind, PathEnd};
use contexture_tokens::TokenCounter;
use contexture_wire::Format;

use super::span::{CutPoints, is_partial_overlap};
use crate::error::EngineError;
use crate::handle::{Conversation, load_state_list, read_full_path};
use crate::path::StoredPath;
use crate::state::{Covers, Pins};

/// Which part of a history is to be compacted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OlderSpan {
    /// What a compile had to leave out.
    pub(crate) advice: Option<CompactAdvice>,
    /// How much stays behind it, in tokens.
    pub(crate) keep: u64,
    /// What all compactions in effect may take, in tokens.
    pub(crate) compactions: u64,
}

/// A path, what is in effect on it, and where that was read.
pub(crate) struct BranchSnapshot {
    pub(crate) path: Arc<StoredPath>,
    pub(crate) covers: Covers,
    pub(crate) places: Vec<Cover>,
    covering: ActiveCovers,
    pinned: BTreeSet<NodeId>,
}

pub(crate) async fn load_snapshot(
    chat: &Conversation,
    at: PathEnd,
) -> Result<BranchSnapshot, EngineError> {
    let path = read_full_path(chat, at).await?;
    // At the head that the path ended at, so that all of it is of one instant.
    let (covers, pins): (Covers, Pins) = match path.head {
        Some(head) => (
            load_state_list(chat, PathEnd::Node(head)).await?,
            load_state_list(chat, PathEnd::Node(head)).await?,
        ),
        None => Default::default(),
    };
    let places = covers.covers_on_path(&path);
    let compacts = |at: usize| is_compaction(&path, at);
    Ok(BranchSnapshot {
        covering: ActiveCovers::from_covers(&places, path.items.len(), compacts),
        pinned: pins.node_ids(),
        path,
        covers,
        places,
    })
}

impl BranchSnapshot {
    /// Where the item at `at` stands in the view.
    pub(crate) fn view_position(&self, at: usize) -> usize {
        self.covering.view_index(at)
    }

    /// The places of the path that the view for a target shows, in its order.
    pub(crate) fn positions_in_view(&self, target: Format) -> Vec<usize> {
        self.positions_shown_by(&self.covering, target)
    }

    /// The places of a span that go out of view once something stands for it, and all that are in view
    /// then: pins and the host's words among them.
    pub(crate) fn partition_span(
        &self,
        span: &RangeInclusive<usize>,
        target: Format,
    ) -> (Vec<usize>, BTreeSet<usize>) {
        // The compaction to be would be the next item, one behind the path.
        let compaction = self.path.items.len();
        let mut places = self.places.clone();
        places.push(Cover {
            compaction,
            first: *span.start(),
            last: *span.end(),
        });
        let compacts = |at: usize| at == compaction || is_compaction(&self.path, at);
        let covering = ActiveCovers::from_covers(&places, compaction, compacts);
        let stays: BTreeSet<usize> = self
            .positions_shown_by(&covering, target)
            .into_iter()
            .collect();
        let gone = span.clone().filter(|at| !stays.contains(at));
        (gone.collect(), stays)
    }

    fn positions_shown_by(&self, covering: &ActiveCovers, target: Format) -> Vec<usize> {
        let readable = self.path.nodes.iter().zip(&self.path.items).enumerate();
        let readable = readable.filter(|(_, (node, _))| node.audience.model);
        let items: Vec<(usize, &Item)> = readable.map(|(at, (_, one))| (at, &*one.item)).collect();
        let pinned = |at: usize| {
            let node = self.path.nodes.get(at);
            node.is_some_and(|node| self.pinned.contains(&node.id))
        };
        covering.shown_indexes(&items, pinned, target)
    }

    /// What each place of the path adds to the view, in tokens.
    pub(crate) fn token_weights(&self, shown: &[usize], counter: &dyn TokenCounter) -> Vec<u64> {
        let mut weights = vec![0; self.path.items.len()];
        for at in shown {
            let weight = self
                .path
                .items
                .get(*at)
                .map(|one| counter.count(&one.item.text()).count);
            // A compaction is shown where its span was: its weight counts there.
            if let Some(place) = weights.get_mut(self.view_position(*at)) {
                *place += weight.unwrap_or_default();
            }
        }
        weights
    }

    fn cut_points(&self) -> CutPoints {
        CutPoints::from_path(&self.path.nodes, &self.path.items).excluding_covers(&self.places)
    }

    /// The span that was asked for, with whole blocks.
    pub(crate) fn requested_span(
        &self,
        first: NodeId,
        last: NodeId,
    ) -> Result<RangeInclusive<usize>, EngineError> {
        let at = |id: NodeId| {
            let found = self.path.nodes.iter().position(|node| node.id == id);
            found.ok_or_else(|| StoreError::not_found(EntityKind::Node, id))
        };
        let (start, end) = (at(first)?, at(last)?);
        if start > end {
            return Err(EngineError::NothingToCompact {
                reason: "the span ends before it begins",
            });
        }
        // Aligned without regard to covers: a span may lie inside one, or around it, and the check follows.
        let blocks = CutPoints::from_path(&self.path.nodes, &self.path.items);
        let span = blocks.align_span(&(start..=end)).unwrap_or(start..=end);
        match self
            .places
            .iter()
            .find(|cover| is_partial_overlap(&span, cover))
        {
            Some(cover) => {
                let (first, last) = self.span_ends(&span)?;
                let compaction = self
                    .path
                    .nodes
                    .get(cover.compaction)
                    .map_or(first, |node| node.id);
                Err(EngineError::CoverOverlap {
                    first,
                    last,
                    compaction,
                })
            }
            None => Ok(span),
        }
    }

    /// Where the history begins that can be compacted: behind the first message of the user.
    fn opening(&self) -> usize {
        let first = self
            .path
            .nodes
            .iter()
            .position(|node| node.kind != NodeKind::User);
        // A second person's message, or a history that begins otherwise, is no opening.
        first.filter(|at| *at <= 1).unwrap_or(0)
    }

    /// What the opening takes of the view.
    pub(crate) fn opening_weight(&self, weights: &[u64]) -> u64 {
        weights
            .get(..self.opening())
            .unwrap_or_default()
            .iter()
            .sum()
    }

    /// The first place behind all compactions in effect.
    fn uncovered_start(&self) -> usize {
        let ends = self.covering.covers().iter().map(|cover| cover.last + 1);
        ends.max().unwrap_or(0).max(self.opening())
    }

    /// What a step adds on average behind the compactions: a recorded answer with what came before it; where none was
    /// recorded, what the model said at a time.
    pub(crate) fn mean_step(&self, weights: &[u64]) -> u64 {
        let start = self.uncovered_start();
        let nodes = self.path.nodes.get(start..).unwrap_or_default();
        let answers: BTreeSet<ResponseId> = nodes.iter().filter_map(|node| node.response).collect();
        let of_model = |node: &Arc<Node>| {
            matches!(
                node.kind,
                NodeKind::Assistant | NodeKind::FunctionCall | NodeKind::Reasoning
            )
        };
        let mut before = false;
        let begins = nodes.iter().filter(|node| {
            let begins = of_model(node) && !before;
            before = of_model(node);
            begins
        });
        let steps = match answers.len() {
            0 => begins.count(),
            recorded => recorded,
        };
        let all: u64 = weights.get(start..).unwrap_or_default().iter().sum();
        all / (steps as u64).max(1)
    }

    /// What the manifests of our compactions among some places take, in tokens.
    pub(crate) fn manifest_tokens(
        &self,
        places: &BTreeSet<usize>,
        counter: &dyn TokenCounter,
    ) -> Vec<u64> {
        let items = places.iter().filter_map(|at| self.path.items.get(*at));
        let manifests = items.filter_map(|one| match &*one.item {
            // The manifest stands behind the summary, if there is one.
            Item::Compaction(compaction) => compaction.summary.last().and_then(Part::as_text),
            _ => None,
        });
        manifests.map(|text| counter.count(text).high).collect()
    }

    /// The compactions in effect, in the order of what they stand for, with how often that was summarised.
    fn standing_compactions(&self, weights: &[u64]) -> Vec<(Cover, StandingCompaction)> {
        let generation = |outer: &Cover| {
            // Covers inside it nest or part, so the deepest row of them tells.
            let inside = self.places.iter();
            let inside = inside.filter(|one| outer.first <= one.first && one.last <= outer.last);
            let mut ends: Vec<(usize, i32)> = Vec::new();
            for cover in inside {
                ends.extend([(cover.first, 1), (cover.last + 1, -1)]);
            }
            ends.sort_unstable();
            let (mut depth, mut deepest) = (0_i32, 0_i32);
            for (_, step) in ends {
                depth += step;
                deepest = deepest.max(depth);
            }
            deepest.unsigned_abs()
        };
        let outer = self.covering.covers().iter();
        let behind_opening = outer.filter(|cover| cover.first >= self.opening());
        behind_opening
            .map(|cover| {
                let standing = StandingCompaction {
                    tokens: weights.get(cover.first).copied().unwrap_or_default(),
                    generation: generation(cover),
                };
                (*cover, standing)
            })
            .collect()
    }

    /// Whether anything was added since the newest compaction in effect.
    fn has_new_items(&self) -> bool {
        let newest = self.covering.covers().iter().map(|cover| cover.compaction);
        let Some(newest) = newest.max() else {
            return true;
        };
        let added = self.path.nodes.get(newest + 1..).unwrap_or_default();
        added
            .iter()
            .any(|node| !matches!(node.kind, NodeKind::Compaction | NodeKind::Extension))
    }

    /// What compactions in effect stand for that were redacted because of an item in it, with all behind it that is covered:
    /// it tells nothing any more, and what else was in it is lost to the model.
    pub(crate) fn redacted_span(&self) -> Option<RangeInclusive<usize>> {
        let outer = self.covering.covers();
        let is_tombstone = |cover: &&Cover| {
            let item = self.path.items.get(cover.compaction);
            item.is_some_and(|one| one.item.is_tombstone())
        };
        let first = outer.iter().find(is_tombstone)?.first;
        let last = outer.last()?.last;
        Some(first..=last)
    }

    /// The older part: from behind the compactions in effect, as far as advised, or until so many tokens are left. It begins
    /// earlier where it takes some of those compactions in.
    pub(crate) fn older_span(
        &self,
        weights: &[u64],
        request: OlderSpan,
    ) -> Result<RangeInclusive<usize>, EngineError> {
        let nothing = EngineError::NothingToCompact {
            reason: "the history is one round, or all of it is covered",
        };
        if let Some(span) = self.redacted_span() {
            return Ok(span);
        }
        if !self.has_new_items() {
            return Err(EngineError::NothingToCompact {
                reason: "nothing was added since the last compaction",
            });
        }
        let seams = self.cut_points();
        let start = self.uncovered_start();
        let advised = request.advice.map(|advice| advice.last);
        let advised = advised
            .filter(|last| *last >= start)
            .and_then(|last| seams.align_span(&(start..=last)))
            .filter(|span| *span.start() >= start && span.end() + 1 < weights.len());
        // The advice says what must go, our own span what should: the one that reaches further counts.
        let span = match (advised, seams.longest_span(start, weights, request.keep)) {
            (Some(advised), Some(own)) => *advised.start()..=(*advised.end()).max(*own.end()),
            (Some(span), None) | (None, Some(span)) => span,
            (None, None) => return Err(nothing),
        };
        let (covers, standing): (Vec<Cover>, Vec<StandingCompaction>) =
            self.standing_compactions(weights).into_iter().unzip();
        let absorbed = absorbed_count(&standing, self.path.items.len(), request.compactions);
        let first_absorbed = covers.get(covers.len() - absorbed..).unwrap_or_default();
        Ok(match first_absorbed.first() {
            // All of them: what stands between them and the opening comes too.
            Some(_) if absorbed == covers.len() => self.opening()..=*span.end(),
            Some(cover) => cover.first..=*span.end(),
            None => span,
        })
    }

    pub(crate) fn span_ends(
        &self,
        span: &RangeInclusive<usize>,
    ) -> Result<(NodeId, NodeId), EngineError> {
        let id = |at: usize| self.path.nodes.get(at).map(|node| node.id);
        match (id(*span.start()), id(*span.end())) {
            (Some(first), Some(last)) => Ok((first, last)),
            _ => Err(EngineError::NothingToCompact {
                reason: "the history is empty",
            }),
        }
    }

    /// Of some places the items that models may read.
    pub(crate) fn readable_items<'s>(
        &'s self,
        places: impl IntoIterator<Item = &'s usize>,
    ) -> Vec<CoveredItem<'s>> {
        let places = places.into_iter();
        places.filter_map(|at| self.readable_item(*at)).collect()
    }

    /// An item that models may read.
    fn readable_item(&self, at: usize) -> Option<CoveredItem<'_>> {
        let node = self.path.nodes.get(at).filter(|node| node.audience.model)?;
        Some(CoveredItem {
            index: at,
            item: &self.path.items.get(at)?.item,
            hash: Some(node.content_hash),
            origin: Some(node.origin),
        })
    }

    /// The hash over what some places say: equal for a copy of them on another branch.
    pub(crate) fn content_hash(&self, places: &[usize]) -> ContentHash {
        let nodes = places.iter().filter_map(|at| self.path.nodes.get(*at));
        let tells =
            |node: &&Arc<Node>| node.audience.model && !matches!(node.kind, NodeKind::Compaction);
        // Meaning hashes, so that a copy in another format has the same hash; an item without one has its bytes.
        let hashes = nodes
            .filter(tells)
            .map(|node| node.meaning_hash.unwrap_or(node.content_hash));
        let bytes: Vec<u8> = hashes.flat_map(|hash| *hash.as_bytes()).collect();
        ContentHash::of(&bytes)
    }
}

/// Whether an item of a path is a compaction.
fn is_compaction(path: &StoredPath, at: usize) -> bool {
    let item = path.items.get(at).map(|one| &*one.item);
    matches!(item, Some(Item::Compaction(_)))
}
