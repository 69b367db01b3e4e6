//! A branch as a compaction sees it: the path, the covers in effect, what the view shows.
//!
//! Not here: what is stored for a span (`compact`).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use contexture_compile::compaction::{ActiveCovers, CoveredItem};
use contexture_compile::{CompactAdvice, Cover};
use contexture_ir::{ContentHash, Item, NodeId};
use contexture_store::{EntityKind, Error as StoreError, Node, NodeKind, PathEnd};
use contexture_tokens::TokenCounter;
use contexture_wire::Format;

use super::span::{CutPoints, is_partial_overlap};
use crate::error::EngineError;
use crate::handle::{Conversation, load_state_list, read_full_path};
use crate::path::StoredPath;
use crate::state::{Covers, Pins};

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
    let places = covers.covers_on_path(&path.nodes);
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

    /// The older part: from behind the opening and the compactions there are, as far as advised, or until
    /// so many tokens are left.
    pub(crate) fn older_span(
        &self,
        advice: Option<CompactAdvice>,
        weights: &[u64],
        keep: u64,
    ) -> Result<RangeInclusive<usize>, EngineError> {
        let nothing = EngineError::NothingToCompact {
            reason: "the history is one round, or all of it is covered",
        };
        let seams = self.cut_points();
        let opening = self
            .path
            .nodes
            .iter()
            .position(|node| node.kind != NodeKind::User);
        // A second person's message, or a history that begins otherwise, is no opening.
        let opening = opening.filter(|at| *at <= 1).unwrap_or(0);
        let covered = self.places.iter().map(|cover| cover.last + 1).max();
        let standing: u64 = self
            .places
            .iter()
            .filter_map(|cover| weights.get(cover.first))
            .sum();
        // Compactions that take up half of what is kept are worth one for all of them.
        let start = covered
            .filter(|_| standing <= keep / 2)
            .unwrap_or(opening)
            .max(opening);
        let advised = advice.map(|advice| advice.last);
        let span = advised
            .filter(|last| *last >= start)
            .and_then(|last| seams.align_span(&(start..=last)))
            .filter(|span| *span.start() >= start && span.end() + 1 < weights.len());
        // The advice says what must go, our own span what should: the one that reaches further counts.
        let span = match (span, seams.longest_span(start, weights, keep)) {
            (Some(advised), Some(own)) => *advised.start()..=(*advised.end()).max(*own.end()),
            (Some(span), None) | (None, Some(span)) => span,
            // Behind the compactions nothing is left to take: one for all of them.
            (None, None) => seams.longest_span(opening, weights, keep).ok_or(nothing)?,
        };
        Ok(span)
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
