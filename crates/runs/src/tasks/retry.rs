//! Trying again.
//!
//! A [`Retry`] says how often something is tried and how long is waited between. What a provider asks to wait is waited;
//! what was cancelled is never tried again, and a wait ends with the abort.
//!
//! Not here: which errors may pass by themselves (each error says so), and retries within one request (`contexture-models-http`).

use std::future::Future;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use contexture_models::ModelError;

use crate::tasks::cancel::{Abort, Cancelled};

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
        match self {
            Self::RateLimited { retry_after_ms, .. } | Self::Unavailable { retry_after_ms, .. } => {
                retry_after_ms.map(Duration::from_millis)
            }
            _ => None,
        }
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
/// use contexture_runs::Retry;
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
    /// The longest wait. Default 30 s. Whoever asks for a longer one is not asked again: less would be too early.
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
        if let Some(asked) = asked {
            // Retrying earlier than asked only fails again, and makes rate limits last longer.
            return (asked <= self.max).then_some(asked);
        }
        let times = match self.backoff {
            Backoff::Fixed => 1,
            Backoff::Linear => done,
            Backoff::Exponential => 2_u32.saturating_pow(done.saturating_sub(1)),
        };
        let wait = self.initial.saturating_mul(times).min(self.max);
        // Bounded again, for jitter may exceed the maximum.
        Some(self.apply_jitter(wait, done).min(self.max))
    }

    /// Does something until it succeeds, fails for good, was tried often enough, or is aborted. What is done is told
    /// which attempt it is, from 1.
    ///
    /// # Errors
    /// The last error; [`Cancelled`] before the first attempt or during a wait. An attempt in flight is not cut: it
    /// guards itself ([`Abort::run_until_aborted`]).
    pub async fn run_with_retries<T, E, F>(
        &self,
        abort: &Abort,
        mut attempt: impl FnMut(u32) -> F,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
        E: Retryable + From<Cancelled>,
    {
        abort.ensure_not_aborted()?;
        let mut done = 1;
        loop {
            let error = match attempt(done).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let again = error
                .is_retryable()
                .then(|| self.retry_delay(done, error.retry_after()));
            let Some(wait) = again.flatten() else {
                return Err(error);
            };
            abort.run_until_aborted(tokio::time::sleep(wait)).await?;
            done = done.saturating_add(1);
        }
    }

    /// Spreads a delay by ±25 %, so that many clients do not retry at the same moment.
    fn apply_jitter(&self, wait: Duration, done: u32) -> Duration {
        let Some(seed) = self.jitter else {
            return wait;
        };
        // Seeded and drawn anew for each attempt: the delay depends on seed and attempt alone, so tests and replays agree.
        let mut random = fastrand::Rng::with_seed(seed.get());
        let drawn = (0..done.min(64)).map(|_| random.f64()).last();
        let by = 0.75 + drawn.unwrap_or(0.5) / 2.0;
        // `Duration::mul_f64` panics on what it cannot hold.
        let spread = wait.as_secs_f64() * by;
        Duration::try_from_secs_f64(spread).unwrap_or(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Failure {
        Passing(Option<Duration>),
        Lasting,
        Cancelled(Cancelled),
    }

    impl From<Cancelled> for Failure {
        fn from(cancelled: Cancelled) -> Self {
            Self::Cancelled(cancelled)
        }
    }

    impl Retryable for Failure {
        fn is_retryable(&self) -> bool {
            matches!(self, Self::Passing(_))
        }

        fn retry_after(&self) -> Option<Duration> {
            match self {
                Self::Passing(asked) => *asked,
                _ => None,
            }
        }
    }

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

    #[tokio::test(start_paused = true)]
    async fn it_is_tried_until_it_succeeds_or_fails_for_good() {
        let abort = Abort::new();
        let start = tokio::time::Instant::now();
        let passing = |asked| Err::<u32, _>(Failure::Passing(asked));
        let done = tries(3)
            .run_with_retries(&abort, |n| async move {
                if n < 3 { passing(None) } else { Ok(n) }
            })
            .await;
        assert_eq!((done, start.elapsed()), (Ok(3), Duration::from_secs(3)));
        let asked = Some(Duration::from_secs(9));
        let spent = tries(2)
            .run_with_retries(&abort, |_| async move { passing(asked) })
            .await;
        assert_eq!(spent, passing(asked));
        assert_eq!(start.elapsed(), Duration::from_secs(12));
        let mut tried = 0;
        let lasting: Result<(), _> = tries(9)
            .run_with_retries(&abort, |n| {
                tried = n;
                async { Err(Failure::Lasting) }
            })
            .await;
        assert_eq!((lasting, tried), (Err(Failure::Lasting), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn an_abort_ends_the_wait() {
        let abort = Abort::new();
        let start = tokio::time::Instant::now();
        let mut tried = 0;
        let retry = tries(5);
        let work = retry.run_with_retries(&abort, |n| {
            tried = n;
            async { Err::<(), _>(Failure::Passing(None)) }
        });
        let stop = async {
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            abort.abort("enough");
        };
        let (ended, ()) = tokio::join!(work, stop);
        let cancelled = abort.reason().unwrap();
        assert_eq!(ended, Err(Failure::Cancelled(cancelled)));
        assert_eq!((tried, start.elapsed().as_millis()), (2, 2_500));
        let late: Result<(), Failure> = retry
            .run_with_retries(&abort, |_| async { unreachable!() })
            .await;
        assert!(late.is_err());
    }
}
