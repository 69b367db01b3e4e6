//! When a call is tried again, and after what wait.

use std::time::Duration;

use contexture_llm::ModelError;
use reqwest::header::HeaderMap;

use crate::options::Retries;

/// The wait before try number `tries + 1`, if there is to be one. `spread` is from 0 to 1.
pub(crate) fn wait(
    retries: &Retries,
    tries: u32,
    error: &ModelError,
    spread: f64,
) -> Option<Duration> {
    if tries > retries.limit || !error.is_retryable() {
        return None;
    }
    let asked = match error {
        ModelError::RateLimited { retry_after_ms, .. }
        | ModelError::Unavailable { retry_after_ms, .. } => *retry_after_ms,
        _ => None,
    };
    if let Some(asked) = asked.map(Duration::from_millis) {
        return (asked <= retries.longest).then_some(asked);
    }
    let doubled = 2_u32.saturating_pow(tries.saturating_sub(1).min(16));
    let wait = retries.wait.saturating_mul(doubled).min(retries.longest);
    Some(
        wait.mul_f64(0.75 + spread.clamp(0.0, 1.0) / 2.0)
            .min(retries.longest),
    )
}

/// How long the provider asks to wait, in milliseconds. A date is not read.
pub(crate) fn asked(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &str| -> Option<f64> {
        let number: f64 = headers.get(name)?.to_str().ok()?.trim().parse().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    let ms = number("retry-after-ms").or_else(|| Some(number("retry-after")? * 1000.0))?;
    Some(
        Duration::try_from_secs_f64(ms / 1000.0)
            .ok()?
            .as_millis()
            .try_into()
            .unwrap_or(u64::MAX),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after_ms: Option<u64>) -> ModelError {
        ModelError::RateLimited {
            model: "m".into(),
            why: String::new(),
            retry_after_ms,
        }
    }

    #[test]
    fn waits_grow_and_end() {
        let retries = Retries {
            limit: 3,
            wait: Duration::from_millis(1000),
            longest: Duration::from_millis(3000),
        };
        let ms = |tries, error: &ModelError, spread| {
            wait(&retries, tries, error, spread).map(|wait| wait.as_millis())
        };
        let error = limited(None);
        let waits = [1, 2, 3, 4].map(|tries| ms(tries, &error, 0.5));
        assert_eq!(waits, [Some(1000), Some(2000), Some(3000), None]);
        assert_eq!(
            [0.0, 1.0].map(|spread| ms(1, &error, spread)),
            [Some(750), Some(1250)]
        );
        assert_eq!(ms(1, &limited(Some(2500)), 0.5), Some(2500));
        assert_eq!(ms(1, &limited(Some(3001)), 0.5), None);
        let refused = ModelError::Forbidden {
            model: "m".into(),
            why: String::new(),
        };
        assert_eq!(ms(1, &refused, 0.5), None);
    }

    #[test]
    fn headers_say_how_long() {
        for (name, value, expected) in [
            ("retry-after", "2", Some(2000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "120", Some(120)),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
            ("retry-after", "1e300", None),
            ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(asked(&headers), expected, "{name}: {value}");
        }
    }
}
