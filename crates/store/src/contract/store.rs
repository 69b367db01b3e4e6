//! [`Store`]: the trait of a conversation store, and what holds for every implementation.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, ResponseId};

use crate::contract::{
    AppendRequest, Appended, BlobId, Conversation, ConversationPage, ConversationUpdate,
    EraseScope, Erased, Error, Event, KeyValues, Limits, ListConversations, Maintenance,
    NewConversation, Node, NodeQuery, NodeState, PathIndex, PathPage, ReadRequest, RedactRequest,
    Redacted, RefChange, RefChanged, Refs, ResponseRecord, Search, StateRequest, Streams,
};
use crate::wake::StreamSignal;

/// A place that keeps conversations.
///
/// # What every backend promises
///
/// **Scope.** Each call names its owner. What belongs to another owner is
/// [`Error::NotFound`], exactly as if it did not exist. Conversation ids are unique within
/// an owner, node ids, message ids and names within a conversation.
///
/// **Atomic.** Each call is one transaction, for whoever looks (deleting goes on after what can be
/// seen is gone): an error leaves nothing behind, except
/// [`Error::OutcomeUnknown`], after which the same call may be repeated. A dropped future leaves
/// nothing, or the complete call. An append stores its nodes, blobs, state, values outside the tree,
/// the branch's move, a new branch and the event together.
///
/// **Durable.** What was acknowledged survives a crash, as far as the backend's durability setting
/// says; the in-memory store keeps nothing beyond its own life.
///
/// **Ordered.** The nodes of a path are ordered by depth, nothing else. Times are information
/// given by the callers: no clock is read, and a clock that jumps harms nothing. Writes to one
/// conversation are serial; a reader sees the state between two writes, never half of one.
///
/// **Immutable.** Nodes never change, so the path to a node is constant. Only names move.
/// Redaction is the one exception: it replaces what a node says, never where it stands.
/// Deleting a branch or a checkpoint deletes the name; deleting a conversation deletes everything.
///
/// **Idempotent.** An append is identified by its node ids. All stored with the same bytes, one
/// after the other on one path: success with `replayed`, and nothing changes, wherever the branch
/// has moved since. Anything else with a known id is [`Error::IdConflict`].
///
/// **Repeatable.** After [`Error::OutcomeUnknown`] the same call tells what happened: an append is
/// `replayed`; an update and a value that named the version they replace find
/// [`Error::VersionConflict`]; a conversation or branch that was made is [`Error::AlreadyExists`],
/// what was deleted or renamed is [`Error::NotFound`]; a redaction, a step of erasing, a blob find
/// nothing left to do. Only a claim is made twice, which harms nobody.
///
/// **Cheap.** No write reads a path. An append, a new branch, a count, a list entry cost the same
/// at any depth; reading costs what is read.
///
/// # The order in which an append is judged
///
/// limits and contradictions, the owner and conversation, replay, the branch, the fence, the
/// head, references to nodes, state, the answer, the stream, values outside the tree. The first failure is the error. A stale fence is
/// refused even where a sibling was allowed.
#[async_trait]
pub trait Store: KeyValues + fmt::Debug {
    /// What this backend does beyond the contract.
    fn capabilities(&self) -> Capabilities;

    /// How much one call may carry.
    fn limits(&self) -> &Limits;

    /// Makes a conversation with the empty, active branch `main`.
    async fn create_conversation(
        &self,
        owner: &Owner,
        new: NewConversation,
    ) -> Result<Conversation, Error>;

    /// A conversation's record.
    async fn load_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Conversation, Error>;

    /// The owner's conversations, most recently updated first.
    async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, Error>;

    /// Changes title or metadata, and gives the record after the change.
    async fn update_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
        update: ConversationUpdate,
    ) -> Result<Conversation, Error>;

    /// Deletes a conversation and everything that hangs off it.
    ///
    /// From the first step on it is not there for anybody, and whoever still writes to it is told
    /// [`Error::NotFound`]. The rows follow in bounded steps before this returns; if it is dropped
    /// or the process dies, a later step of the store does the rest. Until then making one of the
    /// same id may be [`Error::Busy`].
    async fn delete_conversation(&self, owner: &Owner, id: &ConversationId) -> Result<(), Error>;

    /// Appends items; see the trait's documentation.
    async fn append_items(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
    ) -> Result<Appended, Error>;

    /// Part of a path, oldest first. Name and nodes are read at one instant.
    async fn read_path(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<PathPage, Error>;

    /// Nodes wherever they stand; [`Error::NotFound`] rather than an empty list, unless the query
    /// says that there may be none.
    async fn find_nodes(
        &self,
        owner: &Owner,
        id: &ConversationId,
        query: NodeQuery,
    ) -> Result<Vec<Arc<Node>>, Error>;

    /// The state at a node; empty on an empty branch.
    async fn read_state(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: StateRequest,
    ) -> Result<NodeState, Error>;

    /// All branches and checkpoints, at one instant.
    async fn list_refs(&self, owner: &Owner, id: &ConversationId) -> Result<Refs, Error>;

    /// Makes, activates, claims, renames, moves or deletes a name.
    async fn change_ref(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error>;

    /// Stores bytes beside the tree. Storing them again changes nothing.
    async fn put_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        bytes: Arc<[u8]>,
    ) -> Result<BlobId, Error>;

    /// Stored bytes.
    async fn read_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        blob: BlobId,
    ) -> Result<Arc<[u8]>, Error>;

    /// What was kept of a model's answer beside its items.
    async fn load_response(
        &self,
        owner: &Owner,
        id: &ConversationId,
        response: ResponseId,
    ) -> Result<ResponseRecord, Error>;

    /// Replaces the bytes of these nodes by their tombstones
    /// ([`contexture_ir::tombstone_json`]), and removes these state values and blobs, for ever: no
    /// file, index or search text keeps them. A node keeps its place, ids, counters and pairing,
    /// and says when it was redacted. State that has a removed value keeps the entry, without a
    /// value.
    ///
    /// Answers computed from a path with one of these nodes lose their inputs; a removed value or blob
    /// takes those of all answers of the conversation, as nothing records where it was read.
    ///
    /// The list is taken as it is; [`compute_redaction_closure`](crate::compute_redaction_closure) finds what belongs together. What is redacted
    /// already stays as it is.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown node; then nothing is changed. [`Error::OutcomeUnknown`] also if readers
    /// see nothing any more but a file may still hold old bytes: repeat the call until it succeeds.
    async fn redact_content(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: RedactRequest,
    ) -> Result<Redacted, Error>;

    /// One bounded step of erasing everything of an owner or a resource: conversations with all
    /// that hangs off them, what earlier deletions left, values. Unlike a deleted value, an erased
    /// one leaves no version behind. Call it until it says that nothing is left, or use
    /// [`erase_all`](crate::erase_all).
    async fn erase_step(&self, owner: &Owner, scope: &EraseScope) -> Result<Erased, Error>;

    /// The events after number `after` (0: from the first), at most `limit`, in order.
    async fn list_events(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error>;

    /// Wakes whoever waits for an event of a conversation that is written through this store, and at
    /// its deletion. Default: never, so that those who wait have to look by themselves.
    fn event_signal(&self, owner: &Owner, id: &ConversationId) -> StreamSignal {
        let _ = (owner, id);
        StreamSignal::never()
    }

    /// Looking after it, if there is something to look after.
    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    /// Full-text search, if this backend has it.
    fn search(&self) -> Option<&dyn Search> {
        None
    }

    /// The index of histories, if this backend has it. Without it, marks of appends are passed over.
    fn path_index(&self) -> Option<&dyn PathIndex> {
        None
    }

    /// Logs of running answers, if this backend keeps them.
    fn streams(&self) -> Option<&dyn Streams> {
        None
    }
}

/// What a backend does beyond the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// What was acknowledged survives the process.
    pub durable: bool,
}
