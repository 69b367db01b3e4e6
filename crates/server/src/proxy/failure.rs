//! Failures beside a request, which the client's answer does not show: logged, counted, and recorded in the outcome.

use std::time::Duration;

use contexture::engine::Ingested;

use crate::http::panics::PANIC_DETAIL;
use crate::problem::error_chain;
use crate::state::request_outcomes::OutcomeRecorder;

/// Why a request was not rewritten or not stored. It has been forwarded all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyFailure {
    /// What failed, one word: for headers and metrics.
    pub(crate) what: &'static str,
    /// Why, for the log and the request's outcome.
    pub(crate) why: String,
}

impl ProxyFailure {
    pub(crate) fn new(what: &'static str, why: impl Into<String>) -> Self {
        Self {
            what,
            why: why.into(),
        }
    }

    pub(crate) fn from_error(what: &'static str, error: &dyn std::error::Error) -> Self {
        Self::new(what, error_chain(error))
    }

    /// Describes a panic without its message, which may quote what was sent.
    pub(crate) fn from_panic() -> Self {
        Self::new("fault", PANIC_DETAIL)
    }
}

/// Records that a request was forwarded as it came, or went on without a later round.
pub(crate) fn count_failed_open(outcome: &OutcomeRecorder, failure: &ProxyFailure) {
    tracing::warn!(
        what = failure.what,
        why = failure.why,
        "a request was passed on as it came"
    );
    metrics::counter!("contexture_proxy_failed_open_total", "what" => failure.what).increment(1);
    outcome.update_outcome(|document| document.set_failure(failure.what, &failure.why));
}

/// Records how long a request waited for earlier answers, and whether it went on without one.
pub(crate) fn count_wait(outcome: &OutcomeRecorder, ingested: &Ingested) {
    metrics::histogram!("contexture_proxy_wait_seconds").record(ingested.waited.as_secs_f64());
    if ingested.raced {
        tracing::warn!(
            waited = ?ingested.waited,
            "a request was matched before the answer that it may hold was recorded"
        );
        metrics::counter!("contexture_proxy_raced_total").increment(1);
    }
    outcome.update_outcome(|document| document.set_wait(ingested));
}

/// Records that a client got a provider's error before its request was taken back.
pub(crate) fn count_released_early(delay: Duration) {
    tracing::warn!(
        ?delay,
        "an error was passed on before its request was taken back"
    );
    metrics::counter!("contexture_proxy_released_early_total").increment(1);
}

/// Records that a client got the last of an answer before its request was stored.
pub(crate) fn count_hold_expired(hold: Duration) {
    tracing::warn!(
        ?hold,
        "an answer was passed on before its request was stored: another server may not find it"
    );
    metrics::counter!("contexture_proxy_hold_expired_total").increment(1);
}

/// Records that an answer came damaged: it is stored as far as it can be read, with the bytes that cannot.
pub(crate) fn count_damaged(outcome: &OutcomeRecorder, why: &str) {
    tracing::warn!(why, "an answer is damaged");
    metrics::counter!("contexture_proxy_damaged_total").increment(1);
    outcome.update_outcome(|document| document.set_failure("damaged", why));
}

/// Records that a request, or its answer, is not stored, and that nothing follows.
pub(crate) fn count_not_stored(outcome: &OutcomeRecorder, failure: &ProxyFailure) {
    count_missed(outcome, failure);
    // Who waits for it must not wait on.
    outcome.update_outcome(|document| document.done = true);
}

/// Records that a request, or its answer, is not stored. What was stored of it is still to be taken back.
pub(crate) fn count_missed(outcome: &OutcomeRecorder, failure: &ProxyFailure) {
    tracing::warn!(
        what = failure.what,
        why = failure.why,
        "a request was passed on, but is not stored"
    );
    metrics::counter!("contexture_proxy_missed_total", "what" => failure.what).increment(1);
    outcome.update_outcome(|document| document.set_failure(failure.what, &failure.why));
}
