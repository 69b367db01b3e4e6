//! What handles on a conversation save work with: what was read of it, and the memory of its compiles.
//!
//! A handle has one of its own, which goes with it. An engine that is asked to keeps those that were used last, for
//! programs that open a handle for each request. They decide nothing: a path that was read is good as far as the store
//! says (`whole_path`), and a compile gives the same bytes with any memory.

use std::sync::{Arc, Mutex, PoisonError};

use contexture_compile::Scratch;
use contexture_ir::{ConversationId, Owner};
use indexmap::IndexMap;

use crate::seen::PathCache;

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
        let mut kept = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.shift_remove(&key);
        let mut held: usize = kept.values().map(|one| one.estimated_bytes()).sum();
        while held > self.bytes || kept.len() >= MOST {
            let Some((_, oldest)) = kept.shift_remove_index(0) else {
                break;
            };
            held -= oldest.estimated_bytes().min(held);
        }
        let warm = known.unwrap_or_else(|| {
            Arc::new(HandleCache {
                scratch: Mutex::new(Scratch::with_capacity(self.bytes / SHARE)),
                path_cache: PathCache::default(),
            })
        });
        kept.insert(key, Arc::clone(&warm));
        warm
    }
}

#[cfg(test)]
mod tests {
    use contexture_store::PathEnd;

    use crate::engine::Engine;

    /// Whether two handles, opened one after the other, save work together.
    async fn is_shared(engine: &Engine, between: &[&str]) -> bool {
        let text = contexture_ir::user("x".repeat(1_000));
        let first = engine.conversation("a").open().await.unwrap();
        first.save([text.clone()]).await.unwrap();
        first
            .read_full_path(PathEnd::Branch(first.branch()))
            .await
            .unwrap();
        for id in between {
            let other = engine.conversation(*id).open().await.unwrap();
            other.save([text.clone()]).await.unwrap();
            other
                .read_full_path(PathEnd::Branch(other.branch()))
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
