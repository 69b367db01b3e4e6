//! The backends, and names for what they hold.

use std::sync::Arc;

use bytes::Bytes;
use contexture_ir::{ContentHash, ConversationId, Owner};
use contexture_offload::{
    CopyKey, CopyKind, CopyScope, FsOffloadStore, MemoryOffloadStore, ObjectOffloadStore,
    OffloadStore,
};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use tempfile::TempDir;

/// A backend, and what keeps its place alive.
pub(crate) struct Backend {
    pub(crate) name: &'static str,
    pub(crate) store: Arc<dyn OffloadStore>,
    /// Whether it keeps the times it is told.
    pub(crate) keeps_times: bool,
    _place: Option<TempDir>,
}

/// Every backend, empty.
pub(crate) fn backends() -> Vec<Backend> {
    let (files, objects) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let local = LocalFileSystem::new_with_prefix(objects.path()).unwrap();
    let object = |objects, prefix| ObjectOffloadStore::new(objects, prefix).unwrap();
    vec![
        Backend {
            name: "memory",
            store: Arc::new(MemoryOffloadStore::new()),
            keeps_times: true,
            _place: None,
        },
        Backend {
            name: "files",
            store: Arc::new(FsOffloadStore::new(files.path().join("offload"))),
            keeps_times: true,
            _place: Some(files),
        },
        Backend {
            name: "objects in memory",
            store: Arc::new(object(Arc::new(InMemory::new()), "")),
            keeps_times: false,
            _place: None,
        },
        Backend {
            name: "objects in a folder",
            store: Arc::new(object(Arc::new(local), "some/prefix")),
            keeps_times: false,
            _place: Some(objects),
        },
    ]
}

pub(crate) fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

pub(crate) fn conversation(name: &str) -> ConversationId {
    ConversationId::new(name).unwrap()
}

/// The key of `text` in ada's conversation `c`.
pub(crate) fn key(text: &str) -> CopyKey {
    key_of("ada", "c", text)
}

pub(crate) fn key_of(name: &str, chat: &str, text: &str) -> CopyKey {
    let content = ContentHash::of(text.as_bytes());
    CopyKey::new(&owner(name), &conversation(chat), content)
}

/// Puts a copy of `text` under its own name.
pub(crate) async fn put(store: &dyn OffloadStore, text: &str, at_ms: i64) -> CopyKey {
    let key = key(text);
    let bytes = Bytes::from(text.to_owned());
    store
        .put_copy(&key, bytes, CopyKind::Copy, at_ms)
        .await
        .unwrap();
    key
}

/// The lengths of what there is, by key.
pub(crate) async fn held(store: &dyn OffloadStore) -> Vec<CopyKey> {
    let entries = store.list_copies(&CopyScope::All).await.unwrap();
    entries.iter().map(|entry| entry.key).collect()
}
