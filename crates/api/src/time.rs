//! Times in documents.

use jiff::Timestamp;

/// Milliseconds since the Unix epoch as RFC 3339 says them: `2026-11-20T12:00:00Z`. What is no time of the calendar
/// stays a number.
#[must_use]
pub fn format_timestamp(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
}
