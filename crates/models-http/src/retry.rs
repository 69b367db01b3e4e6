//! The decision to retry within one request, and the wait before it. The numbers are those of `options.rs`.

use std::time::{Duration, SystemTime};

use contexture_models::{ModelError, delay_before_retry};
use reqwest::header::HeaderMap;

use crate::options::RetryLimits;

/// The wait before attempt number `attempts + 1`, if there is to be one. `jitter` is from 0 to 1.
pub(crate) fn retry_delay(
    retries: &RetryLimits,
    attempts: u32,
    error: &ModelError,
    jitter: f64,
) -> Option<Duration> {
    if attempts > retries.limit || !error.is_retryable() {
        return None;
    }
    // Capped at 16 doublings, unlike the policy of runs: with a very short first wait the waits of one request stop growing
    // long before `longest`.
    let factor = 2_u32.saturating_pow(attempts.saturating_sub(1).min(16));
    let asked = error.retry_after();
    delay_before_retry(retries.wait, factor, retries.longest, asked, Some(jitter))
}

/// How long the provider asks to wait, in milliseconds: `retry-after-ms`, or `retry-after` as seconds or as a date. A date is
/// held against the provider's own clock where its answer has a `date`, else against `now`; one that has passed is no wait.
pub(crate) fn retry_after_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| -> Option<f64> { text(name)?.parse().ok() };
    let date = |name: &str| httpdate::parse_http_date(text(name)?).ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0);
    let wait = match seconds.or_else(|| number("retry-after")) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok()?,
        None => {
            // The two clocks may differ by minutes; the provider's date cancels that out.
            let now = date("date").unwrap_or(now);
            let until = date("retry-after")?.duration_since(now);
            until.unwrap_or(Duration::ZERO)
        }
    };
    Some(wait.as_millis().try_into().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after_ms: Option<u64>) -> ModelError {
        ModelError::RateLimited {
            model: "m".into(),
            reason: String::new(),
            retry_after_ms,
        }
    }

    #[test]
    fn waits_grow_and_end() {
        let retries = RetryLimits {
            limit: 3,
            wait: Duration::from_millis(1000),
            longest: Duration::from_millis(3000),
        };
        let ms = |attempts, error: &ModelError, jitter| {
            retry_delay(&retries, attempts, error, jitter).map(|wait| wait.as_millis())
        };
        let error = limited(None);
        let waits = [1, 2, 3, 4].map(|attempts| ms(attempts, &error, 0.5));
        assert_eq!(waits, [Some(1000), Some(2000), Some(3000), None]);
        assert_eq!(
            [0.0, 1.0].map(|jitter| ms(1, &error, jitter)),
            [Some(750), Some(1250)]
        );
        assert_eq!(ms(1, &limited(Some(2500)), 0.5), Some(2500));
        assert_eq!(ms(1, &limited(Some(3001)), 0.5), None);
        let refused = ModelError::Forbidden {
            model: "m".into(),
            reason: String::new(),
        };
        assert_eq!(ms(1, &refused, 0.5), None);
    }

    #[test]
    fn wait_stops_doubling_after_sixteen_times() {
        let retries = RetryLimits {
            limit: 40,
            wait: Duration::from_millis(1),
            longest: Duration::from_secs(3600),
        };
        let waits = [16, 17, 18, 40].map(|attempts| {
            retry_delay(&retries, attempts, &limited(None), 0.5).map(|wait| wait.as_millis())
        });
        assert_eq!(
            waits,
            [Some(32_768), Some(65_536), Some(65_536), Some(65_536)]
        );
    }

    #[test]
    fn headers_say_how_long() {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2026 07:27:30 GMT").unwrap();
        for (headers, expected) in [
            (&[("retry-after", "2")][..], Some(2000)),
            (&[("retry-after", "0.5")], Some(500)),
            (
                &[("retry-after-ms", "120"), ("retry-after", "2")],
                Some(120),
            ),
            (
                &[("retry-after-ms", "soon"), ("retry-after", "2")],
                Some(2000),
            ),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1e300")], None),
            (&[("retry-after", "soon")], None),
            // The three ways to write a date.
            (
                &[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")],
                Some(30_000),
            ),
            (
                &[("retry-after", "Wednesday, 21-Oct-26 07:28:00 GMT")],
                Some(30_000),
            ),
            (&[("retry-after", "Wed Oct 21 07:28:00 2026")], Some(30_000)),
            (&[("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT")], Some(0)),
            // The provider's clock is a minute behind ours.
            (
                &[
                    ("retry-after", "Wed, 21 Oct 2026 07:26:35 GMT"),
                    ("date", "Wed, 21 Oct 2026 07:26:30 GMT"),
                ],
                Some(5000),
            ),
        ] {
            let all = headers.iter().map(|(name, value)| {
                let name: reqwest::header::HeaderName = name.parse().unwrap();
                (name, value.parse().unwrap())
            });
            assert_eq!(retry_after_ms(&all.collect(), now), expected, "{headers:?}");
        }
    }
}
