//! Dates in queries: `2026-05` and `2026-05-03` as people type them for programs, *3 May 2026* and
//! *May 3, 2026* as they write them. All in UTC.
//!
//! A date without a year is none: which year is meant cannot be known.
//!
//! Not here: what a range is used for.

use std::ops::Range;

const DAY_MS: i64 = 86_400_000;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Returns the times that `YYYY`, `YYYY-MM` or `YYYY-MM-DD` covers, in milliseconds since the Unix epoch.
pub(super) fn parse_iso_date(text: &str) -> Option<Range<i64>> {
    let mut parts = text.split('-');
    let year = parse_year(parts.next()?)?;
    let month = parts.next().map(|part| parse_number(part, 2, 1..=12));
    let day = parts.next().map(|part| parse_number(part, 2, 1..=31));
    match (month, day, parts.next()) {
        (None, None, None) => Some(year_range(year)),
        (Some(month), None, None) => Some(month_range(year, month?)),
        (Some(month), Some(day), None) => day_range(year, month?, day?),
        _ => None,
    }
}

/// Returns the times that the first date of a text covers.
pub(super) fn find_date(text: &str) -> Option<Range<i64>> {
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '-')
        .filter(|word| !word.is_empty())
        .collect();
    (0..words.len()).find_map(|at| {
        let word = |offset: usize| words.get(at + offset).copied().unwrap_or_default();
        if let Some(range) = parse_iso_date(word(0)).filter(|_| word(0).contains('-')) {
            return Some(range);
        }
        // The longer forms first: of `3 May 2026`, `May 2026` alone would lose the day.
        if let (Some(day), Some(month), Some(year)) = (
            parse_day(word(0)),
            parse_month(word(1)),
            parse_year(word(2)),
        ) {
            return day_range(year, month, day);
        }
        let month = parse_month(word(0))?;
        if let (Some(day), Some(year)) = (parse_day(word(1)), parse_year(word(2))) {
            return day_range(year, month, day);
        }
        parse_year(word(1)).map(|year| month_range(year, month))
    })
}

fn parse_year(text: &str) -> Option<i64> {
    parse_number(text, 4, 1970..=2999)
}

fn parse_day(text: &str) -> Option<i64> {
    let ordinal = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|ending| text.strip_suffix(ending));
    let digits = ordinal.unwrap_or(text);
    parse_number(digits, digits.len().clamp(1, 2), 1..=31)
}

/// Returns the number of a month by its English name or the first three letters of it.
fn parse_month(text: &str) -> Option<i64> {
    let name = text.to_ascii_lowercase();
    let is_month = |month: &&str| **month == name || (name.len() == 3 && month.starts_with(&name));
    let at = MONTHS.iter().position(is_month)?;
    i64::try_from(at + 1).ok()
}

fn parse_number(text: &str, digits: usize, valid: std::ops::RangeInclusive<i64>) -> Option<i64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_number)?;
    valid.contains(&number).then_some(number)
}

fn year_range(year: i64) -> Range<i64> {
    start_of_day(year, 1, 1)..start_of_day(year + 1, 1, 1)
}

fn month_range(year: i64, month: i64) -> Range<i64> {
    let (next_year, next) = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    start_of_day(year, month, 1)..start_of_day(next_year, next, 1)
}

fn day_range(year: i64, month: i64, day: i64) -> Option<Range<i64>> {
    let start = start_of_day(year, month, day);
    // 31 April is no day.
    let is_in_month = month_range(year, month).contains(&start);
    is_in_month.then_some(start..start + DAY_MS)
}

/// Returns the first millisecond of a day of the Gregorian calendar.
fn start_of_day(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have the leap day at their end, so months before it have constant lengths.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days_before_month = (153 * month + 2) / 5;
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719,468 days lie between 1 March of the year 0 and the Unix epoch.
    (365 * year + leap_days + days_before_month + day - 1 - 719_468) * DAY_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(range: Option<Range<i64>>) -> Option<(i64, i64)> {
        range.map(|range| (range.start / DAY_MS, range.end / DAY_MS))
    }

    #[test]
    fn iso_dates_cover_years_months_and_days() {
        for (text, expected) in [
            ("1970", Some((0, 365))),
            ("2024-02", Some((19754, 19783))),
            ("2024-02-29", Some((19782, 19783))),
            ("2023-02-29", None),
            ("2023-13", None),
            ("2023-1", None),
            ("2023-01-01-01", None),
            ("12", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(days(parse_iso_date(text)), expected, "{text}");
        }
    }

    #[test]
    fn written_dates_are_found() {
        let day = days(parse_iso_date("2023-05-07"));
        for text in [
            "What happened on 7 May 2023?",
            "on May 7, 2023",
            "May 7th, 2023 and later",
            "since 2023-05-07.",
            "7 may, 2023",
        ] {
            assert_eq!(days(find_date(text)), day, "{text}");
        }
        assert_eq!(
            days(find_date("in May 2023")),
            days(parse_iso_date("2023-05"))
        );
        assert_eq!(days(find_date("Sep 2023")), days(parse_iso_date("2023-09")));
        for text in ["May I go?", "in 2023", "march on 12", ""] {
            assert_eq!(days(find_date(text)), None, "{text}");
        }
    }
}
