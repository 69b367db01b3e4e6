//! Halves of surrogate pairs in JSON: `"\ud83d"` is JSON, but no text.
//!
//! Programs that cut an emoji in two write them, and providers take them. They are the only reason why a string of a legal
//! document cannot be read.

use std::borrow::Cow;
use std::ops::Range;

/// How a code unit is written: `\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// Returns the JSON text with `\ufffd` in place of each half of a surrogate pair.
#[must_use]
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut replaced = String::new();
    let mut copied = 0;
    for half in lone_surrogates(json) {
        replaced.push_str(json.get(copied..half.start).unwrap_or_default());
        replaced.push_str("\\ufffd");
        copied = half.end;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    replaced.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(replaced)
}

/// Where a JSON text has halves of surrogate pairs.
fn lone_surrogates(json: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            // A backslash stands in strings only, and always before what it escapes.
            let start = at + json.get(at..)?.find('\\')?;
            let Some(unit) = code_unit(json, start) else {
                at = start + 2;
                continue;
            };
            at = start + ESCAPE_BYTES;
            let is_high = (0xd800..0xdc00).contains(&unit);
            let is_low = |unit: u32| (0xdc00..0xe000).contains(&unit);
            if is_high && code_unit(json, at).is_some_and(is_low) {
                at += ESCAPE_BYTES;
            } else if is_high || is_low(unit) {
                return Some(start..at);
            }
        }
    })
}

/// The code unit whose escape begins at a byte.
fn code_unit(json: &str, start: usize) -> Option<u32> {
    let digits = json.get(start..start + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_are_replaced() {
        for (json, expected) in [
            (r#""a\ud800b""#, r#""a\ufffdb""#),
            (r#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800""#, r#""\\\ufffd""#),
            (r#""\u0041\n\"""#, r#""\u0041\n\"""#),
            (r#""\ud8"#, r#""\ud8"#),
            ("\"\\é\"", "\"\\é\""),
        ] {
            assert_eq!(replace_lone_surrogates(json), expected);
        }
    }
}
