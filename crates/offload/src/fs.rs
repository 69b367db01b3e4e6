//! Copies as files: `<root>/<owner>/<conversation>/<hash>.txt`, where each name is 32 hexadecimal digits.
//!
//! A file is written under a temporary name, synchronised and renamed into place. Its modification time is when the
//! text was first put, its access time when it was last used, so ages survive a restart, and a program that reads the
//! file keeps it in use. Symbolic links below the root are never followed: one in the place of a folder or a text is an
//! error, and is left alone. Whoever may write into the folder can still race with us, so give nobody else access.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use crate::copy_key::{CopyKey, CopyScope};
use crate::error::OffloadError;
use crate::files::CopyFolder;
use crate::name::CopyFileKind;
use crate::store::{CopyKind, CopyMetadata, OffloadStore, PutOutcome, Reconciled};

/// Copies as files. Needs a Tokio runtime; file operations run on its blocking threads.
#[derive(Clone, Debug)]
pub struct FsOffloadStore {
    files: Arc<CopyFolder>,
}

impl FsOffloadStore {
    /// Creates a store below `root`; folders are created when something is first put.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let files = Arc::new(CopyFolder::new(root.into()));
        Self { files }
    }

    /// Returns the path of a copy, whether or not it exists: for programs on this machine, never for a model.
    #[must_use]
    pub fn copy_path(&self, key: &CopyKey, holding: CopyKind) -> PathBuf {
        self.files.copy_path(key, CopyFileKind::Stored(holding))
    }

    /// Path of the folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.files.root()
    }

    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CopyFolder) -> Result<T, OffloadError> + Send + 'static,
    ) -> Result<T, OffloadError> {
        let files = Arc::clone(&self.files);
        let done = tokio::task::spawn_blocking(move || work(&files)).await;
        done.unwrap_or_else(|error| {
            let place = self.files.root().display();
            Err(OffloadError::storage_error("work on", place, error))
        })
    }
}

#[async_trait]
impl OffloadStore for FsOffloadStore {
    async fn put_copy(
        &self,
        key: &CopyKey,
        text: Bytes,
        holding: CopyKind,
        at_ms: i64,
    ) -> Result<PutOutcome, OffloadError> {
        let key = *key;
        self.run_blocking(move |files| files.put_copy(&key, &text, holding, at_ms))
            .await
    }

    async fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        let key = *key;
        self.run_blocking(move |files| files.read_copy(&key, range, at_ms))
            .await
    }

    async fn stat(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError> {
        let key = *key;
        self.run_blocking(move |files| files.find_copy(&key)).await
    }

    async fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError> {
        let scope = *scope;
        self.run_blocking(move |files| files.list_copies(&scope))
            .await
    }

    async fn evict_copy(&self, key: &CopyKey, _at_ms: i64) -> Result<bool, OffloadError> {
        let key = *key;
        self.run_blocking(move |files| files.evict_copy(&key)).await
    }

    async fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError> {
        let scope = *scope;
        self.run_blocking(move |files| files.clear_scope(&scope))
            .await
    }

    async fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError> {
        self.run_blocking(move |files| files.reconcile(at_ms)).await
    }
}
