//! What failed beside a request: told, counted, logged.

use crate::http::panics::PANIC_DETAIL;
use crate::problem::error_chain;
use crate::state::request_outcomes::OutcomeRecorder;

/// Why a request or its answer is not stored. It has been passed on all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProxyFailure {
    /// What failed, one word: for headers and figures.
    pub(crate) what: &'static str,
    /// Why, for the log and for who asks.
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

    /// What a panic says may be of what was sent.
    pub(crate) fn from_panic() -> Self {
        Self::new("fault", PANIC_DETAIL)
    }
}

/// The request goes as it came, or goes on without what should have been done for it.
pub(crate) fn count_failed_open(told: &OutcomeRecorder, miss: &ProxyFailure) {
    tracing::warn!(
        what = miss.what,
        why = miss.why,
        "a request was passed on as it came"
    );
    metrics::counter!("contexture_proxy_failed_open_total", "what" => miss.what).increment(1);
    told.update_outcome(|document| document.set_failure(miss.what, &miss.why));
}

/// The answer is stored, but what it cost is not in the ledger, or not in all of its sums.
pub(crate) fn count_not_booked(told: &OutcomeRecorder, miss: &ProxyFailure) {
    tracing::warn!(
        what = miss.what,
        why = miss.why,
        "a call is not in the ledger, or not in all of its sums"
    );
    metrics::counter!("contexture_proxy_unbooked_total").increment(1);
    told.update_outcome(|document| document.set_failure(miss.what, &miss.why));
}

/// The request, or its answer, is not stored.
pub(crate) fn count_not_stored(told: &OutcomeRecorder, miss: &ProxyFailure) {
    tracing::warn!(
        what = miss.what,
        why = miss.why,
        "a request was passed on, but is not stored"
    );
    metrics::counter!("contexture_proxy_missed_total", "what" => miss.what).increment(1);
    told.update_outcome(|document| {
        document.set_failure(miss.what, &miss.why);
        document.done = true;
    });
}
