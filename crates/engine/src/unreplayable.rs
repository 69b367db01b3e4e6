//! Why there is no replay.

/// Why a call cannot be compiled again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreplayable {
    /// What it was compiled from was not kept, or only its hashes.
    #[error("what it was compiled from was not kept: record with level `inputs`")]
    NotRecorded,
    /// Something that went into it was redacted.
    #[error("something that went into it was redacted")]
    Redacted,
    /// It was kept by a newer version.
    #[error("it was kept in version {version}, which this program does not know")]
    Newer {
        /// The version.
        version: u32,
    },
    /// What was kept cannot be read.
    #[error("what was kept of it cannot be read: {why}")]
    Unreadable {
        /// What is wrong with it.
        why: String,
    },
}
