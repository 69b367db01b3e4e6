//! Errors of stores of copies.

use std::error::Error;

use crate::copy_key::CopyKey;

/// Why a call to a store of copies failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OffloadError {
    /// There is no copy with this key.
    #[error("no copy {key}")]
    NotFound {
        /// Key of the copy.
        key: CopyKey,
    },
    /// There was a copy, and it was evicted.
    #[error("copy {key} was evicted")]
    Evicted {
        /// Key of the copy.
        key: CopyKey,
    },
    /// Something other than a copy is at its path, such as a link or a directory. It was not touched.
    #[error("{path} is {found}, expected {expected}")]
    Foreign {
        /// Path of the entry.
        path: String,
        /// What was found.
        found: &'static str,
        /// What should be there.
        expected: &'static str,
    },
    /// The storage failed. The call left nothing, or a complete copy.
    #[error("cannot {what} {path}")]
    Storage {
        /// The operation that failed.
        what: &'static str,
        /// Path or key it failed on.
        path: String,
        /// Error of the storage.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OffloadError {
    /// Returns a short stable name for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Evicted { .. } => "evicted",
            Self::Foreign { .. } => "foreign",
            Self::Storage { .. } => "storage",
        }
    }

    /// Whether the same call, unchanged, may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Storage { .. } => true,
            Self::NotFound { .. } | Self::Evicted { .. } | Self::Foreign { .. } => false,
        }
    }

    /// Creates an error for a failed storage operation.
    pub fn storage_error(
        what: &'static str,
        place: impl ToString,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Storage {
            what,
            path: place.to_string(),
            source: source.into(),
        }
    }
}
