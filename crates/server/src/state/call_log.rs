//! The record of calls, as the server writes it: one row for each exchange with a provider.
//!
//! A row is stored with the answer it belongs to, in one append. Where no answer is stored, its exchange has no model, or it
//! never reached the provider, the row waits in memory for at most [`MAX_WAIT`] and is stored with others, so no request
//! waits for it. What waits is stored before the server ends.
//!
//! Not here: what becomes of rows later (`serve::retention`), and what they are shown as (`api::calls`).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use contexture::Owner;
use contexture::catalogue::Cost;
use contexture::compile::CallBand;
use contexture::engine::{EncodedBody, call_cache_tokens};
use contexture::ir::{
    CallId, ContentHash, ConversationId, FinishReason, ResponseInfo, Transcript, Usage,
};
use contexture::store::rules::{call_figure, call_money, call_name, call_tokens};
use contexture::store::{BlobId, CallOutcome, CallPrediction, CallRecord, Error as StoreError};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::state::App;
use crate::state::cost_accounts::BookedCall;

/// Longest time that a row waits for others.
const MAX_WAIT: Duration = Duration::from_millis(100);
/// Rows that may wait; more are lost and counted.
const MAX_PENDING: usize = 10_000;
/// Times that rows are tried to be stored, and the pause between them.
const MAX_ATTEMPTS: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// The id of a call, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestId(pub(crate) CallId);

impl RequestId {
    /// Returns a new id: those of one process are in the order in which they were made.
    pub(crate) fn new() -> Self {
        // By the machine's clock and not the engine's: whatever is wrong there, the request is forwarded.
        Self(CallId::from_bytes(Uuid::now_v7().into_bytes()))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "req_{}", self.0)
    }
}

impl FromStr for RequestId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let id = text.strip_prefix("req_").ok_or(())?;
        id.parse().map(Self).map_err(|_| ())
    }
}

/// Rows that wait to be stored.
#[derive(Debug, Default)]
pub(crate) struct CallLog(Mutex<PendingCalls>);

#[derive(Debug, Default)]
struct PendingCalls {
    by_owner: BTreeMap<Owner, Vec<CallRecord>>,
    count: usize,
    /// Whether a task is there that will store them.
    has_writer: bool,
}

impl CallLog {
    fn lock(&self) -> std::sync::MutexGuard<'_, PendingCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all rows; without any the writer is done.
    fn take_pending(&self) -> Option<BTreeMap<Owner, Vec<CallRecord>>> {
        let mut pending = self.lock();
        if pending.count == 0 {
            pending.has_writer = false;
            return None;
        }
        pending.count = 0;
        Some(std::mem::take(&mut pending.by_owner))
    }
}

/// Lets a row wait to be stored.
fn enqueue_call(app: &App, owner: &Owner, call: CallRecord) {
    if app.engine().store().calls().is_none() {
        return;
    }
    // Outside a runtime nothing can be stored any more.
    let Ok(runtime) = Handle::try_current() else {
        return count_lost(1);
    };
    let mut pending = app.call_log().lock();
    if pending.count >= MAX_PENDING {
        return count_lost(1);
    }
    pending.count += 1;
    pending
        .by_owner
        .entry(owner.clone())
        .or_default()
        .push(call);
    if !std::mem::replace(&mut pending.has_writer, true) {
        let tasks = app.background_tasks();
        tasks.spawn_on(write_pending_calls(app.clone()), &runtime);
    }
}

/// Stores the rows that wait, and those that come meanwhile.
async fn write_pending_calls(app: App) {
    loop {
        let stop = app.shutdown_token().cancelled();
        let _ = tokio::time::timeout(MAX_WAIT, stop).await;
        let Some(pending) = app.call_log().take_pending() else {
            return;
        };
        for (owner, calls) in pending {
            for batch in calls.chunks(app.engine().store().limits().call_batch.max(1)) {
                if let Err(error) = record_batch(&app, &owner, batch).await {
                    tracing::warn!(calls = batch.len(), %error, "calls are not in the record");
                    count_lost(batch.len());
                }
                // Lost or not: it was spent.
                for row in batch {
                    app.spending().settle_waiting(&owner, row);
                }
            }
        }
    }
}

async fn record_batch(app: &App, owner: &Owner, batch: &[CallRecord]) -> Result<(), StoreError> {
    let Some(calls) = app.engine().store().calls() else {
        return Ok(());
    };
    let mut attempt = 1;
    loop {
        match calls.record_calls(owner, batch.to_vec()).await {
            Err(error) if error.is_retryable() && attempt < MAX_ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(RETRY_DELAY).await;
            }
            other => return other,
        }
    }
}

fn count_lost(calls: usize) {
    metrics::counter!("contexture_calls_lost_total").increment(calls as u64);
}

/// Fills in the row of one exchange. Dropped with its last clone, an exchange whose row is not stored waits to be.
#[derive(Clone)]
pub(crate) struct CallRecorder(Arc<CallDraft>);

struct CallDraft {
    app: App,
    owner: Owner,
    id: RequestId,
    started: Instant,
    /// The row as far as it is known; `None` once it is stored.
    row: Mutex<Option<CallRecord>>,
    /// The body to keep with it, until it is stored with an answer.
    body: Mutex<Option<EncodedBody>>,
}

impl Drop for CallDraft {
    fn drop(&mut self) {
        let row = self.row.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut row) = row.take() {
            row.details.duration_ms = elapsed_ms(self.started);
            count_call(&row);
            self.app.spending().add_waiting(&self.owner, &row);
            enqueue_call(&self.app, &self.owner, row);
        }
    }
}

impl CallRecorder {
    /// Begins the row of a request that has just come. Until it is sent it counts as blocked.
    pub(crate) fn begin_call(app: &App, owner: &Owner, upstream: &str, key: Option<&str>) -> Self {
        let id = RequestId::new();
        let mut row = CallRecord::new(id.0, &call_name(upstream));
        row.outcome = CallOutcome::Blocked;
        row.names.key = call_name(key.unwrap_or_default());
        Self(Arc::new(CallDraft {
            app: app.clone(),
            owner: owner.clone(),
            id,
            started: Instant::now(),
            row: Mutex::new(Some(row)),
            body: Mutex::default(),
        }))
    }

    /// Begins the row of another request in the place of this one's: the model is asked again.
    pub(crate) fn begin_round(&self) -> Self {
        let draft = &self.0;
        let next = Self::begin_call(&draft.app, &draft.owner, "", None);
        let (names, format, body) = self.read(|row| {
            let names = row.names.clone();
            (names, row.details.format.clone(), row.conversation.clone())
        });
        next.update(|row| {
            row.names = names;
            row.details.format = format;
            row.conversation = body;
            row.details.is_own = true;
            row.details.is_rewritten = true;
        });
        next
    }

    /// Returns the id of the call.
    pub(crate) fn id(&self) -> RequestId {
        self.0.id
    }

    fn update(&self, change: impl FnOnce(&mut CallRecord)) {
        let mut row = self.0.row.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = row.as_mut() {
            change(row);
        }
    }

    fn read<T: Default>(&self, read: impl FnOnce(&CallRecord) -> T) -> T {
        let row = self.0.row.lock().unwrap_or_else(PoisonError::into_inner);
        row.as_ref().map(read).unwrap_or_default()
    }

    /// Notes the policy that applies, and for a call of a model its format.
    pub(crate) fn set_policy(&self, policy: Option<&str>, format: Option<&str>) {
        self.update(|row| {
            row.names.policy = call_name(policy.unwrap_or_default());
            row.details.format = format.unwrap_or_default().to_owned();
        });
    }

    /// Notes the model that was asked, if it is known.
    pub(crate) fn set_model(&self, model: Option<&str>) {
        if let Some(model) = model {
            self.update(|row| row.names.model = call_name(model));
        }
    }

    /// Notes the conversation, and the body as it came, decompressed.
    pub(crate) fn set_request(&self, conversation: &ConversationId, body: &[u8]) {
        let hash = BlobId::of(&self.0.owner, body);
        self.update(|row| {
            row.conversation = Some(conversation.clone());
            row.body_hash = Some(ContentHash::from_bytes(*hash.as_bytes()));
        });
    }

    /// Notes the body that is to be kept with the answer.
    pub(crate) fn set_body(&self, body: Option<EncodedBody>) {
        *self.0.body.lock().unwrap_or_else(PoisonError::into_inner) = body;
    }

    /// Takes the body that is to be kept with the answer.
    pub(crate) fn take_body(&self) -> Option<EncodedBody> {
        let mut body = self.0.body.lock().unwrap_or_else(PoisonError::into_inner);
        body.take()
    }

    /// Notes that the request belongs to no conversation any more, because no model answered.
    pub(crate) fn forget_conversation(&self) {
        self.update(|row| row.conversation = None);
    }

    /// Notes that the request was refused with this status, and the word that says why.
    pub(crate) fn set_refused(&self, status: StatusCode, code: &str) {
        // A provider that cannot be reached gave no status, though the caller gets one.
        self.update(|row| {
            row.details.refusal = Some(code.to_owned());
            if row.outcome == CallOutcome::Blocked {
                row.details.status = Some(status.as_u16());
            }
        });
    }

    /// Notes that the provider is asked.
    pub(crate) fn count_attempt(&self) {
        self.update(|row| {
            row.details.attempts += 1;
            row.outcome = CallOutcome::Unreachable;
        });
    }

    /// Notes that the head of an answer has come, to another request than came if `sent` says so.
    pub(crate) fn set_answer_head(&self, status: StatusCode, sent: SentBody) {
        self.update(|row| {
            row.details.status = Some(status.as_u16());
            row.details.is_rewritten |= sent == SentBody::Rewritten;
            row.outcome = match status.is_success() || status.is_redirection() {
                true if row.details.format.is_empty() => CallOutcome::Forwarded,
                true => CallOutcome::Completed,
                false => CallOutcome::Refused,
            };
        });
    }

    /// Notes that the first byte of an answer's body has come.
    pub(crate) fn set_first_byte(&self) {
        let at = elapsed_ms(self.0.started);
        self.update(|row| row.details.first_byte_ms = row.details.first_byte_ms.or(Some(at)));
    }

    /// Notes that the body of an answer broke off.
    pub(crate) fn set_cut_off(&self) {
        self.update(|row| {
            // An answer to a call of no model may have no body at all, whatever its head says.
            let is_cut = match row.outcome {
                CallOutcome::Completed => true,
                CallOutcome::Forwarded => row.details.first_byte_ms.is_some(),
                _ => false,
            };
            if is_cut {
                row.outcome = CallOutcome::Incomplete;
            }
        });
    }

    /// Notes that bytes of the answer could not be read.
    pub(crate) fn set_damaged(&self) {
        self.update(|row| row.details.is_damaged = true);
    }

    /// Notes what an answer says, and what it cost.
    pub(crate) fn set_answer(&self, answer: &Transcript, cost: Option<&Cost>) {
        let info = answer.response.as_ref();
        let usage = info.and_then(|info| info.usage.as_ref());
        let finish = info.and_then(|info| info.finish.as_ref());
        self.update(|row| {
            if row.names.model.is_empty() {
                row.names.model = call_name(answer.model.as_deref().unwrap_or_default());
            }
            row.details.finish = finish.map(|finish| call_name(finish.as_str()));
            row.details.tokens = usage.map(call_tokens);
            let known = cost.and_then(Cost::known_pico_dollars);
            row.details.pico_dollars = known.map(call_money);
            if matches!(finish, Some(FinishReason::Length)) {
                row.outcome = CallOutcome::Incomplete;
            }
        });
    }

    /// Returns whether it is a request that is forwarded unread, but whose model is known.
    pub(crate) fn is_forwarded_to_model(&self) -> bool {
        self.read(|row| row.details.format.is_empty() && !row.names.model.is_empty())
    }

    /// Notes the usage that the answer to a forwarded request reports, and what it cost.
    pub(crate) fn set_forwarded_usage(&self, usage: Usage) {
        let answer = Transcript {
            model: Some(self.read(|row| row.names.model.clone())),
            response: Some(ResponseInfo {
                usage: Some(usage),
                ..ResponseInfo::default()
            }),
            ..Transcript::default()
        };
        let cost = self.0.app.engine().answer_cost(&answer);
        self.set_answer(&answer, cost.as_ref());
    }

    /// Returns the tasks that are awaited before the server ends.
    pub(crate) fn background_tasks(&self) -> TaskTracker {
        self.0.app.background_tasks().clone()
    }

    /// Notes what it was predicted to cost, and what the client's own request.
    pub(crate) fn set_prediction(&self, booked: &BookedCall) {
        let prediction = CallPrediction {
            sent: call_cache_tokens(booked.sent),
            passed: call_cache_tokens(booked.passed),
            sent_pico_dollars: booked.sent_cost.map(call_money),
            passed_pico_dollars: booked.passed_cost.map(call_money),
        };
        self.update(|row| row.details.prediction = Some(prediction));
    }

    /// Notes what the request was made of; `None`: it goes as it came.
    pub(crate) fn set_band(&self, band: Option<&CallBand>) {
        let band = band.map(|band| Arc::from(band.to_bytes()));
        self.update(|row| row.band = band);
    }

    /// Returns the row as it is now, to be stored with the answer; `None` if it is stored.
    pub(crate) fn current_row(&self) -> Option<CallRecord> {
        let row = self.0.row.lock().unwrap_or_else(PoisonError::into_inner);
        let mut row = row.clone()?;
        row.details.duration_ms = elapsed_ms(self.0.started);
        Some(row)
    }

    /// Takes note that the row is stored.
    pub(crate) fn set_stored(&self) {
        let row = {
            let mut row = self.0.row.lock().unwrap_or_else(PoisonError::into_inner);
            row.take()
        };
        if let Some(row) = row {
            count_call(&row);
            self.0.app.spending().add_recorded(&self.0.owner, &row);
        }
    }
}

/// Whether the provider got the client's own request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SentBody {
    /// As it came.
    Own,
    /// Another one in its place.
    Rewritten,
}

fn elapsed_ms(since: Instant) -> u64 {
    call_figure(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX))
}

/// Counts a call in the metrics.
fn count_call(row: &CallRecord) {
    let (upstream, model) = metric_labels(&row.names.upstream, &row.names.model);
    let outcome = row.outcome.as_str();
    let labels = [("upstream", upstream), ("model", model)];
    let sent = match row.details.is_rewritten {
        true => "rewritten",
        false => "own",
    };
    metrics::counter!("contexture_calls_total", "upstream" => labels[0].1.clone(),
        "model" => labels[1].1.clone(), "outcome" => outcome, "sent" => sent)
    .increment(1);
    let took = Duration::from_millis(row.details.duration_ms).as_secs_f64();
    metrics::histogram!("contexture_call_seconds", &labels).record(took);
    if let Some(tokens) = row.details.tokens {
        for (kind, count) in [
            ("input", tokens.input),
            ("cache_read", tokens.cache_read),
            ("cache_written", tokens.cache_written),
            ("output", tokens.output),
        ] {
            metrics::counter!("contexture_call_tokens_total", "upstream" => labels[0].1.clone(),
                "model" => labels[1].1.clone(), "kind" => kind)
            .increment(count);
        }
    }
    if let Some(pico) = row.details.pico_dollars {
        metrics::counter!("contexture_call_cost_nanodollars_total", &labels).increment(pico / 1000);
    }
    if let Some(ms) = row.details.first_byte_ms {
        let seconds = Duration::from_millis(ms).as_secs_f64();
        metrics::histogram!("contexture_call_first_byte_seconds", &labels).record(seconds);
    }
}

/// Pairs of upstream and model that have labels of their own; all further models are `other`.
const MAX_LABELS: usize = 200;

/// Returns the labels of a call. Clients can name any model, so there are only so many.
fn metric_labels(upstream: &str, model: &str) -> (String, String) {
    static KNOWN: Mutex<std::collections::BTreeSet<(String, String)>> =
        Mutex::new(std::collections::BTreeSet::new());
    let labels = (upstream.to_owned(), model.to_owned());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.contains(&labels) {
        return labels;
    }
    if known.len() >= MAX_LABELS {
        return (labels.0, "other".to_owned());
    }
    known.insert(labels.clone());
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_come_in_their_order() {
        let ids: Vec<RequestId> = (0..20_000).map(|_| RequestId::new()).collect();
        assert!(ids.is_sorted_by(|one, other| one < other));
        let text = ids[0].to_string();
        assert_eq!(text.parse(), Ok(ids[0]));
        assert_eq!("req_x".parse::<RequestId>(), Err(()));
        assert_eq!(
            text.trim_start_matches("req_").parse::<RequestId>(),
            Err(())
        );
    }
}
