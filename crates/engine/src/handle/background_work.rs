//! Work that an engine does in the background, at most one piece at a time for a conversation.
//!
//! Not here: the work itself (`compaction`).

use std::collections::BTreeSet;

use contexture_ir::{ConversationId, Owner};
use tokio::sync::watch;

use super::conversation::Conversation;

type ConversationKey = (Owner, ConversationId);

/// The conversations that work is done for.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackgroundWork(watch::Sender<BTreeSet<ConversationKey>>);

/// A piece of work that is under way. Dropped, it has ended.
#[derive(Debug)]
pub(crate) struct WorkUnderWay {
    work: BackgroundWork,
    key: ConversationKey,
}

impl BackgroundWork {
    /// Notes that work begins for a conversation; `None` if other work is under way for it.
    pub(crate) fn begin(&self, chat: &Conversation) -> Option<WorkUnderWay> {
        let key = (chat.owner().clone(), chat.id().clone());
        let is_new = self.0.send_if_modified(|keys| keys.insert(key.clone()));
        is_new.then(|| WorkUnderWay {
            work: self.clone(),
            key,
        })
    }

    /// Waits until no work is under way for a conversation.
    pub(crate) async fn wait_until_idle(&self, chat: &Conversation) {
        let key = (chat.owner().clone(), chat.id().clone());
        let mut keys = self.0.subscribe();
        // The sender is this very value, so the wait never fails.
        let _ = keys.wait_for(|keys| !keys.contains(&key)).await;
    }
}

impl Drop for WorkUnderWay {
    fn drop(&mut self) {
        self.work.0.send_modify(|keys| {
            keys.remove(&self.key);
        });
    }
}
