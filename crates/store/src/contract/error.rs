//! Errors of a store, one variant for each thing that a caller would do next.
//!
//! "Not yours" and "not there" are the same [`Error::NotFound`]: nobody learns that a stranger's
//! conversation exists.

use std::fmt;
use std::path::PathBuf;

use contexture_ir::{BranchName, ContentHash, ConversationId, NodeId, StreamId};

use crate::contract::{Fence, StateExpectation, StateKey, StreamEnd, StreamEpoch};

/// Why a call to a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It does not exist, or belongs to another owner.
    #[error("{what} {name:?} not found")]
    NotFound {
        /// Its kind.
        what: EntityKind,
        /// The name or id as given.
        name: String,
    },
    /// The name or id prefix fits more than one thing; name it more precisely.
    #[error("{what} {name:?} is ambiguous: {}", CandidateList(candidates))]
    Ambiguous {
        /// Its kind.
        what: EntityKind,
        /// The name or prefix as given.
        name: String,
        /// Some of the things it fits.
        candidates: Vec<String>,
    },
    /// The name is taken; choose another.
    #[error("{what} {name:?} already exists")]
    AlreadyExists {
        /// What was to be made.
        what: EntityKind,
        /// The taken name.
        name: String,
    },
    /// Somebody appended in between; nothing was stored. Read on from `expected` and decide anew.
    #[error(
        "branch {branch} has moved: expected head {}, found {}",
        HeadDisplay(expected),
        HeadDisplay(actual)
    )]
    HeadMoved {
        /// The branch.
        branch: BranchName,
        /// The head the caller knew.
        expected: Option<NodeId>,
        /// The head now.
        actual: Option<NodeId>,
    },
    /// A state entry is not what the patch expects; nothing was stored.
    #[error(
        "state {key} is not as expected: expected {expected}, found {}",
        HashDisplay(actual)
    )]
    StateConflict {
        /// The entry.
        key: StateKey,
        /// What the patch expected.
        expected: StateExpectation,
        /// The entry's hash now.
        actual: Option<ContentHash>,
    },
    /// A value outside the tree, or a conversation's metadata, was written in between.
    #[error("{what} {name:?} is at version {actual}, expected {expected}")]
    VersionConflict {
        /// What was to be written.
        what: EntityKind,
        /// Its name.
        name: String,
        /// The version the caller knew; 0 means absent.
        expected: u64,
        /// The version now; 0 means absent.
        actual: u64,
    },
    /// A node id is taken by something else; nothing was stored. The caller makes ids wrongly.
    #[error("node {node}: {why}")]
    IdConflict {
        /// The node.
        node: NodeId,
        /// In what way.
        why: IdConflict,
    },
    /// Another writer claimed the branch since; nothing was stored. Stop writing.
    #[error("branch {branch} was claimed by another writer: fence {held} is older than {current}")]
    StaleFence {
        /// The branch.
        branch: BranchName,
        /// The caller's fence.
        held: Fence,
        /// The fence now.
        current: Fence,
    },
    /// Another writer opened the stream since; nothing was stored. Stop writing.
    #[error("stream {stream} was opened by another writer: epoch {held} is not {current}")]
    StaleEpoch {
        /// The stream.
        stream: StreamId,
        /// The caller's epoch.
        held: StreamEpoch,
        /// The epoch now.
        current: StreamEpoch,
    },
    /// The stream has ended; nothing was stored.
    #[error("stream {stream} has ended: {end}")]
    StreamEnded {
        /// The stream.
        stream: StreamId,
        /// How it ended.
        end: StreamEnd,
    },
    /// A chunk does not continue the stream; nothing was stored. The caller counts wrongly.
    #[error("chunk {seq} of stream {stream}: {why}")]
    ChunkConflict {
        /// The stream.
        stream: StreamId,
        /// The chunk's number.
        seq: u64,
        /// In what way.
        why: ChunkConflict,
    },
    /// The stream was opened anew; what was read of it belongs to another answer. Read from the
    /// beginning.
    #[error("stream {stream} was opened anew: epoch {asked} was asked for, it is {current}")]
    EpochChanged {
        /// The stream.
        stream: StreamId,
        /// The epoch of the cursor.
        asked: StreamEpoch,
        /// The epoch now.
        current: StreamEpoch,
    },
    /// The chunks were removed before they were read, since the answer is whole. Read it from the
    /// tree.
    #[error("chunk {seq} of stream {stream} is gone: chunks from {first} on are kept")]
    ChunksGone {
        /// The stream.
        stream: StreamId,
        /// The requested chunk.
        seq: u64,
        /// The first stored chunk.
        first: u64,
    },
    /// The request exceeds a limit; nothing was stored.
    #[error("limit {limit} exceeded: {actual} of at most {max}")]
    Limit {
        /// The limit's name, as in [`Limits`](crate::Limits).
        limit: &'static str,
        /// The most that is allowed.
        max: u64,
        /// The size or number of the request.
        actual: u64,
    },
    /// The call contradicts itself.
    #[error("invalid {what}: {why}")]
    Invalid {
        /// The argument.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Too many writes are queued, or another process writes for too long. Nothing was stored; try again.
    #[error("store is busy: {why}")]
    Busy {
        /// What is in the way.
        why: String,
    },
    /// Whether the call took effect is unknown. Repeat it unchanged: ids make that exact.
    #[error("outcome unknown")]
    OutcomeUnknown {
        /// What happened.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This backend lacks a feature that another tool has.
    #[error("this store does not offer {what}: {instead}")]
    NotOffered {
        /// The feature.
        what: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// The store was closed.
    #[error("store is closed")]
    Closed,
    /// Stored bytes are not what was written. Everything else stays readable.
    #[error("damaged {what} in conversation {conversation} at {position}: {why}")]
    Damaged {
        /// The conversation.
        conversation: ConversationId,
        /// What is damaged.
        what: &'static str,
        /// Where: a depth, a name or a number.
        position: String,
        /// How it was noticed.
        why: String,
    },
    /// The database was written by a version this one cannot follow.
    #[error("{}: format {found} is newer than {supported}, the newest this version knows", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its format, or the oldest format that may open it.
        found: u32,
        /// The newest format this version knows.
        supported: u32,
    },
    /// The database was made by an earlier version, or not at all, and this backend changes tables
    /// only when it is told to.
    #[error("{}: format {found} is older than {needed}: run `contexture migrate`", path.display())]
    Older {
        /// The database.
        path: PathBuf,
        /// Its format; 0: it has no tables of ours.
        found: u32,
        /// The format this version works with.
        needed: u32,
    },
    /// The medium failed.
    #[error("{}: {fault}", path.display())]
    Storage {
        /// The database.
        path: PathBuf,
        /// In what way.
        fault: StorageFault,
        /// What the database said.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// What a store keeps, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntityKind {
    /// A conversation.
    Conversation,
    /// A branch.
    Branch,
    /// A checkpoint.
    Checkpoint,
    /// A node.
    Node,
    /// A message.
    Message,
    /// A blob.
    Blob,
    /// A value outside the tree.
    Entry,
    /// A file.
    File,
    /// A stream.
    Stream,
    /// A model's answer.
    Response,
}

/// In what way a node id is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdConflict {
    /// The stored node has other bytes.
    OtherBytes,
    /// Some items of the append are stored, others are not, or they are not in this order on one
    /// path: this is no repetition of an earlier append.
    NotARepeat,
    /// The append carries the id twice.
    Twice,
    /// The stored node was redacted: whether its bytes were these can no longer be told.
    Redacted,
}

/// In what way a chunk does not continue its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChunkConflict {
    /// Another chunk has the number.
    OtherBytes,
    /// Chunks before it are missing.
    Gap {
        /// The number that comes next.
        next: u64,
    },
}

/// In what way the medium failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StorageFault {
    /// No space left; free some and repeat the call.
    Full,
    /// The file or its directory cannot be written.
    ReadOnly,
    /// The file cannot be opened: missing directory, missing permission, a directory.
    CannotOpen,
    /// The file is not a database of ours.
    NotADatabase,
    /// The database's own structure is damaged.
    Corrupt,
    /// Reading or writing failed.
    Io,
    /// The store's own code panicked: a defect. The call left nothing, and the store goes on.
    Panicked,
    /// The database refused a statement for a reason of its own.
    Other,
}

impl Error {
    /// A short stable word for programs.
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
            Self::StaleEpoch { .. } => "stale_epoch",
            Self::StreamEnded { .. } => "stream_ended",
            Self::ChunkConflict { .. } => "chunk_conflict",
            Self::EpochChanged { .. } => "epoch_changed",
            Self::ChunksGone { .. } => "chunks_gone",
            Self::Limit { .. } => "limit",
            Self::Invalid { .. } => "invalid",
            Self::Busy { .. } => "busy",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::NotOffered { .. } => "not_offered",
            Self::Closed => "closed",
            Self::Damaged { .. } => "damaged",
            Self::Newer { .. } => "newer_format",
            Self::Older { .. } => "older_format",
            Self::Storage { .. } => "storage",
        }
    }

    /// Whether the same call, unchanged, may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::OutcomeUnknown { .. } => true,
            Self::NotFound { .. }
            | Self::Ambiguous { .. }
            | Self::AlreadyExists { .. }
            | Self::HeadMoved { .. }
            | Self::StateConflict { .. }
            | Self::VersionConflict { .. }
            | Self::IdConflict { .. }
            | Self::StaleFence { .. }
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

    /// [`Error::NotFound`] for `what` by `name`.
    #[must_use]
    pub fn not_found(what: EntityKind, name: impl fmt::Display) -> Self {
        Self::NotFound {
            what,
            name: name.to_string(),
        }
    }

    /// [`Error::AlreadyExists`] for `what` by `name`.
    #[must_use]
    pub fn already_exists(what: EntityKind, name: impl fmt::Display) -> Self {
        Self::AlreadyExists {
            what,
            name: name.to_string(),
        }
    }

    /// [`Error::Damaged`] for `what` at `position` of a conversation.
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

    /// [`Error::Invalid`] for the argument `what`.
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
