//! What can go wrong with copies outside the database.

use std::error::Error;

use crate::copy_key::CopyKey;

/// Why a call to a store of copies failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OffloadError {
    /// There is no copy by this key, or it is not yours.
    #[error("no copy {key}")]
    NotFound {
        /// Key of the copy.
        key: CopyKey,
    },
    /// There was one, and it was evicted.
    #[error("copy {key} was evicted")]
    Evicted {
        /// Key of the copy.
        key: CopyKey,
    },
    /// What lies where copies should lie is something else: a link, a directory. It was not touched.
    #[error("{path} is {found}, expected {expected}")]
    Foreign {
        /// Path of the entry.
        path: String,
        /// What lies there.
        found: &'static str,
        /// What should be there.
        expected: &'static str,
    },
    /// The medium failed. The call left nothing, or a complete copy.
    #[error("cannot {what} {path}")]
    Storage {
        /// What was done.
        what: &'static str,
        /// Path or key it failed on.
        path: String,
        /// What the medium said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl OffloadError {
    /// A short stable word for programs.
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

    /// The medium failed.
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
