//! Copies as files: `<root>/<owner>/<conversation>/<hash>.txt`, each name 32 hexadecimal digits.
//!
//! A file is written beside its place, synchronised and renamed into it. A file's time of change is when its text
//! was put first, its time of access when it was used last, so ages survive a restart and a program that reads the
//! file keeps it. Symbolic links are never followed: one that lies where a folder or a text should is an error, and
//! stays. Who may write into the folder can still race with us; give it to nobody else.

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

/// Copies as files. Needs a Tokio runtime; what takes time happens on its blocking threads.
#[derive(Clone, Debug)]
pub struct FsOffloadStore {
    files: Arc<CopyFolder>,
}

impl FsOffloadStore {
    /// Copies below `root`, which is made when something is first put.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let files = Arc::new(CopyFolder::new(root.into()));
        Self { files }
    }

    /// Where a copy lies or would lie: for programs of this machine, never for a model.
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
