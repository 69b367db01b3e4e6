//! The contract: the traits a backend implements, and the records, requests and errors they speak of.
//!
//! [`Store`] is the conversation tree: conversations, nodes, branches and checkpoints, state, blobs,
//! responses and events. Values outside the tree are [`KeyValues`]; [`Search`], [`PathIndex`],
//! [`Streams`], [`Processes`], [`Calls`] and [`Maintenance`] are capabilities that a backend may lack.
//!
//! The vocabulary, one file each, and `capability` for what a backend may lack:
//!
//! * A *node* carries one item and never changes; its *path* is the nodes from the beginning to it.
//! * A *ref* is a name for a node: a branch, whose head moves with appends, or a checkpoint.
//! * An *append* adds items at an [`AppendPoint`] and is recognised when it is repeated.
//! * *State* is attached to nodes as a root: keys with the hashes of their values.
//! * *Removal* is redaction (content goes, the node stays) and erasure (everything goes).
//! * A *stream* is the log of a running response in chunks, before the response becomes nodes.
//!
//! What always holds: every call names its owner, ids and times are parameters, and a call that
//! fails has changed nothing unless its error is [`Error::OutcomeUnknown`].
//!
//! What is not here: decisions that all backends must take alike ([`rules`](crate::rules)), and
//! anything that needs more than one call ([`queries`](crate::queries), [`tail`](crate::tail)).

mod append;
mod blob;
mod capability;
mod conversation;
mod error;
mod event;
mod filter;
mod key_value;
mod limits;
mod node;
mod read;
mod refs;
mod removal;
mod response;
mod state;
mod store;

pub use append::{AppendPoint, AppendRequest, Appended, OnMoved};
pub use blob::BlobId;
pub use capability::{
    AppendChunks, BackedUp, CALL_HOUR_MS, CacheTokens, CallDetails, CallFilter, CallGroup,
    CallGrouping, CallNames, CallOrder, CallOutcome, CallPage, CallPrediction, CallRecord, CallSum,
    CallTokens, Calls, ChunkPage, CollectRequest, Collected, Compacted, ConversationCalls,
    ExchangeChange, ExchangeMark, FinishStream, HiddenContent, Hit, IndexProgress, ListCalls,
    Maintenance, MatchMode, OwnerSize, PathIndex, PathMark, PathMatch, PathQuery, PendingExchange,
    ProcessBeat, Processes, ReadChunks, ReplacingStatement, Search, SearchCoverage, SearchCursor,
    SearchLimits, SearchPage, SearchRequest, SearchScope, Snippet, Statistics, StorageAmount,
    StreamClaim, StreamCursor, StreamEnd, StreamEpoch, StreamLimits, StreamOpened, StreamRecord,
    Streams, SumCalls, SweepCalls, SweptCalls, VerifyCursor, VerifyPage, verify_conversation,
};
pub use conversation::{
    Conversation, ConversationCursor, ConversationPage, ConversationUpdate, ListConversations,
    Metadata, MetadataChange, NewConversation, TitleChange,
};
pub use error::{ChunkConflict, EntityKind, Error, IdConflict, StorageFault};
pub use event::{Event, EventKind};
pub use filter::{Comparison, MetadataFilter, MetadataKey, MetadataValue};
pub use key_value::{
    DERIVED_KEYS, EntryCursor, EntryPage, ExpectedVersion, KeyScope, KeyValueEntry, KeyValues,
    ListEntries, PutEntry,
};
pub use limits::Limits;
pub use node::{NewItem, Node, NodeKind};
pub use read::{NodeQuery, PathEnd, PathPage, ReadRequest, Span};
pub use refs::{
    Activation, Branch, BranchHolder, BranchLabel, Checkpoint, ClaimOver, Fence, NewBranch,
    RefChange, RefChanged, Refs,
};
pub use removal::{EraseScope, Erased, RedactRequest, Redacted};
pub use response::{ResponseInputs, ResponseRecord, ResponseStatus};
pub use state::{
    NodeState, StateChange, StateEntry, StateExpectation, StateKey, StateOp, StatePatch,
    StateRequest, StateRoot, StateValues,
};
pub use store::{Capabilities, Store};
