//! What failed beside a request: told, counted, logged.

use crate::proxy::matching::ProxyFailure;
use crate::proxy::outcome::OutcomeRecorder;

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
