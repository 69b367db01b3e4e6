//! Appends: the request and the result of the only call that adds nodes.

use std::sync::Arc;

use contexture_ir::{BranchName, NodeId};

use crate::contract::{
    BlobId, CallRecord, ExchangeChange, Fence, KeyScope, NewBranch, NewItem, PathMark, PutEntry,
    ResponseRecord, StatePatch, StreamClaim,
};

/// Items to append, and the point to append them at; see [`Store::append_items`](crate::Store::append_items).
#[derive(Clone, Debug)]
pub struct AppendRequest {
    /// Point in the tree at which the items are appended.
    pub at: AppendPoint,
    /// Reaction if [`AppendPoint::Head`] names a head that is no longer current. Default: refuse.
    pub on_moved: OnMoved,
    /// Fence of the branch that the writer claimed; `None` if it claimed none.
    pub fence: Option<Fence>,
    /// Items, oldest first; may be empty only with [`AppendPoint::New`], which then only makes a branch.
    pub items: Vec<NewItem>,
    /// Changes of state, stored with the items.
    pub patch: StatePatch,
    /// Contents of blobs, stored in the same transaction.
    pub blobs: Vec<Arc<[u8]>>,
    /// Record of the model response that the items belong to.
    ///
    /// Its base must be a node of the conversation and its id new. Needs items. A replay leaves the
    /// stored record as it is.
    pub response: Option<ResponseRecord>,
    /// Marks of these items for the path index, stored in the same transaction; a replay stores none.
    pub paths: Vec<PathMark>,
    /// Values outside the tree, written in the same transaction, each key at most once.
    ///
    /// The scope of a conversation must be this conversation's. If a stored value does not have the
    /// version that its write expects, the append fails with
    /// [`Error::VersionConflict`](crate::Error::VersionConflict) and nothing is stored. The values
    /// are also written if the items go to a sibling branch. Needs items. A replay writes none.
    pub entries: Vec<(KeyScope, PutEntry)>,
    /// Mark of an exchange with a provider that begins or ends with these items; `None` for neither.
    ///
    /// Changed in the same transaction, also by a replay: the same request again is another exchange. Ignored by a
    /// store without [`Processes`](crate::Processes). Needs items.
    pub exchange: Option<ExchangeChange>,
    /// Call whose answer the items are; `None` if there was none, or it is recorded elsewhere.
    ///
    /// Stored in the same transaction, also by a replay: the same answer again may be that of another call. One whose id
    /// is stored already changes nothing. Its conversation must be this one. Ignored by a store without
    /// [`Calls`](crate::Calls). Needs items.
    pub call: Option<Box<CallRecord>>,
    /// Claim on the stream whose response the items complete.
    ///
    /// The append removes the stream's chunks and ends it as completed, if it is still running. Its
    /// record stays, so that a reader that has read all chunks learns of the end. Needs items. With
    /// a stale claim the append fails with [`Error::StaleEpoch`](crate::Error::StaleEpoch).
    pub ends_stream: Option<StreamClaim>,
    /// New update time of the conversation, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl AppendRequest {
    /// Returns a request that appends `items` at `at` and nothing else, and refuses a moved head.
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
            exchange: None,
            call: None,
            ends_stream: None,
            at_ms,
        }
    }
}

/// Point in the tree at which items are appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendPoint {
    /// After this head, if it still is the branch's head. For a model's reply, which was computed from
    /// the path to it.
    Head {
        /// Name of the branch to append to.
        branch: BranchName,
        /// Head of the branch as the caller knows it; `None` if the branch is empty.
        head: Option<NodeId>,
    },
    /// After the branch's current head, whichever node that is. For a person's input, tool outputs, imports.
    Tip {
        /// Name of the branch to append to.
        branch: BranchName,
    },
    /// On a new branch. For edits, imports, divergence, clearing.
    New(NewBranch),
}

/// Reaction to a branch whose head is not the expected one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMoved {
    /// Refuse with [`Error::HeadMoved`](crate::Error::HeadMoved).
    #[default]
    Refuse,
    /// Store the items on a new, automatically named, inactive branch at the expected head. For
    /// late responses that cost money.
    Sibling,
}

/// Result of an append: where the items are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Last appended node; without items, the base of the new branch.
    pub head: Option<NodeId>,
    /// Depth of the first item; without items, one more than `depth`.
    pub first: u64,
    /// Depth of `head`: the length of its path.
    pub depth: u64,
    /// Number of messages on the path to `head`.
    pub messages: u64,
    /// Number of turns on the path to `head`.
    pub turns: u64,
    /// Ids of the appended nodes, in order.
    pub nodes: Vec<NodeId>,
    /// Branch that the items are on; `None` only for a replay whose branch was deleted since.
    pub branch: Option<BranchName>,
    /// Whether that branch is a sibling opened because the head had moved.
    pub on_sibling_branch: bool,
    /// Whether an equal append had stored the items before, so that this one changed nothing.
    pub replayed: bool,
    /// Ids of the stored blobs, in the order of the request.
    pub blobs: Vec<BlobId>,
    /// New versions of the written values, in the order of the request; empty for a replay, which writes none.
    pub versions: Vec<u64>,
}
