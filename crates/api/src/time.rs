//! Times in documents, and as people write them.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};

/// Formats milliseconds since the Unix epoch by RFC 3339: `2026-11-20T12:00:00Z`. A time outside of the calendar stays a
/// number.
#[must_use]
pub fn format_timestamp(ms: i64) -> String {
    // A stored time is never an error: a document with an odd time is better than none.
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
}

/// Parses a time as people and programs write it, in milliseconds since the Unix epoch: a day in UTC (`2026-11-20`, its
/// beginning), a time with its zone (`2026-11-20T12:00:00Z`), a length of time before `now_ms` (`12h`, `7d`, `8w`), or the
/// milliseconds themselves.
///
/// # Errors
/// What was expected.
///
/// ```
/// use contexture_api::parse_time;
///
/// assert_eq!(parse_time("1970-01-02", 0), Ok(86_400_000));
/// assert_eq!(parse_time("12h", 86_400_000), Ok(43_200_000));
/// assert!(parse_time("yesterday", 0).is_err());
/// ```
pub fn parse_time(text: &str, now_ms: i64) -> Result<i64, String> {
    let text = text.trim();
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(time.as_millisecond());
    }
    // A time without its zone would be read as the day alone.
    if text.len() == DAY_LENGTH
        && let Ok(day) = text.parse::<Date>()
    {
        let midnight = day.to_zoned(TimeZone::UTC);
        return midnight.map_or_else(
            |_| Err(EXPECTED_TIME.to_owned()),
            |midnight| Ok(midnight.timestamp().as_millisecond()),
        );
    }
    parse_age(text)
        .map(|age| now_ms.saturating_sub(age))
        .ok_or_else(|| EXPECTED_TIME.to_owned())
}

/// Length of a day such as `2026-11-20`.
const DAY_LENGTH: usize = 10;

const EXPECTED_TIME: &str = "expected a day such as 2026-11-20, a time such as 2026-11-20T12:00:00Z, or how long ago: 90s, 30m, 12h, 7d, 8w";

/// Parses a length of time as people write it, such as `90s`, `12h` or `7d`, in milliseconds; at least one.
///
/// # Errors
/// What was expected.
///
/// ```
/// assert_eq!(contexture_api::parse_length_of_time("7d"), Ok(604_800_000));
/// assert!(contexture_api::parse_length_of_time("a week").is_err());
/// ```
pub fn parse_length_of_time(text: &str) -> Result<i64, String> {
    let expected = || "expected a length of time such as 90s, 30m, 12h, 7d or 8w".to_owned();
    parse_age(text.trim()).ok_or_else(expected)
}

/// A length of time in milliseconds.
fn parse_age(text: &str) -> Option<i64> {
    // Without a place there is no calendar: a day has 24 hours here.
    let days = SpanRelativeTo::days_are_24_hours();
    let age = text.parse::<Span>().ok()?.to_duration(days).ok()?;
    i64::try_from(age.as_millis()).ok().filter(|ms| *ms > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        let now = 1_764_000_000_000;
        for (text, expected) in [
            ("2026-11-20", Some(1_795_132_800_000)),
            ("2026-11-20T12:00:00Z", Some(1_795_176_000_000)),
            ("2026-11-20T13:00:00+01:00", Some(1_795_176_000_000)),
            ("1795176000000", Some(1_795_176_000_000)),
            (" 7d ", Some(now - 7 * 86_400_000)),
            ("1h 30m", Some(now - 5_400_000)),
            ("0", Some(0)),
            ("0s", None),
            ("-7d", None),
            ("2026-13-01", None),
            ("2026-11-20T12:00:00", Some(0)),
            ("soon", None),
            ("", None),
        ] {
            // A time without a zone would mean another hour elsewhere.
            let expected = expected.filter(|_| text != "2026-11-20T12:00:00");
            assert_eq!(parse_time(text, now).ok(), expected, "{text}");
        }
    }
}
