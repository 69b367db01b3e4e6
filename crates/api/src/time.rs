//! Timestamps in documents.

use jiff::Timestamp;

/// Formats milliseconds since the Unix epoch by RFC 3339: `2026-11-20T12:00:00Z`. A time outside of the calendar stays a
/// number.
#[must_use]
pub fn format_timestamp(ms: i64) -> String {
    // A stored time is never an error: a document with an odd time is better than none.
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
}
