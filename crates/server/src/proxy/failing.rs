//! What failed beside a request: told, counted, logged.

use crate::proxy::matching::Miss;
use crate::proxy::outcome::Telling;

/// The request goes as it came, or goes on without what should have been done for it.
pub(crate) fn fail_open(told: &Telling, miss: &Miss) {
    tracing::warn!(
        what = miss.what,
        why = miss.why,
        "a request was passed on as it came"
    );
    metrics::counter!("contexture_proxy_failed_open_total", "what" => miss.what).increment(1);
    told.tell(|document| document.failed(miss.what, &miss.why));
}

/// The answer is stored, but what it cost is not in the ledger, or not in all of its sums.
pub(crate) fn unbooked(told: &Telling, miss: &Miss) {
    tracing::warn!(
        what = miss.what,
        why = miss.why,
        "a call is not in the ledger, or not in all of its sums"
    );
    metrics::counter!("contexture_proxy_unbooked_total").increment(1);
    told.tell(|document| document.failed(miss.what, &miss.why));
}

/// The request, or its answer, is not stored.
pub(crate) fn missed(told: &Telling, miss: &Miss) {
    tracing::warn!(
        what = miss.what,
        why = miss.why,
        "a request was passed on, but is not stored"
    );
    metrics::counter!("contexture_proxy_missed_total", "what" => miss.what).increment(1);
    told.tell(|document| {
        document.failed(miss.what, &miss.why);
        document.done = true;
    });
}
