//! Which items of a session a conversation holds already, decided by their content.
//!
//! A log without an id of its own is known by its text: a copy of it that grew has another id and shares no node ids. Its
//! items are aligned with the stored tree by their meaning hash, which is equal whatever format they came through. Items
//! without a meaning in every format (reasoning, extensions) are compared as JSON and may be missing on either side.
//!
//! Not here: which conversation it is. The caller says so.

use std::collections::BTreeMap;

use contexture_ir::{
    ContentHash, ConversationId, Item, NodeId, Owner, canonical_json, meaning_hash,
};
use contexture_store::{Refs, Store};

use crate::error::EngineError;
use crate::path::StoredPath;

/// The place of what stands before all nodes.
const ROOT: usize = 0;

/// A conversation's tree, as far as names reach it.
#[derive(Debug)]
pub(crate) struct StoredTree {
    nodes: Vec<StoredTreeNode>,
}

#[derive(Debug, Default)]
struct StoredTreeNode {
    id: Option<NodeId>,
    identity: Option<ItemIdentity>,
    children: Vec<usize>,
    end: BranchEnd,
}

/// Whether a branch ends at a node; the active one is preferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum BranchEnd {
    #[default]
    No,
    Branch,
    Active,
}

/// What two equal items share.
#[derive(Debug, PartialEq, Eq)]
enum ItemIdentity {
    Meaning(ContentHash),
    Json(String),
}

/// A path of a session, laid along the tree.
#[derive(Debug, Default)]
pub(crate) struct Alignment {
    /// For each item that is known, from the first on, the node it is; for one that was passed over,
    /// the node before it.
    pub(crate) nodes: Vec<Option<NodeId>>,
    /// How many of them say the same.
    pub(crate) shared: usize,
    /// The node after which the rest goes.
    pub(crate) base: Option<NodeId>,
}

/// An item found at a node.
#[derive(Clone, Copy)]
struct AlignmentStep {
    at: usize,
    /// The item's place on the path; `None` for the root.
    item: Option<usize>,
    previous: usize,
}

impl StoredTree {
    /// Reads the tree.
    pub(crate) async fn load(
        store: &dyn Store,
        owner: &Owner,
        id: &ConversationId,
        refs: &Refs,
    ) -> Result<Self, EngineError> {
        let mut nodes = vec![StoredTreeNode::default()];
        let mut places: BTreeMap<NodeId, usize> = BTreeMap::new();
        let heads = refs.branches.iter().filter_map(|branch| branch.head);
        // Checkpoints too: a branch may have been deleted while a checkpoint keeps its nodes.
        let ends = heads.chain(refs.checkpoints.iter().map(|checkpoint| checkpoint.node));
        for end in ends {
            let fresh =
                StoredPath::load_unknown(store, owner, id, end, |id| places.contains_key(id))
                    .await?;
            for (node, item) in fresh {
                let parent = node.parent.and_then(|parent| places.get(&parent).copied());
                let place = nodes.len();
                if let Some(parent) = nodes.get_mut(parent.unwrap_or(ROOT)) {
                    parent.children.push(place);
                }
                places.insert(node.id, place);
                nodes.push(StoredTreeNode {
                    id: Some(node.id),
                    identity: Some(ItemIdentity::from_item(&item)),
                    ..StoredTreeNode::default()
                });
            }
        }
        for branch in &refs.branches {
            let place = branch
                .head
                .map_or(Some(ROOT), |head| places.get(&head).copied());
            if let Some(node) = place.and_then(|place| nodes.get_mut(place)) {
                let end = if branch.active {
                    BranchEnd::Active
                } else {
                    BranchEnd::Branch
                };
                node.end = node.end.max(end);
            }
        }
        Ok(Self { nodes })
    }

    /// Whether anything was said.
    pub(crate) fn has_text(&self) -> bool {
        let mut marks = self.nodes.iter().filter_map(|node| node.identity.as_ref());
        marks.any(|mark| matches!(mark, ItemIdentity::Meaning(_)))
    }

    /// Lays a path along the tree, as far as it goes.
    pub(crate) fn align_path<'i>(&self, path: impl Iterator<Item = &'i Item>) -> Alignment {
        let mut steps = vec![AlignmentStep {
            at: ROOT,
            item: None,
            previous: 0,
        }];
        // All alignments are followed at once, item by item: the tree may hold equal items on several branches.
        let mut front = vec![0_usize];
        for (place, item) in path.enumerate() {
            let mark = ItemIdentity::from_item(item);
            let mut next = Vec::new();
            for before in front.iter().copied() {
                let Some(from) = steps.get(before).map(|step| step.at) else {
                    continue;
                };
                let found = self.matching_descendants(from, &mark);
                // What is only compared as JSON may be missing in the tree.
                if found.is_empty() && matches!(mark, ItemIdentity::Json(_)) {
                    next.push(before);
                }
                for at in found {
                    next.push(steps.len());
                    steps.push(AlignmentStep {
                        at,
                        item: Some(place),
                        previous: before,
                    });
                }
            }
            if next.is_empty() {
                break;
            }
            front = next;
        }
        self.best_alignment(&steps, &front)
    }

    /// The nodes of this mark after a node; on the way to what was said, all else is passed over.
    fn matching_descendants(&self, from: usize, mark: &ItemIdentity) -> Vec<usize> {
        let mut found = Vec::new();
        let mut open: Vec<usize> = self.children(from).to_vec();
        while let Some(place) = open.pop() {
            let Some(node) = self.nodes.get(place) else {
                continue;
            };
            if node.identity.as_ref() == Some(mark) {
                found.push(place);
            } else if matches!(
                (mark, &node.identity),
                (ItemIdentity::Meaning(_), Some(ItemIdentity::Json(_)))
            ) {
                open.extend(&node.children);
            }
        }
        found
    }

    fn children(&self, place: usize) -> &[usize] {
        self.nodes.get(place).map_or(&[], |node| &node.children)
    }

    fn best_alignment(&self, steps: &[AlignmentStep], front: &[usize]) -> Alignment {
        let farthest = front.iter().filter_map(|at| steps.get(*at));
        // The longest alignment; among equals one that ends at a branch, best the active one.
        let farthest = farthest.max_by_key(|step| (step.item, self.branch_end(step.at).0));
        let Some(mut last) = farthest.copied() else {
            return Alignment::default();
        };
        let said = |step: &AlignmentStep| {
            let node = self.nodes.get(step.at);
            node.is_none_or(|node| !matches!(node.identity, Some(ItemIdentity::Json(_))))
        };
        // In the middle of the tree, what belongs to something else that is said stays with it.
        if self.branch_end(last.at).0 == BranchEnd::No {
            while !said(&last)
                && let Some(before) = steps.get(last.previous)
            {
                last = *before;
            }
        }
        let base = self.nodes.get(self.branch_end(last.at).1);
        let mut laid = Alignment {
            nodes: vec![None; last.item.map_or(0, |item| item + 1)],
            shared: 0,
            base: base.and_then(|node| node.id),
        };
        let mut step = last;
        while let Some(item) = step.item {
            laid.shared += usize::from(said(&step));
            if let Some(node) = laid.nodes.get_mut(item) {
                *node = self.nodes.get(step.at).and_then(|node| node.id);
            }
            let Some(before) = steps.get(step.previous) else {
                break;
            };
            step = *before;
        }
        // An item that was passed over stands at the node before it.
        let mut above = None;
        for node in &mut laid.nodes {
            above = node.or(above);
            *node = above;
        }
        laid
    }

    /// The end of a branch at a node, or behind it with nothing said between; else the node itself.
    fn branch_end(&self, place: usize) -> (BranchEnd, usize) {
        let mut best = (BranchEnd::No, place);
        let mut open = vec![place];
        while let Some(at) = open.pop() {
            let Some(node) = self.nodes.get(at) else {
                continue;
            };
            if node.end > best.0 {
                best = (node.end, at);
            }
            let silent = node.children.iter().copied().filter(|child| {
                let child = self.nodes.get(*child);
                child.is_some_and(|child| matches!(child.identity, Some(ItemIdentity::Json(_))))
            });
            open.extend(silent);
        }
        best
    }
}

impl ItemIdentity {
    fn from_item(item: &Item) -> Self {
        meaning_hash(item).map_or_else(
            || {
                let json = item.to_json();
                Self::Json(canonical_json(&json).unwrap_or(json))
            },
            Self::Meaning,
        )
    }
}
