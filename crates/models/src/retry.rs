//! Retries: how often, and how long to wait before each. Which errors are retried is decided in `error.rs`.
//!
//! [`delay_before_retry`] is the only formula; a [`Retry`] is the policy of runs, `contexture-models-http` has limits of its
//! own for retries within one request. What a provider asks to wait is waited exactly.
//!
//! Not here: waiting and repeating (`contexture-runs`, `contexture-models-http`), the header that says how long.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use crate::error::ModelError;

/// An error that knows whether trying again may help.
pub trait Retryable {
    /// Whether the same may succeed later. Never for what was cancelled.
    fn is_retryable(&self) -> bool;

    /// How long to wait before, where somebody said so.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl Retryable for ModelError {
    fn is_retryable(&self) -> bool {
        Self::is_retryable(self)
    }

    fn retry_after(&self) -> Option<Duration> {
        Self::retry_after(self)
    }
}

/// How waits grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backoff {
    /// They do not.
    Fixed,
    /// By the first wait each time.
    Linear,
    /// Twofold each time.
    #[default]
    Exponential,
}

/// How often something is tried, and how long is waited between.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::time::Duration;
/// use contexture_models::Retry;
///
/// let retry = Retry { attempts: NonZeroU32::new(4).unwrap(), ..Retry::default() };
/// let waits = [1, 2, 3, 4].map(|done| retry.retry_delay(done, None).map(|wait| wait.as_secs()));
/// assert_eq!(waits, [Some(1), Some(2), Some(4), None]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How often in all, the first time included. Default 3.
    pub attempts: NonZeroU32,
    /// How waits grow. Default exponential.
    pub backoff: Backoff,
    /// The first wait. Default 1 s.
    pub initial: Duration,
    /// The longest wait. Default 30 s. If the provider asks for a longer one the call is not
    /// retried, because an earlier retry would be refused.
    pub max: Duration,
    /// Spreads waits by a quarter to either side, so that those who failed together do not come back together; the same
    /// seed gives the same waits. Default absent: no spread.
    pub jitter: Option<NonZeroU64>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: NonZeroU32::MIN.saturating_add(2),
            backoff: Backoff::Exponential,
            initial: Duration::from_secs(1),
            max: Duration::from_secs(30),
            jitter: None,
        }
    }
}

impl Retry {
    /// Once, and not again.
    #[must_use]
    pub fn never() -> Self {
        Self {
            attempts: NonZeroU32::MIN,
            ..Self::default()
        }
    }

    /// How long to wait after so many attempts (from 1), or `None` if that was the last. `asked` is what somebody asks to
    /// wait; it is waited exactly, and if it is above the longest wait there is no further attempt.
    #[must_use]
    pub fn retry_delay(&self, done: u32, asked: Option<Duration>) -> Option<Duration> {
        if done >= self.attempts.get() {
            return None;
        }
        let times = match self.backoff {
            Backoff::Fixed => 1,
            Backoff::Linear => done,
            Backoff::Exponential => 2_u32.saturating_pow(done.saturating_sub(1)),
        };
        delay_before_retry(self.initial, times, self.max, asked, self.spread(done))
    }

    /// Draws the spread of the wait after so many attempts, from 0 to 1.
    fn spread(&self, done: u32) -> Option<f64> {
        // Seeded and drawn anew for each attempt: the delay depends on seed and attempt alone, so tests and replays agree.
        let mut random = fastrand::Rng::with_seed(self.jitter?.get());
        let drawn = (0..done.min(64)).map(|_| random.f64()).last();
        Some(drawn.unwrap_or(0.5))
    }
}

/// Computes the wait before a retry, or `None` if there is to be no retry.
///
/// What somebody `asked` to wait is waited exactly, and if it is above `max` there is no retry. Else the wait is `initial`
/// times `factor`, moved by a quarter to either side as `spread` says (0 to 1, 0.5 in the middle), and at most `max`.
///
/// ```
/// use std::time::Duration;
/// use contexture_models::delay_before_retry;
///
/// let seconds = Duration::from_secs;
/// assert_eq!(delay_before_retry(seconds(1), 4, seconds(30), None, None), Some(seconds(4)));
/// assert_eq!(delay_before_retry(seconds(1), 4, seconds(30), Some(seconds(31)), None), None);
/// ```
#[must_use]
pub fn delay_before_retry(
    initial: Duration,
    factor: u32,
    max: Duration,
    asked: Option<Duration>,
    spread: Option<f64>,
) -> Option<Duration> {
    if let Some(asked) = asked {
        // Retrying earlier than asked only fails again, and makes rate limits last longer.
        return (asked <= max).then_some(asked);
    }
    let wait = initial.saturating_mul(factor).min(max);
    let Some(spread) = spread else {
        return Some(wait);
    };
    // Clients that failed together must not come back together.
    let seconds = wait.as_secs_f64() * (0.75 + spread.clamp(0.0, 1.0) / 2.0);
    // `Duration::mul_f64` panics on what it cannot hold; bounded again, for the spread may exceed the maximum.
    let wait = Duration::try_from_secs_f64(seconds).unwrap_or(wait);
    Some(wait.min(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(attempts: u32) -> Retry {
        Retry {
            attempts: NonZeroU32::new(attempts).unwrap(),
            ..Retry::default()
        }
    }

    #[test]
    fn waits_grow_and_are_bounded() {
        let waits = |retry: &Retry| {
            [1, 2, 3, 6, 7, u32::MAX - 1].map(|n| retry.retry_delay(n, None).unwrap().as_secs())
        };
        let mut retry = tries(u32::MAX);
        assert_eq!(waits(&retry), [1, 2, 4, 30, 30, 30]);
        retry.backoff = Backoff::Linear;
        assert_eq!(waits(&retry), [1, 2, 3, 6, 7, 30]);
        retry.backoff = Backoff::Fixed;
        assert_eq!(waits(&retry), [1; 6]);
        let endless = Retry {
            initial: Duration::MAX,
            max: Duration::MAX,
            jitter: NonZeroU64::new(1),
            ..retry
        };
        assert!(endless.retry_delay(9, None).is_some());
        assert_eq!(Retry::never().retry_delay(1, None), None);
    }

    #[test]
    fn what_is_asked_for_is_waited_or_not_at_all() {
        let retry = Retry {
            jitter: NonZeroU64::new(7),
            ..tries(3)
        };
        let seconds = Duration::from_secs;
        assert_eq!(retry.retry_delay(1, Some(seconds(30))), Some(seconds(30)));
        assert_eq!(
            retry.retry_delay(1, Some(Duration::ZERO)),
            Some(Duration::ZERO)
        );
        assert_eq!(retry.retry_delay(1, Some(seconds(31))), None);
        assert_eq!(retry.retry_delay(3, Some(seconds(1))), None);
    }

    #[test]
    fn spread_is_of_the_seed_and_within_bounds() {
        let waits = |seed| -> Vec<Duration> {
            let retry = Retry {
                jitter: NonZeroU64::new(seed),
                backoff: Backoff::Fixed,
                ..tries(99)
            };
            (1..20)
                .map(|n| retry.retry_delay(n, None).unwrap())
                .collect()
        };
        assert_eq!(waits(5), waits(5));
        assert_ne!(waits(5), waits(6));
        let mut all = waits(5);
        assert!(
            all.iter()
                .all(|wait| (750..=1250).contains(&wait.as_millis()))
        );
        all.sort();
        all.dedup();
        assert!(all.len() > 15);
        let at_most = Retry {
            initial: Duration::from_secs(30),
            jitter: NonZeroU64::new(5),
            ..tries(99)
        };
        assert!((1..20).all(|n| at_most.retry_delay(n, None).unwrap() <= at_most.max));
    }

    #[test]
    fn wait_that_is_too_long_to_spread_is_kept() {
        let wait = delay_before_retry(Duration::MAX, 1, Duration::MAX, None, Some(1.0));
        assert_eq!(wait, Some(Duration::MAX));
    }
}
