//! The last body of each branch that was used last, from which the next one is told as a difference.
//!
//! It saves work and room and changes no result: a body that nothing is remembered for is stored by itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_ir::{BranchName, CallId, ConversationId, NodeId, Owner};
use indexmap::IndexMap;

use super::conversation::Conversation;

/// Bytes of all bodies that are remembered.
const MAX_BYTES: usize = 32 << 20;
/// How many are remembered at most, however small they are.
const MOST: usize = 1_024;

/// The branch that a body belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LastBodyKey(Owner, ConversationId, BranchName);

impl LastBodyKey {
    pub(crate) fn of(chat: &Conversation) -> Self {
        Self(chat.owner().clone(), chat.id().clone(), chat.branch())
    }
}

/// A body that was encoded.
#[derive(Clone, Debug)]
pub(crate) struct LastBody {
    /// The call that it came with.
    pub(crate) call: CallId,
    /// The last node of what it had.
    pub(crate) head: Option<NodeId>,
    /// How many frames there are since the key frame.
    pub(crate) generation: u64,
    /// When the key frame was made, in milliseconds since the Unix epoch.
    pub(crate) key_ms: i64,
    pub(crate) body: Arc<str>,
}

/// The bodies that were encoded last.
#[derive(Debug, Default)]
pub(crate) struct LastBodies(Mutex<RememberedBodies>);

#[derive(Debug, Default)]
struct RememberedBodies {
    /// The last is the newest.
    by_branch: IndexMap<LastBodyKey, LastBody>,
    bytes: usize,
}

impl LastBodies {
    fn lock(&self) -> MutexGuard<'_, RememberedBodies> {
        // At worst the sum is too large, and bodies are forgotten early.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the last body of a branch out: of two requests at once only one goes on from it.
    pub(crate) fn take(&self, key: &LastBodyKey) -> Option<LastBody> {
        let mut remembered = self.lock();
        let last = remembered.by_branch.shift_remove(key)?;
        remembered.bytes = remembered.bytes.saturating_sub(last.body.len());
        Some(last)
    }

    /// Remembers a body. One that alone takes an eighth of the room is not remembered.
    pub(crate) fn put(&self, key: LastBodyKey, last: LastBody) {
        if last.body.len() > MAX_BYTES / 8 {
            return;
        }
        let mut remembered = self.lock();
        remembered.bytes += last.body.len();
        let replaced = remembered.by_branch.insert(key, last);
        let replaced = replaced.map_or(0, |last| last.body.len());
        remembered.bytes = remembered.bytes.saturating_sub(replaced);
        while remembered.bytes > MAX_BYTES || remembered.by_branch.len() > MOST {
            let Some((_, oldest)) = remembered.by_branch.shift_remove_index(0) else {
                break;
            };
            remembered.bytes = remembered.bytes.saturating_sub(oldest.body.len());
        }
    }
}
