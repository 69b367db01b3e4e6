//! Numbers, money, times and texts as a page shows them. The exact value stands beside each rounded one, in the markup.

use contexture_report::number_format::{group_thousands, is_unsafe};
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is encoded in a step of a path or a value of a query: all but what RFC 3986 leaves unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// Encodes a text as a step of a path or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Formats a count with thousands separators.
pub(crate) fn number(count: u64) -> Markup {
    html! { data value=(count) { (group_thousands(count)) } }
}

/// A count that may be unknown.
pub(crate) fn known_number(count: Option<u64>) -> Markup {
    count.map_or_else(unknown, number)
}

/// Placeholder for an unknown value.
pub(crate) fn unknown() -> Markup {
    html! { span.unknown title="unknown" { "–" } }
}

/// An amount of dollars, which the API gives as a decimal.
pub(crate) fn money(decimal: Option<&str>) -> Markup {
    match decimal {
        Some(decimal) => html! { data value=(decimal) { (format_dollars(decimal)) } },
        None => unknown(),
    }
}

/// Rounds a decimal to what a person compares: cents from a dollar on, and never so few places that something looks like nothing.
pub(crate) fn format_dollars(decimal: &str) -> String {
    let (sign, amount) = match decimal.strip_prefix('-') {
        Some(amount) => ("−", amount),
        None => ("", decimal),
    };
    let Ok(value) = amount.parse::<f64>() else {
        return decimal.to_owned();
    };
    let places = match value {
        0.0 => return "$0".to_owned(),
        value if value >= 1.0 => 2,
        value if value >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, "0"));
    let whole = whole
        .parse()
        .map_or_else(|_| whole.to_owned(), group_thousands);
    format!("{sign}${whole}.{rest}")
}

/// A time, RFC 3339, to the second.
pub(crate) fn time(at: &str) -> Markup {
    let day = at.get(..10).unwrap_or(at);
    let clock = at.get(11..19).unwrap_or_default();
    html! { time datetime=(at) title=(at) { span.day { (day) } " " span.clock { (clock) } } }
}

/// A length of time.
pub(crate) fn duration(milliseconds: Option<u64>) -> Markup {
    let Some(milliseconds) = milliseconds else {
        return unknown();
    };
    let seconds = milliseconds / 1_000;
    let text = match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{seconds}.{} s", milliseconds % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    };
    html! { data value=(milliseconds) { (text) } }
}

/// Returns a part's share of a whole, in whole per cent; `None` if the whole is 0.
pub(crate) fn per_cent(part: u64, whole: u64) -> Option<u64> {
    let share = u128::from(part) * 100 / u128::from(whole).max(1);
    (whole > 0).then(|| u64::try_from(share).unwrap_or(u64::MAX))
}

/// Returns a part's share of a whole in thousandths, for pictures; 0 if the whole is 0.
pub(crate) fn per_mille(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 1_000 / u128::from(whole).max(1);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Returns the milliseconds since the Unix epoch of a time as the API writes it (RFC 3339 in UTC); `None` for another text.
pub(crate) fn milliseconds_of(at: &str) -> Option<i64> {
    let field = |from: usize, to: usize| at.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (field(0, 4)?, field(5, 7)?, field(8, 10)?);
    let (hour, minute, second) = (field(11, 13)?, field(14, 16)?, field(17, 19)?);
    let fraction = at.get(19..)?.strip_suffix('Z')?;
    let digits = fraction.strip_prefix('.').unwrap_or_default();
    let digits: String = digits.chars().chain("000".chars()).take(3).collect();
    // Days of the civil calendar, by years that begin in March, so that a leap day is a year's last one.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = (days - 719_468) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some(seconds * 1_000 + digits.parse::<i64>().ok()?)
}

/// A part's share of a whole; a dash if the whole is 0.
pub(crate) fn share(part: u64, whole: u64) -> Markup {
    html! { @match per_cent(part, whole) { Some(share) => { (share) " %" }, None => "–" } }
}

/// Makes a text of strangers printable: its lines stay, and what could reorder or hide other text is replaced.
pub(crate) fn printable(text: &str) -> String {
    let safe = |c: char| match c {
        '\n' | '\t' => c,
        c if is_unsafe(c) => '\u{fffd}',
        c => c,
    };
    text.replace("\r\n", "\n").chars().map(safe).collect()
}

/// The beginning of a text, and how many characters more it has.
pub(crate) fn clip(text: &str, characters: usize) -> (String, usize) {
    match text.char_indices().nth(characters) {
        None => (printable(text), 0),
        Some((end, _)) => {
            let (start, rest) = text.split_at(end);
            (printable(start), rest.chars().count())
        }
    }
}

/// A word of the API for a person: `history_trimmed` as "history trimmed".
pub(crate) fn words(word: &str) -> String {
    word.replace('_', " ")
}

/// An id so short that a person can compare it.
pub(crate) fn short_id(id: &str) -> &str {
    // The end: ids begin with their time, which neighbours share.
    id.get(id.len().saturating_sub(6)..).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_rounded_and_never_to_nothing() {
        for (decimal, expected) in [
            ("0", "$0"),
            ("0.000012", "$0.000012"),
            ("0.0144", "$0.0144"),
            ("1.005", "$1.00"),
            ("1234567.891", "$1,234,567.89"),
            ("-0.25", "−$0.2500"),
            ("much", "much"),
        ] {
            assert_eq!(format_dollars(decimal), expected, "{decimal}");
        }
    }

    #[test]
    fn texts_of_strangers_keep_their_lines_and_nothing_else() {
        assert_eq!(
            printable("a\r\nb\tc\u{202e}d\u{1b}[1m"),
            "a\nb\tc\u{fffd}d\u{fffd}[1m"
        );
        assert_eq!(clip("äöü", 2), ("äö".to_owned(), 1));
        assert_eq!(clip("äöü", 3), ("äöü".to_owned(), 0));
        assert_eq!(encode("a/b?ü#"), "a%2Fb%3F%C3%BC%23");
    }

    #[test]
    fn lengths_of_time_are_told_in_the_unit_that_fits() {
        let text = |ms| duration(Some(ms)).into_string();
        assert!(text(999).contains(">999 ms<") && text(2_450).contains(">2.4 s<"));
        assert!(text(61_000).contains(">1 min 1 s<") && text(7_260_000).contains(">2 h 1 min<"));
        assert_eq!(milliseconds_of("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(
            milliseconds_of("2024-02-29T23:59:59.25Z"),
            Some(1_709_251_199_250)
        );
        for wrong in [
            "",
            "2024-02-29",
            "2024-02-29T23:59:59+01:00",
            "x024-02-29T23:59:59Z",
        ] {
            assert_eq!(milliseconds_of(wrong), None, "{wrong}");
        }
        assert_eq!(per_cent(1, 3), Some(33));
        assert_eq!(per_cent(1, 0), None);
    }
}
