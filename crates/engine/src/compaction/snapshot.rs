//! A branch as a compaction sees it: the path, what is in effect on it, what the view shows.
//!
//! Not here: what is made of it ([`super::compact`]).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use contexture_compile::compaction::{Covered, Covering};
use contexture_compile::{CompactAdvice, Cover};
use contexture_ir::{ContentHash, Item, NodeId};
use contexture_store::{At, Error as StoreError, Node, NodeKind, Thing};
use contexture_tokens::TokenCounter;
use contexture_wire::Format;

use super::cover::Covers;
use super::span::{Seams, overlaps};
use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::path::Path;
use crate::pins::Pins;

/// A path, what is in effect on it, and where that was read.
pub(crate) struct Snapshot {
    pub(crate) path: Arc<Path>,
    pub(crate) covers: Covers,
    pub(crate) places: Vec<Cover>,
    covering: Covering,
    pinned: BTreeSet<NodeId>,
}

impl Conversation {
    pub(crate) async fn snapshot(&self, at: At) -> Result<Snapshot, EngineError> {
        let path = self.whole_path(at).await?;
        let (covers, pins): (Covers, Pins) = match path.head {
            Some(head) => (
                self.listed(At::Node(head)).await?,
                self.listed(At::Node(head)).await?,
            ),
            None => Default::default(),
        };
        let places = covers.on(&path.nodes);
        let compacts = |at: usize| compacts(&path, at);
        Ok(Snapshot {
            covering: Covering::of(&places, path.items.len(), compacts),
            pinned: pins.nodes(),
            path,
            covers,
            places,
        })
    }
}

impl Snapshot {
    /// Where the item at `at` stands in the view.
    pub(crate) fn place(&self, at: usize) -> usize {
        self.covering.place(at)
    }

    /// The places of the path that the view for a target shows, in its order.
    pub(crate) fn shown(&self, target: Format) -> Vec<usize> {
        self.shown_by(&self.covering, target)
    }

    /// The places of a span that go out of view once something stands for it, and all that are in view
    /// then: pins and the host's words among them.
    pub(crate) fn parted(
        &self,
        span: &RangeInclusive<usize>,
        target: Format,
    ) -> (Vec<usize>, BTreeSet<usize>) {
        let compaction = self.path.items.len();
        let mut places = self.places.clone();
        places.push(Cover {
            compaction,
            first: *span.start(),
            last: *span.end(),
        });
        let compacts = |at: usize| at == compaction || compacts(&self.path, at);
        let covering = Covering::of(&places, compaction, compacts);
        let stays: BTreeSet<usize> = self.shown_by(&covering, target).into_iter().collect();
        let gone = span.clone().filter(|at| !stays.contains(at));
        (gone.collect(), stays)
    }

    fn shown_by(&self, covering: &Covering, target: Format) -> Vec<usize> {
        let readable = self.path.nodes.iter().zip(&self.path.items).enumerate();
        let readable = readable.filter(|(_, (node, _))| node.audience.model);
        let items: Vec<(usize, &Item)> = readable.map(|(at, (_, one))| (at, &*one.item)).collect();
        let pinned = |at: usize| {
            let node = self.path.nodes.get(at);
            node.is_some_and(|node| self.pinned.contains(&node.id))
        };
        covering.shown(&items, pinned, target)
    }

    /// What each place of the path adds to the view, in tokens.
    pub(crate) fn weights(&self, shown: &[usize], counter: &dyn TokenCounter) -> Vec<u64> {
        let mut weights = vec![0; self.path.items.len()];
        for at in shown {
            let weight = self
                .path
                .items
                .get(*at)
                .map(|one| counter.count(&one.item.text()).count);
            if let Some(place) = weights.get_mut(self.place(*at)) {
                *place += weight.unwrap_or_default();
            }
        }
        weights
    }

    fn seams(&self) -> Seams {
        Seams::of(&self.path.nodes, &self.path.items).around(&self.places)
    }

    /// The span that was asked for, with whole blocks.
    pub(crate) fn given(
        &self,
        first: NodeId,
        last: NodeId,
    ) -> Result<RangeInclusive<usize>, EngineError> {
        let at = |id: NodeId| {
            let found = self.path.nodes.iter().position(|node| node.id == id);
            found.ok_or_else(|| StoreError::not_found(Thing::Node, id))
        };
        let (start, end) = (at(first)?, at(last)?);
        if start > end {
            return Err(EngineError::NothingToCompact {
                why: "the span ends before it begins",
            });
        }
        let blocks = Seams::of(&self.path.nodes, &self.path.items);
        let span = blocks.align(&(start..=end)).unwrap_or(start..=end);
        match self.places.iter().find(|cover| overlaps(&span, cover)) {
            Some(cover) => {
                let (first, last) = self.ends(&span)?;
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
    pub(crate) fn older(
        &self,
        advice: Option<CompactAdvice>,
        weights: &[u64],
        keep: u64,
    ) -> Result<RangeInclusive<usize>, EngineError> {
        let nothing = EngineError::NothingToCompact {
            why: "the history is one round, or all of it is covered",
        };
        let seams = self.seams();
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
        let behind = covered
            .filter(|_| standing <= keep / 2)
            .unwrap_or(opening)
            .max(opening);
        let advised = advice.map(|advice| advice.last);
        let span = advised
            .filter(|last| *last >= behind)
            .and_then(|last| seams.align(&(behind..=last)))
            .filter(|span| *span.start() >= behind && span.end() + 1 < weights.len());
        let span = match (span, seams.longest(behind, weights, keep)) {
            (Some(advised), Some(own)) => *advised.start()..=(*advised.end()).max(*own.end()),
            (Some(span), None) | (None, Some(span)) => span,
            // Behind the compactions nothing is left to take: one for all of them.
            (None, None) => seams.longest(opening, weights, keep).ok_or(nothing)?,
        };
        Ok(span)
    }

    pub(crate) fn ends(
        &self,
        span: &RangeInclusive<usize>,
    ) -> Result<(NodeId, NodeId), EngineError> {
        let id = |at: usize| self.path.nodes.get(at).map(|node| node.id);
        match (id(*span.start()), id(*span.end())) {
            (Some(first), Some(last)) => Ok((first, last)),
            _ => Err(EngineError::NothingToCompact {
                why: "the history is empty",
            }),
        }
    }

    /// Of some places the items that models may read.
    pub(crate) fn readable<'s>(
        &'s self,
        places: impl IntoIterator<Item = &'s usize>,
    ) -> Vec<Covered<'s>> {
        let places = places.into_iter();
        places.filter_map(|at| self.covered(*at)).collect()
    }

    /// An item that models may read.
    fn covered(&self, at: usize) -> Option<Covered<'_>> {
        let node = self.path.nodes.get(at).filter(|node| node.audience.model)?;
        Some(Covered {
            index: at,
            item: &self.path.items.get(at)?.item,
            hash: Some(node.content_hash),
        })
    }

    /// The hash over what some places say: equal for a copy of them on another branch.
    pub(crate) fn hash(&self, places: &[usize]) -> ContentHash {
        let nodes = places.iter().filter_map(|at| self.path.nodes.get(*at));
        let tells =
            |node: &&Arc<Node>| node.audience.model && !matches!(node.kind, NodeKind::Compaction);
        let hashes = nodes
            .filter(tells)
            .map(|node| node.meaning_hash.unwrap_or(node.content_hash));
        let bytes: Vec<u8> = hashes.flat_map(|hash| *hash.as_bytes()).collect();
        ContentHash::of(&bytes)
    }
}

/// Whether an item of a path is a compaction.
fn compacts(path: &Path, at: usize) -> bool {
    let item = path.items.get(at).map(|one| &*one.item);
    matches!(item, Some(Item::Compaction(_)))
}
