//! A model that answers as a provider once did.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use contexture_ir::{ContentHash, canonical_json};

use crate::call::{ModelRequest, ModelResponse};
use crate::canned_reply::CannedReply;
use crate::error::ModelError;
use crate::model::Model;
use crate::stream::ModelStream;

/// A recorded request and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedExchange {
    /// The request's body.
    pub request: String,
    /// The answer, whole or as the events of a stream.
    pub response: CannedReply,
}

/// How a request finds its recorded answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayMatching {
    /// The request equals the recorded one, white space and the order of keys apart. What was
    /// recorded more than once is answered in that order, the last of them ever after.
    #[default]
    Payload,
    /// The first call gets the first answer, whatever it asks.
    Order,
}

/// A model that replays recorded exchanges.
#[derive(Debug)]
pub struct ReplayModel {
    exchanges: Vec<RecordedExchange>,
    matching: ReplayMatching,
    /// By the hash of a request: the exchanges that answer it.
    index: BTreeMap<ContentHash, Vec<usize>>,
    state: Mutex<ReplayState>,
}

#[derive(Debug, Default)]
struct ReplayState {
    calls: usize,
    /// How often each request was asked.
    request_counts: BTreeMap<ContentHash, usize>,
}

impl ReplayModel {
    /// A model that replays these.
    #[must_use]
    pub fn new(
        exchanges: impl IntoIterator<Item = RecordedExchange>,
        matching: ReplayMatching,
    ) -> Self {
        let exchanges: Vec<RecordedExchange> = exchanges.into_iter().collect();
        let mut index: BTreeMap<ContentHash, Vec<usize>> = BTreeMap::new();
        // Indices and not the exchanges themselves: both ways of matching share one list.
        for (at, exchange) in exchanges.iter().enumerate() {
            index
                .entry(canonical_request_hash(&exchange.request))
                .or_default()
                .push(at);
        }
        Self {
            exchanges,
            matching,
            index,
            state: Mutex::default(),
        }
    }

    fn next_reply(&self, request: &ModelRequest) -> Result<CannedReply, ModelError> {
        let found =
            self.match_exchange(request)
                .map_err(|(call, reason)| ModelError::NoAnswer {
                    model: request.model.clone(),
                    call,
                    reason,
                })?;
        let reply = self.exchanges.get(found);
        // Unreachable, since indices come from the list; an empty body is a visible failure without a panic.
        Ok(reply.map_or_else(
            || CannedReply::from(String::new()),
            |one| one.response.clone(),
        ))
    }

    fn match_exchange(&self, request: &ModelRequest) -> Result<usize, (usize, String)> {
        let mut state = self.lock_state();
        state.calls += 1;
        let call = state.calls;
        match self.matching {
            ReplayMatching::Order if call <= self.exchanges.len() => Ok(call - 1),
            ReplayMatching::Order => Err((
                call,
                format!("{} exchanges were recorded", self.exchanges.len()),
            )),
            ReplayMatching::Payload => {
                let hash = canonical_request_hash(&request.payload);
                let times = state.request_counts.entry(hash).or_default();
                // Counted also where nothing is found, so that the error names the right call.
                *times += 1;
                let known = self.index.get(&hash).map(Vec::as_slice).unwrap_or_default();
                // The last recording answers every further repetition, as a test that retries expects.
                let found = known.get(*times - 1).or(known.last()).copied();
                found.ok_or_else(|| (call, format!("no recorded request is {hash}")))
            }
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, ReplayState> {
        // Counters: a panic leaves none half written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for ReplayModel {
    async fn answer(&self, request: ModelRequest) -> Result<ModelResponse, ModelError> {
        self.next_reply(&request)?.into_response(&request).await
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        self.next_reply(&request)?.into_stream(&request)
    }
}

/// The hash of what a request says: of its canonical JSON, or of its bytes where it is no JSON.
fn canonical_request_hash(request: &str) -> ContentHash {
    let canonical = canonical_json(request);
    ContentHash::of(canonical.as_deref().unwrap_or(request).as_bytes())
}
