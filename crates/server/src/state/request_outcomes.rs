//! What became of a request beside its answer, by its id: for headers, and for who asks afterwards.
//!
//! The newest are kept, in memory; what is stored is the conversation's.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use contexture::Owner;
use tokio::sync::watch;
use uuid::Uuid;

use contexture_api::RequestDocument;

/// How many are kept.
const MAX_OUTCOMES: usize = 10_000;

/// A request's id: grows with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestId(Uuid);

impl RequestId {
    pub(crate) fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "req_{}", self.0.simple())
    }
}

impl FromStr for RequestId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let id = text.strip_prefix("req_").ok_or(())?;
        id.parse().map(Self).map_err(|_| ())
    }
}

/// What is told of requests, and to whom.
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
    /// Begins to tell of a request.
    pub(crate) fn begin_request(
        &self,
        owner: &Owner,
        document: RequestDocument,
    ) -> (RequestId, OutcomeRecorder) {
        let id = RequestId::new();
        let (telling, _) = watch::channel(RequestDocument {
            id: id.to_string(),
            ..document
        });
        let mut kept = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_id.insert(id, (owner.clone(), telling.clone()));
        kept.oldest_first.push_back(id);
        while kept.oldest_first.len() > MAX_OUTCOMES {
            if let Some(oldest) = kept.oldest_first.pop_front() {
                kept.by_id.remove(&oldest);
            }
        }
        (id, OutcomeRecorder(telling))
    }

    /// What is known of a request of this owner.
    pub(crate) fn find_outcome(&self, owner: &Owner, id: RequestId) -> Option<RequestDocument> {
        let kept = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let (whose, telling) = kept.by_id.get(&id)?;
        (whose == owner).then(|| telling.borrow().clone())
    }
}

/// Tells what becomes of one request.
#[derive(Clone, Debug)]
pub(crate) struct OutcomeRecorder(watch::Sender<RequestDocument>);

impl OutcomeRecorder {
    pub(crate) fn update_outcome(&self, change: impl FnOnce(&mut RequestDocument)) {
        self.0.send_modify(change);
    }

    /// As far as it is known now.
    pub(crate) fn current_outcome(&self) -> RequestDocument {
        self.0.borrow().clone()
    }

    /// Once the request is stored, or is not going to be.
    pub(crate) async fn wait_until_stored(&self) -> RequestDocument {
        let mut seen = self.0.subscribe();
        // This handle is a sender, so the channel stays open.
        let stored = seen.wait_for(RequestDocument::is_stored).await;
        stored.map_or_else(|_| self.current_outcome(), |document| document.clone())
    }
}
