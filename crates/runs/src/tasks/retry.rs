//! Retries of transient failures, until success or an abort.
//!
//! An abort ends a wait. Not here: how often and how long ([`contexture_models::Retry`]), and which errors are
//! retryable (each error type says so).

use std::future::Future;

use contexture_models::{Retry, Retryable};

use crate::tasks::cancel::{Abort, Cancelled};

/// Repeats an attempt until it succeeds, fails permanently, was made as often as `retry` allows, or is aborted. The
/// attempt is given its number, from 1.
///
/// # Errors
/// The last error; [`Cancelled`] before the first attempt or during a wait. An attempt in progress is not cut off; it
/// has to check the abort itself ([`Abort::run_until_aborted`]).
pub async fn run_with_retries<T, E, F>(
    retry: &Retry,
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
            .then(|| retry.retry_delay(done, error.retry_after()));
        let Some(wait) = again.flatten() else {
            return Err(error);
        };
        abort.run_until_aborted(tokio::time::sleep(wait)).await?;
        done = done.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

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

    #[tokio::test(start_paused = true)]
    async fn it_is_tried_until_it_succeeds_or_fails_for_good() {
        let abort = Abort::new();
        let start = tokio::time::Instant::now();
        let passing = |asked| Err::<u32, _>(Failure::Passing(asked));
        let done = run_with_retries(&tries(3), &abort, |n| async move {
            if n < 3 { passing(None) } else { Ok(n) }
        })
        .await;
        assert_eq!((done, start.elapsed()), (Ok(3), Duration::from_secs(3)));
        let asked = Some(Duration::from_secs(9));
        let spent = run_with_retries(&tries(2), &abort, |_| async move { passing(asked) }).await;
        assert_eq!(spent, passing(asked));
        assert_eq!(start.elapsed(), Duration::from_secs(12));
        let mut tried = 0;
        let lasting: Result<(), _> = run_with_retries(&tries(9), &abort, |n| {
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
        let work = run_with_retries(&retry, &abort, |n| {
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
        let late: Result<(), Failure> =
            run_with_retries(&retry, &abort, |_| async { unreachable!() }).await;
        assert!(late.is_err());
    }
}
