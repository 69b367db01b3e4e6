//! Appends: the request and the result of the only call that adds nodes.

use std::sync::Arc;

use contexture_ir::{BranchName, NodeId};

use crate::contract::{
    BlobId, Fence, KeyScope, NewBranch, NewItem, PathMark, PutEntry, ResponseRecord, StatePatch,
    StreamClaim,
};

/// Items to be appended, and where. See [`Store::append_items`](crate::Store::append_items).
#[derive(Clone, Debug)]
pub struct AppendRequest {
    /// Where they go.
    pub at: AppendPoint,
    /// What to do when [`AppendPoint::Head`] finds another head.
    pub on_moved: OnMoved,
    /// The fence of a writer that claimed the branch.
    pub fence: Option<Fence>,
    /// The items, oldest first. Empty is allowed only with [`AppendPoint::New`]: that makes a branch.
    pub items: Vec<NewItem>,
    /// Changes of state.
    pub patch: StatePatch,
    /// Blobs stored in the same transaction.
    pub blobs: Vec<Arc<[u8]>>,
    /// The record of the model's response that the items are. Its base must be a node of the
    /// conversation and its id new. Needs items. A replay leaves the stored record as it is.
    pub response: Option<ResponseRecord>,
    /// Marks for the path index, of these items only, stored in the same transaction. A replay stores
    /// none.
    pub paths: Vec<PathMark>,
    /// Values outside the tree, written in the same transaction, each key once.
    ///
    /// A scope of a conversation must be this one. If a value has not the version that its write
    /// expects, the append is [`Error::VersionConflict`](crate::Error::VersionConflict) and nothing is
    /// stored. The values are also written if the items go to a sibling branch. Needs items. A replay
    /// writes none.
    pub entries: Vec<(KeyScope, PutEntry)>,
    /// The stream that the items complete.
    ///
    /// Its chunks are removed and it ends as completed, if it is still running. Its record stays, so
    /// that a reader that has read all chunks learns of the end. Needs items. With a stale claim the
    /// append is [`Error::StaleEpoch`](crate::Error::StaleEpoch).
    pub ends_stream: Option<StreamClaim>,
    /// The conversation's new update time, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl AppendRequest {
    /// Appends `items` at `at` and nothing else; a moved head is refused.
    #[must_use]
    pub fn new(at: AppendPoint, items: Vec<NewItem>, at_ms: i64) -> Self {
        Self {
            at,
            on_moved: OnMoved::Refuse,
            fence: None,
            items,
            patch: StatePatch::default(),
            blobs: Vec::new(),
            response: None,
            paths: Vec::new(),
            entries: Vec::new(),
            ends_stream: None,
            at_ms,
        }
    }
}

/// Where items go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendPoint {
    /// After this head, if it still is the branch's head. For a model's reply, which was computed from
    /// the path to it.
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

/// Where items went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The last item; without items, the base of the new branch.
    pub head: Option<NodeId>,
    /// Depth of the first item; without items, one more than `depth`.
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
    /// Whether an earlier, equal append had stored the items already: then this one changed nothing.
    pub replayed: bool,
    /// The blobs' ids, in order.
    pub blobs: Vec<BlobId>,
    /// The new versions of the entries, in order; empty for a replay, which writes none.
    pub versions: Vec<u64>,
}
