//! Circuit breakers: a compactor that fails several times in a row is not called for a while.
//!
//! They belong to the engine and not to a path: whether a provider answers is a matter of this process, and a rewind does
//! not repair it. While a breaker is open, compactions are manifests alone, so a compile always makes progress. After the
//! rest time, by the engine's clock, one attempt is let through; its success closes the breaker.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// When a compactor's circuit breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitBreakerPolicy {
    /// Failures in a row after which it opens. Default 3.
    pub failures: u32,
    /// Time until one attempt is let through, in milliseconds. Default 60,000.
    pub cooldown_ms: i64,
}

impl Default for CircuitBreakerPolicy {
    fn default() -> Self {
        Self {
            failures: 3,
            cooldown_ms: 60_000,
        }
    }
}

/// The breakers of an engine, one for each configuration of a compactor.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreakers(Mutex<BTreeMap<String, CircuitBreaker>>);

#[derive(Clone, Copy, Debug, Default)]
struct CircuitBreaker {
    failures: u32,
    /// When the last attempt failed, or the one that was let through began.
    since_ms: i64,
}

impl CircuitBreakers {
    /// Whether an attempt may be made now. One that is let through while the breaker is open keeps others
    /// out until it ended, or until the time has passed once more.
    pub(crate) fn can_try(
        &self,
        configuration: &str,
        policy: CircuitBreakerPolicy,
        now_ms: i64,
    ) -> bool {
        self.with_breaker(configuration, |breaker| {
            if breaker.failures < policy.failures {
                return true;
            }
            let rested = now_ms.saturating_sub(breaker.since_ms) >= policy.cooldown_ms;
            // Moved now and not after the attempt: other callers are kept out while it runs.
            if rested {
                breaker.since_ms = now_ms;
            }
            rested
        })
    }

    /// An attempt succeeded.
    pub(crate) fn record_success(&self, configuration: &str) {
        self.with_breaker(configuration, |breaker| {
            *breaker = CircuitBreaker::default()
        });
    }

    /// An attempt failed.
    pub(crate) fn record_failure(&self, configuration: &str, now_ms: i64) {
        self.with_breaker(configuration, |breaker| {
            breaker.failures = breaker.failures.saturating_add(1);
            breaker.since_ms = now_ms;
        });
    }

    fn with_breaker<T>(
        &self,
        configuration: &str,
        work: impl FnOnce(&mut CircuitBreaker) -> T,
    ) -> T {
        // Two numbers: a panic leaves none half written.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(all.entry(configuration.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_opens_rests_and_lets_one_through() {
        let (all, policy) = (
            CircuitBreakers::default(),
            CircuitBreakerPolicy {
                failures: 3,
                cooldown_ms: 100,
            },
        );
        for now in 0..3 {
            assert!(all.can_try("m", policy, now));
            all.record_failure("m", now);
        }
        assert!(!all.can_try("m", policy, 50) && all.can_try("other", policy, 50));
        assert!(all.can_try("m", policy, 102), "half open");
        assert!(!all.can_try("m", policy, 103), "one at a time");
        all.record_failure("m", 110);
        assert!(!all.can_try("m", policy, 209));
        assert!(all.can_try("m", policy, 210));
        all.record_success("m");
        assert!(all.can_try("m", policy, 211) && all.can_try("m", policy, 212));
    }
}
