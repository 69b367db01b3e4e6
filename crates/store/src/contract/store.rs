//! [`Store`]: the trait of a conversation store, and what holds for every implementation.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, ResponseId};

use crate::contract::{
    AppendRequest, Appended, BlobId, Calls, Conversation, ConversationPage, ConversationUpdate,
    EraseScope, Erased, Error, Event, KeyValues, Limits, ListConversations, Maintenance,
    NewConversation, Node, NodeQuery, NodeState, PathIndex, PathPage, Processes, ReadRequest,
    RedactRequest, Redacted, RefChange, RefChanged, Refs, ResponseRecord, Search, StateRequest,
    Streams,
};
use crate::permits::ReadLoad;
use crate::wake::StreamSignal;

/// Stores conversations: trees of nodes, the names that point into them, and state.
///
/// # What every backend promises
///
/// **Scope.** Each call names its owner. What belongs to another owner is [`Error::NotFound`], exactly
/// as if it did not exist. Conversation ids are unique within an owner; node ids, message ids and
/// names within a conversation.
///
/// **Atomic.** Each call is one transaction: readers see all of its effect or none. A call that fails
/// has changed nothing, unless its error is [`Error::OutcomeUnknown`]: then repeat it. A call whose
/// future is dropped has taken effect completely or not at all. One append stores its nodes, blobs,
/// state, values outside the tree and its event, opens the branch if it is new, and moves the branch's
/// head. A deletion is atomic for readers; rows that nobody can see any more are removed afterwards.
///
/// **Durable.** An acknowledged write survives a crash, as far as the backend's durability setting
/// says. The in-memory store keeps its data only as long as the store object exists.
///
/// **Ordered.** The nodes of a path are ordered by depth and by nothing else. Times are data that
/// callers give: a store reads no clock, and a clock that jumps does no harm. Writes to one
/// conversation are serialised; a reader sees the state between two writes, never part of one.
///
/// **Immutable.** A node never changes, so the path to it is constant; only names move. Redaction is
/// the one exception: it replaces a node's content, never its position. Deleting a branch or a
/// checkpoint deletes the name and keeps the nodes; deleting a conversation deletes everything.
///
/// **Idempotent.** An append is identified by its node ids. If all of them are stored already, with the
/// same bytes and one after the other on one path, the append succeeds with
/// [`replayed`](Appended::replayed) and changes nothing, wherever the branch has moved since. Any
/// other use of a stored id is [`Error::IdConflict`].
///
/// **Repeatable.** Repeating a call after [`Error::OutcomeUnknown`] tells whether the first one took
/// effect. If it did:
///
/// * an append is `replayed`;
/// * an update, or a value written with an expected version, is [`Error::VersionConflict`];
/// * creating a conversation or a branch is [`Error::AlreadyExists`];
/// * deleting or renaming is [`Error::NotFound`];
/// * a redaction, a step of erasing and storing a blob find nothing left to do;
/// * moving a branch is [`Error::HeadMoved`], with the new head as the actual one.
///
/// An update or a write of a value without an expected version, and a change of the active branch
/// or of a checkpoint, are applied again, with the same result but a new version or another event.
/// A claim gives a second fence, and opening a stream gives a second epoch.
///
/// **Cheap.** No write reads a path. An append, a new branch, a count and an entry of a list cost the
/// same at any depth; reading costs what is read.
///
/// # Order of an append's checks
///
/// The first check that fails gives the error:
///
/// 1. limits and contradictions within the request;
/// 2. the owner and the conversation;
/// 3. whether the append is a replay;
/// 4. the branch, its fence, its head: a stale fence is refused even if a sibling branch is allowed;
/// 5. references to nodes;
/// 6. state, the response, the stream, values outside the tree.
#[async_trait]
pub trait Store: KeyValues + fmt::Debug {
    /// Returns what this backend does beyond the contract.
    fn capabilities(&self) -> Capabilities;

    /// Returns the limits on what one call may carry.
    fn limits(&self) -> &Limits;

    /// Returns how much reads have waited and how many were stopped.
    fn read_load(&self) -> ReadLoad {
        ReadLoad::default()
    }

    /// Asks the database for an answer, at the cost of one point read; reads nothing of anybody's.
    ///
    /// # Errors
    ///
    /// That of any read: the database cannot be reached, or its file fails.
    async fn check_connection(&self) -> Result<(), Error>;

    /// Creates a conversation with the empty, active branch `main`.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyExists`] if the owner has a conversation with this id; [`Error::Busy`] while an
    /// earlier one with this id is still being deleted.
    async fn create_conversation(
        &self,
        owner: &Owner,
        new: NewConversation,
    ) -> Result<Conversation, Error>;

    /// Reads the record of a conversation.
    async fn load_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Conversation, Error>;

    /// Lists the owner's conversations, most recently updated first.
    async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, Error>;

    /// Changes title or metadata; returns the record after the change.
    async fn update_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
        update: ConversationUpdate,
    ) -> Result<Conversation, Error>;

    /// Deletes a conversation and everything that belongs to it.
    ///
    /// The first step hides it: from then on every call on it is [`Error::NotFound`]. Its rows are
    /// then removed in bounded steps before this call returns. If the call is dropped, a later step
    /// fails or the process dies, the store removes the rest later; until then creating a
    /// conversation of the same id may be [`Error::Busy`].
    async fn delete_conversation(&self, owner: &Owner, id: &ConversationId) -> Result<(), Error>;

    /// Appends items to a branch, or opens a branch with them.
    ///
    /// The trait's documentation says what is atomic, when an append is a replay, and in which order
    /// the request is checked.
    async fn append_items(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
    ) -> Result<Appended, Error>;

    /// Reads part of a path, oldest node first.
    ///
    /// One page: it ends after [`Limits::page_bytes`] of JSON, and always has a node if there is one. No more than that, and
    /// at most one node more, is read from where the nodes are stored.
    ///
    /// The branch or checkpoint that the path ends at is read at the same instant as the nodes.
    async fn read_path(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<PathPage, Error>;

    /// Finds nodes anywhere in the tree.
    ///
    /// No match is [`Error::NotFound`] and not an empty list, except for queries whose documentation
    /// says that there may be none.
    async fn find_nodes(
        &self,
        owner: &Owner,
        id: &ConversationId,
        query: NodeQuery,
    ) -> Result<Vec<Arc<Node>>, Error>;

    /// Reads the state at a node; on an empty branch it is empty.
    async fn read_state(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: StateRequest,
    ) -> Result<NodeState, Error>;

    /// Lists all branches and checkpoints, read at one instant.
    async fn list_refs(&self, owner: &Owner, id: &ConversationId) -> Result<Refs, Error>;

    /// Creates, activates, claims, renames, moves or deletes a branch or a checkpoint.
    async fn change_ref(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error>;

    /// Stores bytes outside the tree; returns their id. Storing equal bytes again changes nothing.
    async fn put_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        bytes: Arc<[u8]>,
    ) -> Result<BlobId, Error>;

    /// Reads stored bytes.
    async fn read_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        blob: BlobId,
    ) -> Result<Arc<[u8]>, Error>;

    /// Reads the record of a model's response: its inputs, usage and status.
    async fn load_response(
        &self,
        owner: &Owner,
        id: &ConversationId,
        response: ResponseId,
    ) -> Result<ResponseRecord, Error>;

    /// Redacts nodes, state values and blobs: removes their content permanently.
    ///
    /// The bytes of each node are replaced by its tombstone ([`contexture_ir::tombstone_json`]); no
    /// read, index or search finds them any more. When they leave the database's files depends on
    /// the backend. The node keeps its position, ids, counters and pairing, and records when it was
    /// redacted. A state entry whose value is removed stays, without a value. What has been
    /// redacted before stays as it is.
    ///
    /// Responses that were computed from a path with one of these nodes lose their inputs. If a value or
    /// blob is removed, all responses of the conversation lose their inputs, because nothing records
    /// which of them read it. Values of the conversation under [`DERIVED_KEYS`](crate::DERIVED_KEYS) are removed if anything
    /// is.
    ///
    /// Exactly what the request lists is redacted;
    /// [`compute_redaction_closure`](crate::compute_redaction_closure) finds copies and summaries that
    /// belong to it.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for an unknown node: nothing is changed. [`Error::OutcomeUnknown`] also if
    /// readers no longer see any of the content but a file may still hold old bytes: repeat the call
    /// until it succeeds.
    async fn redact_content(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: RedactRequest,
    ) -> Result<Redacted, Error>;

    /// Takes one bounded step towards erasing everything that belongs to an owner or a resource.
    ///
    /// It removes conversations with everything that belongs to them, the rest of earlier
    /// deletions, values outside the tree and, for an owner, the record of calls with its sums. Unlike a deleted value, an erased one leaves no
    /// version behind. Call it until [`Erased::more`] is false, or use
    /// [`erase_all`](crate::erase_all).
    async fn erase_step(&self, owner: &Owner, scope: &EraseScope) -> Result<Erased, Error>;

    /// Lists the events after number `after` (0: from the first on), in order, at most `limit`.
    async fn list_events(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error>;

    /// Returns a signal that wakes at each write to a conversation through this store object, and at
    /// its deletion.
    ///
    /// The default never wakes, so that readers have to poll.
    fn event_signal(&self, owner: &Owner, id: &ConversationId) -> StreamSignal {
        let _ = (owner, id);
        StreamSignal::never()
    }

    /// Returns the calls for checking, counting and cleaning up, if this backend has them.
    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    /// Returns full-text search, if this backend has it.
    fn search(&self) -> Option<&dyn Search> {
        None
    }

    /// Returns the path index, if this backend has it. Without one, the path marks of appends are ignored.
    fn path_index(&self) -> Option<&dyn PathIndex> {
        None
    }

    /// Returns the presence of processes, if this backend keeps it. Without it, the exchanges of appends are ignored.
    fn processes(&self) -> Option<&dyn Processes> {
        None
    }

    /// Returns the record of calls, if this backend keeps it. Without it, the calls of appends are ignored.
    fn calls(&self) -> Option<&dyn Calls> {
        None
    }

    /// Returns the logs of running responses, if this backend keeps them.
    fn streams(&self) -> Option<&dyn Streams> {
        None
    }
}

/// What a backend does beyond the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Acknowledged writes survive the process.
    pub durable: bool,
    /// Other processes may use the same data, so what one of them has under way must be visible to all.
    pub shared: bool,
}
