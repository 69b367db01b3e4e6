//! The conversation store: its contract, the rules every backend shares, an in-memory backend.
//!
//! A conversation is a tree of immutable [`Node`]s; branches and checkpoints are names that point
//! into it; layer state hangs off the nodes. [`Store`] is the contract (read its documentation
//! first), [`MemoryStore`] its strictest implementation, [`rules`] the decisions that a backend
//! must not take in its own way: limits, replay, where an append lands, counters, automatic branch
//! names, merging of state.
//!
//! What is not here: SQL (backends are crates of their own), clocks and randomness (ids and times
//! are parameters; only who follows or writes a [stream](Streams) waits by a timer), parsing of items
//! (the store keeps the bytes it is given), message views and matching (functions above the store).

mod ancestor;
mod append;
mod blob;
mod conversation;
mod diff;
mod erase;
mod erase_all;
mod error;
mod event;
mod event_tail;
mod filter;
mod graph;
mod key_value;
mod limits;
mod list_all;
mod maintenance;
mod memory;
mod node;
mod path_index;
mod portable;
mod read;
mod redact;
mod redaction;
mod refs;
mod response;
pub mod rules;
mod search;
mod state;
mod state_key;
mod store;
mod stream;
mod stream_cursor;
mod stream_signal;
mod stream_tail;
mod stream_writer;

pub use ancestor::{Divergence, find_divergence};
pub use append::{AppendPoint, AppendRequest, Appended, OnMoved};
pub use blob::BlobId;
pub use conversation::{
    Conversation, ConversationCursor, ConversationPage, ConversationUpdate, ListConversations,
    Metadata, MetadataChange, NewConversation, TitleChange,
};
pub use diff::{BranchDiff, diff_branches};
pub use erase::{EraseScope, Erased};
pub use erase_all::erase_all;
pub use error::{ChunkConflict, EntityKind, Error, IdConflict, StorageFault};
pub use event::{Event, EventKind};
pub use event_tail::{EventTail, FollowOptions};
pub use filter::{Comparison, MetadataFilter, MetadataKey, MetadataValue};
pub use graph::{Graph, GraphNode, load_graph};
pub use key_value::{
    EntryCursor, EntryPage, ExpectedVersion, KeyScope, KeyValueEntry, KeyValues, ListEntries,
    PutEntry,
};
pub use limits::Limits;
pub use list_all::list_all;
pub use maintenance::{
    BackedUp, CollectRequest, Collected, Compacted, Maintenance, Statistics, StorageAmount,
    VerifyCursor, VerifyPage, verify_conversation,
};
pub use memory::MemoryStore;
pub use node::{NewItem, Node, NodeKind};
pub use path_index::{PathIndex, PathMark, PathMatch, PathQuery};
pub use portable::{
    Export, ExportValues, Import, ImportError, ImportValues, ImportedConversation, ImportedValues,
};
pub use read::{NodeQuery, PathEnd, PathPage, ReadRequest, Span};
pub use redact::{RedactRequest, Redacted};
pub use redaction::compute_redaction_closure;
pub use refs::{
    Activation, Branch, BranchLabel, Checkpoint, Fence, NewBranch, RefChange, RefChanged, Refs,
};
pub use response::{ResponseInputs, ResponseRecord, ResponseStatus};
pub use search::{
    HiddenContent, Hit, MatchMode, Search, SearchCoverage, SearchCursor, SearchLimits, SearchPage,
    SearchRequest, SearchScope, Snippet,
};
pub use state::{
    NodeState, StateChange, StateEntry, StateOp, StatePatch, StateRequest, StateRoot, StateValues,
};
pub use state_key::{StateExpectation, StateKey};
pub use store::{Capabilities, Store};
pub use stream::{
    AppendChunks, ChunkPage, FinishStream, ReadChunks, StreamLimits, StreamOpened, StreamRecord,
    Streams,
};
pub use stream_cursor::{StreamClaim, StreamCursor, StreamEnd, StreamEpoch};
pub use stream_signal::{StreamSignal, StreamSignals, WakeOnDrop, WakeScope};
pub use stream_tail::{StreamTail, TailEvent, TailOptions};
pub use stream_writer::{ChunkBatching, ChunkWriter};
