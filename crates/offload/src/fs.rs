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

use crate::error::OffloadError;
use crate::files::Files;
use crate::key::{Key, Scope};
use crate::name::Kind;
use crate::store::{Entry, Holding, OffloadStore, Put, Reconciled};

/// Copies as files. Needs a Tokio runtime; what takes time happens on its blocking threads.
#[derive(Clone, Debug)]
pub struct FsOffloadStore {
    files: Arc<Files>,
}

impl FsOffloadStore {
    /// Copies below `root`, which is made when something is first put.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let files = Arc::new(Files::new(root.into()));
        Self { files }
    }

    /// Where a copy lies or would lie: for programs of this machine, never for a model.
    #[must_use]
    pub fn path(&self, key: &Key, holding: Holding) -> PathBuf {
        self.files.path(key, Kind::Held(holding))
    }

    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.files.root()
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, OffloadError> + Send + 'static,
    ) -> Result<T, OffloadError> {
        let files = Arc::clone(&self.files);
        let done = tokio::task::spawn_blocking(move || work(&files)).await;
        done.unwrap_or_else(|error| {
            let place = self.files.root().display();
            Err(OffloadError::storage("work on", place, error))
        })
    }
}

#[async_trait]
impl OffloadStore for FsOffloadStore {
    async fn put(
        &self,
        key: &Key,
        text: Bytes,
        holding: Holding,
        at_ms: i64,
    ) -> Result<Put, OffloadError> {
        let key = *key;
        self.run(move |files| files.put(&key, &text, holding, at_ms))
            .await
    }

    async fn get(
        &self,
        key: &Key,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        let key = *key;
        self.run(move |files| files.get(&key, range, at_ms)).await
    }

    async fn stat(&self, key: &Key) -> Result<Entry, OffloadError> {
        let key = *key;
        self.run(move |files| files.find(&key)).await
    }

    async fn list(&self, scope: &Scope) -> Result<Vec<Entry>, OffloadError> {
        let scope = *scope;
        self.run(move |files| files.list(&scope)).await
    }

    async fn evict(&self, key: &Key, _at_ms: i64) -> Result<bool, OffloadError> {
        let key = *key;
        self.run(move |files| files.evict(&key)).await
    }

    async fn clear(&self, scope: &Scope) -> Result<u64, OffloadError> {
        let scope = *scope;
        self.run(move |files| files.clear(&scope)).await
    }

    async fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError> {
        self.run(move |files| files.reconcile(at_ms)).await
    }
}
