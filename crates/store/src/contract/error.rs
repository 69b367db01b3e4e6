//! Errors of a store, one variant for each reaction that a caller can have.
//!
//! "Belongs to another owner" and "does not exist" are the same [`Error::NotFound`], so that nobody
//! learns whether another owner's conversation exists.

use std::fmt;
use std::path::PathBuf;

use contexture_ir::{BranchName, ContentHash, ConversationId, NodeId, StreamId};

use crate::contract::{BranchHolder, Fence, StateExpectation, StateKey, StreamEnd, StreamEpoch};

/// Reason why a call to a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The requested thing does not exist, or belongs to another owner.
    #[error("{what} {name:?} not found")]
    NotFound {
        /// Kind of the requested thing.
        what: EntityKind,
        /// Name or id as the caller gave it.
        name: String,
    },
    /// The name or id prefix fits more than one thing; name it more precisely.
    #[error("{what} {name:?} is ambiguous: {}", CandidateList(candidates))]
    Ambiguous {
        /// Kind of the requested thing.
        what: EntityKind,
        /// Name or prefix as the caller gave it.
        name: String,
        /// Names or ids of some of the things it fits.
        candidates: Vec<String>,
    },
    /// The name is taken; choose another.
    #[error("{what} {name:?} already exists")]
    AlreadyExists {
        /// Kind of the thing that was to be created.
        what: EntityKind,
        /// Name that is taken.
        name: String,
    },
    /// The branch has another head than expected; nothing was stored. Read what follows `expected`
    /// and decide again.
    #[error(
        "branch {branch} has moved: expected head {}, found {}",
        HeadDisplay(expected),
        HeadDisplay(actual)
    )]
    HeadMoved {
        /// Name of the branch.
        branch: BranchName,
        /// Head that the caller expected; `None` for an empty branch.
        expected: Option<NodeId>,
        /// Current head of the branch; `None` if it is empty.
        actual: Option<NodeId>,
    },
    /// A state entry is not what the patch expects; nothing was stored.
    #[error(
        "state {key} is not as expected: expected {expected}, found {}",
        HashDisplay(actual)
    )]
    StateConflict {
        /// Key of the state entry.
        key: StateKey,
        /// Content that the patch expected.
        expected: StateExpectation,
        /// Hash of the entry's current value; `None` if there is no entry.
        actual: Option<ContentHash>,
    },
    /// A value outside the tree, or the title or metadata of a conversation, was changed meanwhile; nothing was stored.
    #[error("{what} {name:?} is at version {actual}, expected {expected}")]
    VersionConflict {
        /// Kind of the thing that was to be written.
        what: EntityKind,
        /// Key of the value, or id of the conversation.
        name: String,
        /// Version that the caller expected; 0 stands for no value.
        expected: u64,
        /// Current version; 0 stands for no value.
        actual: u64,
    },
    /// A node id is already taken; nothing was stored. The caller generates ids wrongly.
    #[error("node {node}: {why}")]
    IdConflict {
        /// Id that is taken.
        node: NodeId,
        /// Reason why the id is refused.
        why: IdConflict,
    },
    /// Another writer has claimed the branch since; nothing was stored. Stop writing.
    #[error("branch {branch} was claimed by another writer: fence {held} is older than {current}")]
    StaleFence {
        /// Name of the branch.
        branch: BranchName,
        /// Fence that the caller holds.
        held: Fence,
        /// Current fence of the branch.
        current: Fence,
    },
    /// A process holds the branch; nothing was changed.
    #[error("branch {branch} is held by process {} since {} ms", holder.process, holder.since_ms)]
    BranchHeld {
        /// Name of the branch.
        branch: BranchName,
        /// Process that holds it.
        holder: BranchHolder,
        /// Fence of its claim.
        fence: Fence,
    },
    /// Another writer has opened the stream since; nothing was stored. Stop writing.
    #[error("stream {stream} was opened by another writer: epoch {held} is not {current}")]
    StaleEpoch {
        /// Id of the stream.
        stream: StreamId,
        /// Epoch that the caller holds.
        held: StreamEpoch,
        /// Current epoch of the stream.
        current: StreamEpoch,
    },
    /// The stream has ended; nothing was stored.
    #[error("stream {stream} has ended: {end}")]
    StreamEnded {
        /// Id of the stream.
        stream: StreamId,
        /// End of the stream: completed, failed or cancelled.
        end: StreamEnd,
    },
    /// A chunk does not continue the stream; nothing was stored. The caller numbers chunks wrongly.
    #[error("chunk {seq} of stream {stream}: {why}")]
    ChunkConflict {
        /// Id of the stream.
        stream: StreamId,
        /// Number of the refused chunk.
        seq: u64,
        /// Reason why the chunk is refused.
        why: ChunkConflict,
    },
    /// The stream was opened again: what was read of it belongs to another response. Read from the beginning.
    #[error("stream {stream} was opened anew: epoch {asked} was asked for, it is {current}")]
    EpochChanged {
        /// Id of the stream.
        stream: StreamId,
        /// Epoch of the caller's cursor.
        asked: StreamEpoch,
        /// Current epoch of the stream.
        current: StreamEpoch,
    },
    /// The chunks were removed before they were read, because the response is complete. Read it from the tree.
    #[error("chunk {seq} of stream {stream} is gone: chunks from {first} on are kept")]
    ChunksGone {
        /// Id of the stream.
        stream: StreamId,
        /// Number of the requested chunk.
        seq: u64,
        /// Number of the first chunk that is not removed.
        first: u64,
    },
    /// The request exceeds a limit; nothing was stored.
    #[error("limit {limit} exceeded: {actual} of at most {max}")]
    Limit {
        /// Name of the limit, such as `append_items` or `stream_bytes`; see [`Limits`](crate::Limits).
        limit: &'static str,
        /// Largest value that is allowed.
        max: u64,
        /// Size or number that the request has.
        actual: u64,
    },
    /// An argument is invalid or contradicts another one.
    #[error("invalid {what}: {why}")]
    Invalid {
        /// Name of the argument.
        what: &'static str,
        /// Explanation of the mistake.
        why: String,
    },
    /// Too many writes are queued, or another process writes for too long. Nothing was stored; try again.
    #[error("store is busy: {why}")]
    Busy {
        /// Reason why the store is busy.
        why: String,
    },
    /// The database cannot be reached, or was lost before anything was sent that could have been stored. Nothing was
    /// stored; try again.
    #[error("{}: the database cannot be reached", path.display())]
    Unavailable {
        /// Path of the database file, or address of the database.
        path: PathBuf,
        /// Failure of the connection.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The call was stopped because its time was up, or because the database cancelled it. Nothing was stored; try
    /// again, or ask for less at once.
    #[error("stopped: {why}")]
    Interrupted {
        /// Reason why the call was stopped.
        why: String,
    },
    /// It is unknown whether the call took effect. Repeat it unchanged: [`Store`](crate::Store)
    /// says how a repeated call ends.
    #[error("outcome unknown")]
    OutcomeUnknown {
        /// Failure that hides the outcome, such as a lost connection.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This backend lacks a feature that another tool has.
    #[error("this store does not offer {what}: {instead}")]
    NotOffered {
        /// Description of the missing feature.
        what: &'static str,
        /// Instruction for reaching the same end by another tool.
        instead: &'static str,
    },
    /// The store was closed.
    #[error("store is closed")]
    Closed,
    /// Stored bytes are not those that were written. Everything else stays readable.
    #[error("damaged {what} in conversation {conversation} at {position}: {why}")]
    Damaged {
        /// Conversation with the damage.
        conversation: ConversationId,
        /// Kind of the damaged record, such as `node`.
        what: &'static str,
        /// Position of the damage: a depth, a name or a number.
        position: String,
        /// Finding that revealed the damage.
        why: String,
    },
    /// The database was written by a version whose format is too new for this one.
    #[error("{}: format {found} is newer than {supported}, the newest this version knows", path.display())]
    Newer {
        /// Path of the database file, or address of the database.
        path: PathBuf,
        /// Oldest format whose programs may still use the database.
        found: u32,
        /// Newest format that this version knows.
        supported: u32,
    },
    /// The database has an older format or none at all, and this backend migrates only on request.
    #[error("{}: {}: run `contexture migrate`, or call the store's `migrate`", path.display(), describe_older(*found, *needed))]
    Older {
        /// Path of the database file, or address of the database.
        path: PathBuf,
        /// Format of the database; 0 if it has no tables of ours.
        found: u32,
        /// Format that this version works with.
        needed: u32,
    },
    /// The database or its storage medium failed.
    #[error("{}: {fault}", path.display())]
    Storage {
        /// Path of the database file, or address of the database.
        path: PathBuf,
        /// Kind of the failure.
        fault: StorageFault,
        /// Error that the database reported, if it reported one.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// Kind of a stored thing, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntityKind {
    /// A conversation of an owner.
    Conversation,
    /// A branch of a conversation.
    Branch,
    /// A checkpoint of a conversation.
    Checkpoint,
    /// A node of a tree.
    Node,
    /// A message of a conversation.
    Message,
    /// A blob of a conversation.
    Blob,
    /// A value outside the tree.
    Entry,
    /// A file, such as a backup.
    File,
    /// A stream of a conversation.
    Stream,
    /// The record of a model's response.
    Response,
}

/// Reason why a node id is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdConflict {
    /// The stored node with this id has other bytes.
    OtherBytes,
    /// The append is no repetition of an earlier one: only some of its items are stored, or not in
    /// this order on one path.
    NotARepeat,
    /// The append uses the id twice.
    Twice,
    /// The stored node was redacted, so it is unknown whether its bytes were these.
    Redacted,
}

/// Reason why a chunk does not continue its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkConflict {
    /// Another chunk is stored under the number.
    OtherBytes,
    /// Chunks before this one are missing.
    Gap {
        /// Number of the chunk that comes next.
        next: u64,
    },
}

/// Kind of a failure of the database or its storage medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StorageFault {
    /// No space is left; free some and repeat the call.
    Full,
    /// The file or its directory cannot be written.
    ReadOnly,
    /// The file cannot be opened: a directory or permission is missing, or the path is a directory.
    CannotOpen,
    /// The file is not a database of ours.
    NotADatabase,
    /// The database's own structure is damaged.
    Corrupt,
    /// Reading or writing failed.
    Io,
    /// The store's own code panicked, which is a defect. The call changed nothing, and the store
    /// stays usable.
    Panicked,
    /// The database refused a statement for a reason of its own.
    Other,
}

fn describe_older(found: u32, needed: u32) -> String {
    match found {
        0 => "the database has no tables of ours yet".to_owned(),
        found => format!("format {found} is older than {needed}"),
    }
}

impl Error {
    /// Returns a short, stable word for programs, such as `not_found`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Ambiguous { .. } => "ambiguous",
            Self::AlreadyExists { .. } => "already_exists",
            Self::HeadMoved { .. } => "head_moved",
            Self::StateConflict { .. } => "state_conflict",
            Self::VersionConflict { .. } => "version_conflict",
            Self::IdConflict { .. } => "id_conflict",
            Self::StaleFence { .. } => "stale_fence",
            Self::BranchHeld { .. } => "branch_held",
            Self::StaleEpoch { .. } => "stale_epoch",
            Self::StreamEnded { .. } => "stream_ended",
            Self::ChunkConflict { .. } => "chunk_conflict",
            Self::EpochChanged { .. } => "epoch_changed",
            Self::ChunksGone { .. } => "chunks_gone",
            Self::Limit { .. } => "limit",
            Self::Invalid { .. } => "invalid",
            Self::Busy { .. } => "busy",
            Self::Unavailable { .. } => "unavailable",
            Self::Interrupted { .. } => "interrupted",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::NotOffered { .. } => "not_offered",
            Self::Closed => "closed",
            Self::Damaged { .. } => "damaged",
            Self::Newer { .. } => "newer_format",
            Self::Older { .. } => "older_format",
            Self::Storage {
                fault: StorageFault::Full,
                ..
            } => "storage_full",
            Self::Storage { .. } => "storage",
        }
    }

    /// Returns whether the same call, unchanged, may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy { .. }
            | Self::Unavailable { .. }
            | Self::Interrupted { .. }
            | Self::OutcomeUnknown { .. } => true,
            Self::NotFound { .. }
            | Self::Ambiguous { .. }
            | Self::AlreadyExists { .. }
            | Self::HeadMoved { .. }
            | Self::StateConflict { .. }
            | Self::VersionConflict { .. }
            | Self::IdConflict { .. }
            | Self::StaleFence { .. }
            | Self::BranchHeld { .. }
            | Self::StaleEpoch { .. }
            | Self::StreamEnded { .. }
            | Self::ChunkConflict { .. }
            | Self::EpochChanged { .. }
            | Self::ChunksGone { .. }
            | Self::Limit { .. }
            | Self::Invalid { .. }
            | Self::NotOffered { .. }
            | Self::Closed
            | Self::Damaged { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::Storage { .. } => false,
        }
    }

    /// Returns [`Error::NotFound`] for `what` by `name`.
    #[must_use]
    pub fn not_found(what: EntityKind, name: impl fmt::Display) -> Self {
        Self::NotFound {
            what,
            name: name.to_string(),
        }
    }

    /// Returns [`Error::AlreadyExists`] for `what` by `name`.
    #[must_use]
    pub fn already_exists(what: EntityKind, name: impl fmt::Display) -> Self {
        Self::AlreadyExists {
            what,
            name: name.to_string(),
        }
    }

    /// Returns [`Error::Damaged`] for `what` at `position` of a conversation.
    #[must_use]
    pub fn damaged(
        conversation: &ConversationId,
        what: &'static str,
        position: impl fmt::Display,
        why: impl Into<String>,
    ) -> Self {
        Self::Damaged {
            conversation: conversation.clone(),
            what,
            position: position.to_string(),
            why: why.into(),
        }
    }

    /// Returns [`Error::Invalid`] for the argument `what`.
    #[must_use]
    pub fn invalid_argument(what: &'static str, why: impl Into<String>) -> Self {
        Self::Invalid {
            what,
            why: why.into(),
        }
    }
}

impl fmt::Display for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conversation => "conversation",
            Self::Branch => "branch",
            Self::Checkpoint => "checkpoint",
            Self::Node => "node",
            Self::Message => "message",
            Self::Blob => "blob",
            Self::Entry => "entry",
            Self::File => "file",
            Self::Stream => "stream",
            Self::Response => "response",
        })
    }
}

impl fmt::Display for IdConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherBytes => "already stored with other bytes",
            Self::NotARepeat => "already stored, but not by an append like this one",
            Self::Twice => "stands twice in one append",
            Self::Redacted => "already stored, and redacted since",
        })
    }
}

impl fmt::Display for ChunkConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherBytes => f.write_str("already stored with other bytes"),
            Self::Gap { next } => write!(f, "chunk {next} comes next"),
        }
    }
}

impl fmt::Display for StorageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "no space left",
            Self::ReadOnly => "cannot be written",
            Self::CannotOpen => "cannot be opened",
            Self::NotADatabase => "not a contexture database",
            Self::Corrupt => "the database is damaged",
            Self::Io => "reading or writing failed",
            Self::Panicked => "a defect in the store: the call panicked, and left nothing",
            Self::Other => "the database refused",
        })
    }
}

struct HeadDisplay<'a>(&'a Option<NodeId>);

impl fmt::Display for HeadDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(node) => fmt::Display::fmt(node, f),
            None => f.write_str("none (empty)"),
        }
    }
}

struct HashDisplay<'a>(&'a Option<ContentHash>);

impl fmt::Display for HashDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(hash) => fmt::Display::fmt(hash, f),
            None => f.write_str("nothing"),
        }
    }
}

struct CandidateList<'a>(&'a [String]);

impl fmt::Display for CandidateList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, candidate) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            f.write_str(candidate)?;
        }
        Ok(())
    }
}
