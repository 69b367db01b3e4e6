//! Requests and pages for reading a path or looking up nodes.

use std::sync::Arc;

use contexture_ir::{BranchName, CheckpointName, MessageId, NodeId};

use crate::contract::{Node, NodeKind};

/// The end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// A branch's head.
    Branch(BranchName),
    /// A checkpoint's node.
    Checkpoint(CheckpointName),
    /// A node.
    Node(NodeId),
}

/// Which part of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// All of it.
    #[default]
    Whole,
    /// The last so many nodes.
    Last(u64),
    /// From this depth (1 is the first node) to the end.
    From(u64),
    /// From the first depth to the second, both included.
    Between(u64, u64),
    /// From the newest compaction on the path, itself included, to the end; all of it without one.
    SinceCompaction,
}

/// A part of a path, oldest first.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// Where the path ends.
    pub at: PathEnd,
    /// Which part.
    pub span: Span,
    /// At most so many nodes; [`PathPage::next`] says where the next page begins.
    pub limit: Option<usize>,
}

impl ReadRequest {
    /// The whole path to `at`, in one page.
    #[must_use]
    pub fn whole_path(at: PathEnd) -> Self {
        Self {
            at,
            span: Span::Whole,
            limit: None,
        }
    }

    /// The last `count` nodes of the path to `at`.
    #[must_use]
    pub fn last_nodes(at: PathEnd, count: u64) -> Self {
        Self {
            at,
            span: Span::Last(count),
            limit: None,
        }
    }
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPage {
    /// The node the path ends at; `None` on an empty branch. Ask for the next page by this node:
    /// its path never changes.
    pub head: Option<NodeId>,
    /// The length of the whole path.
    pub depth: u64,
    /// The nodes, oldest first.
    pub nodes: Vec<Arc<Node>>,
    /// The depth at which the next page begins, for [`Span::From`] or [`Span::Between`]; `None`: this is
    /// the last.
    pub next: Option<u64>,
}

/// Which nodes to find, anywhere in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeQuery {
    /// The one with this id.
    Id(NodeId),
    /// The one whose id begins with these hexadecimal digits (at least 4):
    /// [`Error::Ambiguous`](crate::Error::Ambiguous) if there are more.
    Prefix(String),
    /// Those of this message, on whatever branches, by depth and then by id.
    Message(MessageId),
    /// Those whose `copied_from` is this node, by depth and then by id; possibly none.
    CopiesOf(NodeId),
    /// Those of this kind, by depth and then by id; possibly none. Meant for rare kinds: only
    /// [`NodeKind::Compaction`] is cheap to find.
    Kind(NodeKind),
}
