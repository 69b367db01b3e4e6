//! Requests with an idempotency key that this process is answering.
//!
//! A claim in the store names the process that answers. Which of its claims a process has given up, because the client left
//! or its time was over, only the process itself can know: by this list.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::Owner;

/// The owners and keys of requests under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningClaims(Arc<Mutex<BTreeSet<(Owner, String)>>>);

/// A request under way; dropping it ends its claim in this process.
#[derive(Debug)]
pub(crate) struct RunningClaim {
    key: (Owner, String),
    all: RunningClaims,
}

impl RunningClaims {
    /// Notes that a request under a key begins; `None` if one is under way.
    pub(crate) fn start(&self, owner: &Owner, key: &str) -> Option<RunningClaim> {
        let key = (owner.clone(), key.to_owned());
        let is_first = self.lock().insert(key.clone());
        let all = self.clone();
        is_first.then(|| RunningClaim { key, all })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(Owner, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningClaim {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}
