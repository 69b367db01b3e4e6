//! Requests and pages for reading a path or looking up nodes.

use std::sync::Arc;

use contexture_ir::{BranchName, CheckpointName, MessageId, NodeId};

use crate::contract::{Node, NodeKind};

/// End of a path, which determines the whole path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// The head of this branch.
    Branch(BranchName),
    /// The node of this checkpoint.
    Checkpoint(CheckpointName),
    /// The node with this id.
    Node(NodeId),
}

/// Part of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// All nodes of the path.
    #[default]
    Whole,
    /// The last nodes, at most this many.
    Last(u64),
    /// From this depth (1 is the first node) to the end.
    From(u64),
    /// From the first depth to the second, both included.
    Between(u64, u64),
    /// From the newest compaction on the path, itself included, to the end; all of it without one.
    SinceCompaction,
}

/// Request for a part of a path, oldest node first.
///
/// A page ends after [`Limits::page_bytes`](crate::Limits::page_bytes) of JSON, whatever the span and the limit: use
/// [`PathPages`](crate::PathPages) or [`read_all_pages`](crate::read_all_pages) where all of it is needed.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// End of the path.
    pub at: PathEnd,
    /// Part of the path to read.
    pub span: Span,
    /// Largest number of nodes of a page; `None` for no limit but that of bytes. [`PathPage::next`]
    /// says where the next page begins.
    pub limit: Option<usize>,
}

impl ReadRequest {
    /// Returns a request for the whole path to `at`, in as few pages as their bytes allow.
    #[must_use]
    pub fn whole_path(at: PathEnd) -> Self {
        Self {
            at,
            span: Span::Whole,
            limit: None,
        }
    }

    /// Returns a request for the last `count` nodes of the path to `at`.
    #[must_use]
    pub fn last_nodes(at: PathEnd, count: u64) -> Self {
        Self {
            at,
            span: Span::Last(count),
            limit: None,
        }
    }
}

/// A page of the nodes of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathPage {
    /// Node that the path ends at; `None` on an empty branch. Ask for the next page by this node,
    /// whose path never changes.
    pub head: Option<NodeId>,
    /// Length of the whole path, in nodes.
    pub depth: u64,
    /// Nodes of the page, oldest first.
    pub nodes: Vec<Arc<Node>>,
    /// Depth at which the next page begins, for [`Span::From`] or [`Span::Between`]; `None` on the last page. A page may have
    /// fewer nodes than were asked for and not be the last.
    pub next: Option<u64>,
}

/// Query for nodes anywhere in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeQuery {
    /// The node with this id.
    Id(NodeId),
    /// The node whose id begins with these hexadecimal digits, at least 4;
    /// [`Error::Ambiguous`](crate::Error::Ambiguous) if several do.
    Prefix(String),
    /// The nodes of this message, on whatever branches, by depth and then by id.
    Message(MessageId),
    /// The nodes whose `copied_from` is this node, by depth and then by id; possibly none.
    CopiesOf(NodeId),
    /// The nodes of this kind, by depth and then by id; possibly none. Meant for rare kinds: only
    /// [`NodeKind::Compaction`] is cheap to find.
    Kind(NodeKind),
}
