//! Appending: the one way in which a tree grows.

use std::fmt;
use std::sync::Arc;

use contexture_ir::{BranchName, NodeId};

use crate::blob::BlobId;
use crate::node::NewItem;
use crate::refs::Activation;
use crate::state::StatePatch;

/// Items to be appended, and where. See [`Store::append`](crate::Store::append).
#[derive(Clone, Debug)]
pub struct AppendRequest {
    /// Where.
    pub at: AppendAt,
    /// What to do when [`AppendAt::Head`] finds another head.
    pub on_moved: OnMoved,
    /// The fence of a writer that claimed the branch.
    pub fence: Option<Fence>,
    /// The items, oldest first. Empty is allowed only with [`AppendAt::New`]: that makes a branch.
    pub items: Vec<NewItem>,
    /// Changes of state.
    pub patch: StatePatch,
    /// Blobs stored in the same transaction.
    pub blobs: Vec<Arc<[u8]>>,
    /// Milliseconds since the Unix epoch: the time of the conversation's update.
    pub at_ms: i64,
}

impl AppendRequest {
    /// Appends `items` at `at`: no fence, no patch, no blobs, a moved head is refused.
    #[must_use]
    pub fn new(at: AppendAt, items: Vec<NewItem>, at_ms: i64) -> Self {
        Self {
            at,
            on_moved: OnMoved::Refuse,
            fence: None,
            items,
            patch: StatePatch::default(),
            blobs: Vec::new(),
            at_ms,
        }
    }
}

/// Where items go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendAt {
    /// After this head, if it still is the branch's head. For a model's reply, which was computed
    /// against it.
    Head {
        /// The branch.
        branch: BranchName,
        /// Its head as the caller knows it; `None`: the branch is empty.
        head: Option<NodeId>,
    },
    /// After whatever the branch's head is. For a person's input, tool outputs, imports.
    Tip {
        /// The branch.
        branch: BranchName,
    },
    /// On a new branch. For edits, imports, divergence, clearing.
    New(NewBranch),
}

/// A branch to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBranch {
    /// The node it starts at; `None`: an empty branch.
    pub base: Option<NodeId>,
    /// What it is called.
    pub label: BranchLabel,
    /// Whether it becomes the active branch.
    pub activate: Activation,
}

/// What a new branch is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchLabel {
    /// This; [`Error::AlreadyExists`](crate::Error::AlreadyExists) if it is taken.
    Named(BranchName),
    /// A free name made from that of the branch it leaves; see
    /// [`rules::automatic_name`](crate::rules::automatic_name).
    After(BranchName),
}

/// What to do when the head is not the expected one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMoved {
    /// Refuse with [`Error::HeadMoved`](crate::Error::HeadMoved).
    #[default]
    Refuse,
    /// Keep the items on a new, automatically named, inactive branch at the expected head. For late answers that
    /// cost money.
    Sibling,
}

/// A writer's claim on a branch: larger is newer. See [`RefChange::Claim`](crate::RefChange).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Where items went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The last of the items; with no items the base of the new branch.
    pub head: Option<NodeId>,
    /// Depth of the first of the items; with no items one more than `depth`.
    pub first: u64,
    /// Depth of `head`: the length of its path.
    pub depth: u64,
    /// Messages on the path to `head`.
    pub messages: u64,
    /// Turns on the path to `head`.
    pub turns: u64,
    /// The items' ids, in order.
    pub nodes: Vec<NodeId>,
    /// The branch they are on. `None` only for a replay whose branch was deleted since.
    pub branch: Option<BranchName>,
    /// Whether that branch is a sibling opened because the head had moved.
    pub sibling: bool,
    /// Whether an earlier, equal append had stored them already; this one changed nothing.
    pub replayed: bool,
    /// The blobs' ids, in order.
    pub blobs: Vec<BlobId>,
}
