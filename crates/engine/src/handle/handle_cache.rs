//! What handles on a conversation share to save work: the path that was read, the scratch memory of its compiles, and
//! what one handle knows of token counts.
//!
//! A handle has a cache of its own, which goes with it. An engine with
//! [`with_handle_cache`](crate::Engine::with_handle_cache) keeps those used last, for programs that open a handle for each
//! request. No cache changes a result: a path is good as far as the store confirms it (`read_path`), and a compile gives
//! the same bytes with any scratch memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_compile::{Calibration, Scratch};
use contexture_ir::{ConversationId, Owner};
use indexmap::IndexMap;

use super::read_path::PathCache;

/// What a handle knows of models, by key.
#[derive(Debug, Default)]
pub(crate) struct CalibrationCache(Mutex<BTreeMap<String, CachedCalibration>>);

/// What is known of one model, and as which version it is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedCalibration {
    pub(crate) calibration: Calibration,
    pub(crate) version: Option<u64>,
}

impl CalibrationCache {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CachedCalibration>> {
        // Each change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many are kept at most, however small they are.
const MOST: usize = 256;

/// A text that was read is held as JSON, as an item, as what was lowered of it, and as part of a history.
const COPIES: usize = 4;

/// The part of all that the memory of one conversation's compiles may have.
const SHARE: usize = 8;

/// What is saved of one conversation.
#[derive(Debug, Default)]
pub(crate) struct HandleCache {
    pub(crate) scratch: Mutex<Scratch>,
    pub(crate) path_cache: PathCache,
}

/// What is saved of the conversations that were used last.
#[derive(Debug)]
pub(crate) struct HandleCaches {
    bytes: usize,
    /// The last is the newest.
    caches: Mutex<IndexMap<(Owner, ConversationId), Arc<HandleCache>>>,
}

impl HandleCache {
    /// About how many bytes it holds.
    fn estimated_bytes(&self) -> usize {
        self.path_cache.json_bytes().saturating_mul(COPIES)
    }
}

impl HandleCaches {
    /// Keeps about so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            bytes,
            caches: Mutex::default(),
        }
    }

    /// What is saved of a conversation, from now on the newest. The oldest go, if there is too much without this one.
    pub(crate) fn cache_for(&self, owner: &Owner, id: &ConversationId) -> Arc<HandleCache> {
        let key = (owner.clone(), id.clone());
        // Each change is one removal or insertion.
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        // Removed and inserted again: the order of the map is the order of use.
        let known = caches.shift_remove(&key);
        let mut held: usize = caches.values().map(|one| one.estimated_bytes()).sum();
        // Measured without this conversation: the one in use is never evicted by itself.
        while held > self.bytes || caches.len() >= MOST {
            let Some((_, oldest)) = caches.shift_remove_index(0) else {
                break;
            };
            held -= oldest.estimated_bytes().min(held);
        }
        let cache = known.unwrap_or_else(|| {
            Arc::new(HandleCache {
                scratch: Mutex::new(Scratch::with_capacity(self.bytes / SHARE)),
                path_cache: PathCache::default(),
            })
        });
        caches.insert(key, Arc::clone(&cache));
        cache
    }
}

#[cfg(test)]
mod tests {
    use crate::handle::{Engine, read_full_path};
    use contexture_store::PathEnd;

    /// Whether two handles, opened one after the other, save work together.
    async fn is_shared(engine: &Engine, between: &[&str]) -> bool {
        let text = contexture_ir::user("x".repeat(1_000));
        let first = engine.conversation("a").open().await.unwrap();
        first.save([text.clone()]).await.unwrap();
        read_full_path(&first, PathEnd::Branch(first.branch()))
            .await
            .unwrap();
        for id in between {
            let other = engine.conversation(*id).open().await.unwrap();
            other.save([text.clone()]).await.unwrap();
            read_full_path(&other, PathEnd::Branch(other.branch()))
                .await
                .unwrap();
        }
        let second = engine.conversation("a").open().await.unwrap();
        second.path_cache().json_bytes() > 0
    }

    #[tokio::test]
    async fn handle_cache_if_enabled_keeps_recently_used_conversations() {
        let engine = Engine::in_memory();
        assert!(!is_shared(&engine, &[]).await);
        assert!(is_shared(&engine.clone().with_handle_cache(16_000), &["b", "c"]).await);
        assert!(!is_shared(&engine.with_handle_cache(8_000), &["b", "c", "d"]).await);
    }
}
