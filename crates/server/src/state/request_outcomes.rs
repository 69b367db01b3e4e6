//! Request outcomes: what the capture of a request came to, by the request's id.
//!
//! Shown in the answer's headers as far as it is known by then, and afterwards under `/requests/{request}`. The newest are
//! kept in memory; the stored part is in the conversation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use contexture::Owner;
use tokio::sync::watch;

use crate::state::call_log::RequestId;
use contexture_api::RequestDocument;

/// Outcomes that are kept; the oldest is dropped first.
const MAX_OUTCOMES: usize = 10_000;

/// The outcomes of the newest requests, each visible to its owner only.
#[derive(Debug, Default)]
pub(crate) struct RequestOutcomes {
    history: Mutex<OutcomeHistory>,
}

#[derive(Debug, Default)]
struct OutcomeHistory {
    by_id: BTreeMap<RequestId, (Owner, watch::Sender<RequestDocument>)>,
    oldest_first: VecDeque<RequestId>,
}

impl RequestOutcomes {
    /// Registers a request, and returns the recorder of its outcome.
    pub(crate) fn begin_request(
        &self,
        owner: &Owner,
        id: RequestId,
        document: RequestDocument,
    ) -> OutcomeRecorder {
        let (sender, _) = watch::channel(RequestDocument {
            id: id.to_string(),
            ..document
        });
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.by_id.insert(id, (owner.clone(), sender.clone()));
        history.oldest_first.push_back(id);
        // Pushed before evicting, so that the newest is always kept.
        while history.oldest_first.len() > MAX_OUTCOMES {
            if let Some(oldest) = history.oldest_first.pop_front() {
                history.by_id.remove(&oldest);
            }
        }
        OutcomeRecorder(sender)
    }

    /// Returns what is known of a request of this owner.
    pub(crate) fn find_outcome(&self, owner: &Owner, id: RequestId) -> Option<RequestDocument> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let (known_owner, sender) = history.by_id.get(&id)?;
        // Ids can be guessed from the time: another owner's request is as unknown as one that never was.
        (known_owner == owner).then(|| sender.borrow().clone())
    }
}

/// Records the outcome of one request.
#[derive(Clone, Debug)]
pub(crate) struct OutcomeRecorder(watch::Sender<RequestDocument>);

impl OutcomeRecorder {
    pub(crate) fn update_outcome(&self, change: impl FnOnce(&mut RequestDocument)) {
        self.0.send_modify(change);
    }

    /// Returns the outcome as far as it is known.
    pub(crate) fn current_outcome(&self) -> RequestDocument {
        self.0.borrow().clone()
    }

    /// Waits until the outcome is final.
    pub(crate) async fn wait_until_done(&self) {
        let mut receiver = self.0.subscribe();
        // This handle is a sender, so the channel stays open.
        let _ = receiver.wait_for(|document| document.done).await;
    }

    /// Waits until the request is stored, or will not be.
    pub(crate) async fn wait_until_stored(&self) -> RequestDocument {
        let mut receiver = self.0.subscribe();
        // This handle is a sender, so the channel stays open.
        let stored = receiver.wait_for(RequestDocument::is_stored).await;
        stored.map_or_else(|_| self.current_outcome(), |document| document.clone())
    }
}
