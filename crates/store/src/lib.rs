//! The conversation store: its contract, the rules that all backends share, and an in-memory
//! backend.
//!
//! A conversation is a tree of immutable [`Node`]s. Branches and checkpoints are names that point
//! into it, and layer state is attached to nodes. [`Store`] is the contract (read its documentation
//! first), [`MemoryStore`] a reference implementation. [`rules`] holds the decisions that every
//! backend must take in the same way: limits, replay, where an append goes, counters, automatic
//! branch names, merging of state.
//!
//! What is not here: SQL (backends are crates of their own); clocks and randomness (ids and times
//! are parameters; only followers of events and streams and [`ChunkWriter`] use timers); parsing of
//! items (the store keeps the bytes it is given); message views and matching (functions above the
//! store).

mod contract;
mod memory;
mod permits;
mod portable;
mod queries;
pub mod rules;
mod tail;
mod wake;

pub use contract::{
    Activation, AppendChunks, AppendPoint, AppendRequest, Appended, BackedUp, BlobId, Branch,
    BranchHolder, BranchLabel, CALL_HOUR_MS, CacheTokens, CallDetails, CallFilter, CallGroup,
    CallGrouping, CallNames, CallOrder, CallOutcome, CallPage, CallPrediction, CallRecord, CallSum,
    CallTokens, Calls, Capabilities, Checkpoint, ChunkConflict, ChunkPage, ClaimOver,
    CollectRequest, Collected, Compacted, Comparison, Conversation, ConversationCalls,
    ConversationCursor, ConversationPage, ConversationUpdate, DERIVED_KEYS, EntityKind,
    EntryCursor, EntryPage, EraseScope, Erased, Error, Event, EventKind, ExchangeChange,
    ExchangeMark, ExpectedVersion, Fence, FinishStream, HiddenContent, Hit, IdConflict,
    IndexProgress, KeyScope, KeyValueEntry, KeyValues, Limits, ListCalls, ListConversations,
    ListEntries, Maintenance, MatchMode, Metadata, MetadataChange, MetadataFilter, MetadataKey,
    MetadataValue, NewBranch, NewConversation, NewItem, Node, NodeKind, NodeQuery, NodeState,
    OnMoved, OwnerSize, PathEnd, PathIndex, PathMark, PathMatch, PathPage, PathQuery,
    PendingExchange, ProcessBeat, Processes, PutEntry, ReadChunks, ReadRequest, RedactRequest,
    Redacted, RefChange, RefChanged, Refs, ReplacingStatement, ResponseInputs, ResponseRecord,
    ResponseStatus, Search, SearchCoverage, SearchCursor, SearchLimits, SearchPage, SearchRequest,
    SearchScope, Snippet, Span, StateChange, StateEntry, StateExpectation, StateKey, StateOp,
    StatePatch, StateRequest, StateRoot, StateValues, Statistics, StorageAmount, StorageFault,
    Store, StreamClaim, StreamCursor, StreamEnd, StreamEpoch, StreamLimits, StreamOpened,
    StreamRecord, Streams, SumCalls, SweepCalls, SweptCalls, TitleChange, VerifyCursor, VerifyPage,
    verify_conversation,
};
pub use memory::MemoryStore;
pub use permits::{FairPermits, Permit, PermitLimits, ReadLoad};
pub use portable::{
    Export, ExportValues, Import, ImportAll, ImportError, ImportValues, ImportedAll,
    ImportedConversation, ImportedValues,
};
pub use queries::{
    BranchDiff, CallRetention, CallsFinding, Divergence, ExpiredConversation, ExpiryReason, Graph,
    GraphNode, PathPages, RetentionPlan, RetentionRule, VerifiedCalls, compute_redaction_closure,
    delete_expired, diff_branches, erase_all, find_divergence, find_last_response, list_all,
    list_all_entries, load_graph, plan_retention, read_all_pages, sweep_calls, verify_calls,
};
pub use tail::{
    ChunkBatching, ChunkWriter, EventTail, FollowOptions, StreamTail, TailEvent, TailOptions,
};
pub use wake::{StreamSignal, StreamSignals, WakeOnDrop, WakeScope};
