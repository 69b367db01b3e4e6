//! Times as people say them.

pub(crate) use contexture_api::format_timestamp;
use jiff::Timestamp;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The machine's time in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// How long ago: `12 s`, `4 min`, `3 h`, `6 d`, then the date. What is in the future, by a clock that
/// differs, is `now`.
pub(crate) fn relative_time(then_ms: i64, now_ms: i64) -> String {
    // Stored times may be anything; the difference must not overflow.
    let past = now_ms.saturating_sub(then_ms);
    match past {
        ..SECOND => "now".to_owned(),
        SECOND..MINUTE => format!("{} s", past / SECOND),
        MINUTE..HOUR => format!("{} min", past / MINUTE),
        HOUR..DAY => format!("{} h", past / HOUR),
        _ if past < 14 * DAY => format!("{} d", past / DAY),
        _ => format_date(then_ms),
    }
}

fn format_date(ms: i64) -> String {
    let text = format_timestamp(ms);
    text.get(..10).map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn said_as_people_say_it() {
        let now = 1_795_000_000_000;
        for (past, expected) in [
            (-5_000, "now"),
            (999, "now"),
            (1_000, "1 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3 * HOUR + 1, "3 h"),
            (DAY, "1 d"),
            (13 * DAY, "13 d"),
            (14 * DAY, "2026-11-04"),
        ] {
            assert_eq!(relative_time(now - past, now), expected, "{past}");
        }
        assert_eq!(
            relative_time(i64::MIN, i64::MAX).len(),
            i64::MIN.to_string().get(..10).map_or(0, str::len)
        );
    }
}
