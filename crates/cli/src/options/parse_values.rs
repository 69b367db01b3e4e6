//! Words of the command line that stand for values: formats, sizes, kinds of items.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use contexture::Format;
use contexture::render;
use contexture::sessions::SessionFormat;
use contexture_api::ItemKind;
use jiff::{Span, SpanRelativeTo};

/// The formats of conversations, as an argument.
pub(crate) fn wire_format() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.map(Format::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// The formats `compile` writes, as an argument: all but our own items, which no model reads.
pub(crate) fn target_format() -> impl TypedValueParser<Value = Format> {
    let targets = Format::ALL
        .into_iter()
        .filter(|format| *format != Format::Items);
    let names: Vec<&str> = targets.map(Format::as_str).collect();
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// The formats that providers speak, as an argument.
pub(crate) fn provider_format() -> impl TypedValueParser<Value = Format> {
    let names = Format::PROVIDERS.map(Format::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// The formats of sessions, as an argument.
pub(crate) fn session_format() -> PossibleValuesParser {
    PossibleValuesParser::new(SessionFormat::ALL.map(SessionFormat::as_str))
}

/// The formats fragments are rendered in, as an argument.
pub(crate) fn render_format() -> impl TypedValueParser<Value = render::Format> {
    let names = render::Format::ALL.map(render::Format::as_str);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<render::Format>())
}

/// The kinds of items, as an argument.
pub(crate) fn item_kind() -> impl TypedValueParser<Value = ItemKind> {
    let names = ItemKind::ALL.map(ItemKind::as_str);
    PossibleValuesParser::new(names)
        .try_map(|name| ItemKind::from_name(&name).ok_or("no such kind of item"))
}

/// A number of tokens: `16000`, `16_000`, `16k` (16,000), `1m` (1,000,000).
///
/// # Errors
/// What was expected.
pub(crate) fn parse_tokens(text: &str) -> Result<u64, String> {
    let expected = || "expected a number of tokens: 16000, 16k or 1m".to_owned();
    // As people write large numbers: 16_000 and 16,000.
    let lower = text.to_ascii_lowercase().replace(['_', ','], "");
    let (digits, unit) = match lower.strip_suffix('k') {
        Some(digits) => (digits, 1_000),
        None => match lower.strip_suffix('m') {
            Some(digits) => (digits, 1_000_000),
            None => (lower.as_str(), 1),
        },
    };
    parse_scaled(digits, unit).ok_or_else(expected)
}

/// A decimal number of a unit, as a whole number.
fn parse_scaled(digits: &str, unit: u64) -> Option<u64> {
    // In integers throughout, so that nothing is rounded.
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if part.is_empty() {
        return (!digits.contains('.')).then_some(number);
    }
    let scale = 10_u64.checked_pow(u32::try_from(part.len()).ok()?)?;
    // More decimals than the unit has would be a part of one.
    let part: u64 = part.parse().ok().filter(|_| scale <= unit)?;
    number.checked_add(part * (unit / scale))
}

/// A length of time, in milliseconds: `90s`, `30m`, `12h`, `7d`, `2w`, alone or several, `1d 12h`.
///
/// # Errors
/// What was expected.
pub(crate) fn parse_milliseconds(text: &str) -> Result<u64, String> {
    // Without a place there is no calendar: a day has 24 hours here.
    let days = SpanRelativeTo::days_are_24_hours();
    let span = text.parse::<Span>().ok();
    let time = span.and_then(|span| span.to_duration(days).ok());
    let ms = time.and_then(|time| u64::try_from(time.as_millis()).ok());
    ms.filter(|ms| *ms > 0)
        .ok_or_else(|| "expected a length of time: 90s, 30m, 12h, 7d or 2w".to_owned())
}

/// A number of bytes: `500000`, `500kB`, `200MB`, `1.5GB`, in steps of 1,000.
///
/// # Errors
/// What was expected.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [
        ("tb", 1_000_000_000_000),
        ("gb", 1_000_000_000),
        ("mb", 1_000_000),
        ("kb", 1_000),
    ];
    let expected = || "expected a number of bytes: 500000, 500kB, 200MB or 1.5GB".to_owned();
    let lower = text.trim().to_ascii_lowercase();
    let unit = UNITS
        .into_iter()
        .find_map(|(word, unit)| Some((lower.strip_suffix(word)?, unit)));
    let (digits, unit) = unit.unwrap_or((lower.as_str(), 1));
    parse_scaled(digits.trim_end(), unit).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes() {
        for (text, expected) in [
            ("0", Some(0)),
            ("500", Some(500)),
            ("500kB", Some(500_000)),
            ("1.5 GB", Some(1_500_000_000)),
            ("2tb", Some(2_000_000_000_000)),
            ("", None),
            ("GB", None),
            ("-1", None),
            ("1.", None),
            ("1.2345kB", None),
            ("99999999999TB", None),
        ] {
            assert_eq!(parse_bytes(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn lengths_of_time() {
        for (text, expected) in [
            ("7d", Some(604_800_000)),
            ("2w", Some(1_209_600_000)),
            ("12h", Some(43_200_000)),
            ("30m", Some(1_800_000)),
            ("1d 12h", Some(129_600_000)),
            ("90s", Some(90_000)),
            ("", None),
            ("0s", None),
            ("-7d", None),
            ("7", None),
            ("1 month", None),
            ("99999999999d", None),
        ] {
            assert_eq!(parse_milliseconds(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_of_tokens() {
        for (text, expected) in [
            ("16000", Some(16_000)),
            ("16k", Some(16_000)),
            ("16K", Some(16_000)),
            ("1.5m", Some(1_500_000)),
            ("0.5k", Some(500)),
            ("16_000", Some(16_000)),
            ("0", Some(0)),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1.", None),
            ("1.5", None),
            ("0.0001k", None),
            ("1e3", None),
            ("99999999999999999999", None),
            ("99999999999999999m", None),
        ] {
            assert_eq!(parse_tokens(text).ok(), expected, "{text}");
        }
    }
}
