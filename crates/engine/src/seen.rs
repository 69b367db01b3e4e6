//! The path a handle has read.
//!
//! Not here: reading it, and whether it still holds (`whole_path`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::path::StoredPath;

/// A path, and the last event when it was read.
#[derive(Debug)]
pub(crate) struct CachedPath {
    pub(crate) path: Arc<StoredPath>,
    pub(crate) event: u64,
}

/// What a handle has read. Clones of the handle share it.
#[derive(Debug, Default)]
pub(crate) struct PathCache(Mutex<Option<CachedPath>>);

impl PathCache {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<CachedPath>> {
        // Either there is a whole path in it or none.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of its nodes' JSON.
    pub(crate) fn json_bytes(&self) -> usize {
        self.lock()
            .as_ref()
            .map_or(0, |kept| kept.path.json_bytes())
    }
}
