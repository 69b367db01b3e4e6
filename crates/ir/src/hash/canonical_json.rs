//! One text for equal JSON values.
//!
//! Keys sorted by their bytes, no white space, strings escaped one way, numbers by value. Unlike
//! RFC 8785, integers of any size keep their digits: two large ids must not become equal. A repeated
//! key keeps its last value, as most readers do.
//!
//! Arguments of calls are compared in this form, because clients write them anew when they send a
//! history back.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::raw::{Fields, quote_json};

/// How deep a value may nest to be put in canonical form; deeper ones stay as they are.
const MAX_DEPTH: usize = 128;

/// The canonical text of a JSON value; `None` if `text` is not JSON or nests deeper than 128.
#[must_use]
pub fn canonical_json(text: &str) -> Option<String> {
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let mut out = String::with_capacity(text.len());
    write_canonical(raw.get(), MAX_DEPTH, &mut out)?;
    Some(out)
}

fn write_canonical(text: &str, depth: usize, out: &mut String) -> Option<()> {
    // The depth is counted down and not up, so that the one `?` both checks and ends.
    let depth = depth.checked_sub(1)?;
    match text.as_bytes().first()? {
        b'{' => {
            let fields = Fields::parse(text).ok()?;
            // Collecting into a map drops all but the last of repeated keys, which is what most readers do.
            let sorted: BTreeMap<&str, &RawValue> = fields.iter().collect();
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&quote_json(key));
                out.push(':');
                write_canonical(value.get(), depth, out)?;
            }
            out.push('}');
        }
        b'[' => {
            let values: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push('[');
            for (index, value) in values.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(value.get(), depth, out)?;
            }
            out.push(']');
        }
        // Parsed and quoted again: `"\u0041"` and `"A"` are one string, and must be one text.
        b'"' => out.push_str(&quote_json(&serde_json::from_str::<String>(text).ok()?)),
        b't' | b'f' | b'n' => out.push_str(text),
        _ => out.push_str(&canonical_number(text)),
    }
    Some(())
}

/// Integers by their digits, other numbers as the shortest text of the nearest double.
fn canonical_number(text: &str) -> String {
    if text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-')
    // Digits stay text. A double would make two 19-digit ids equal, and so two different calls.
    {
        return if text == "-0" {
            "0".to_owned()
        } else {
            text.to_owned()
        };
    }
    // Below 2^53 a whole double prints as an integer, so that `1.0`, `1e0` and `1` are one number.
    match text.parse::<f64>() {
        // Adding zero turns -0 into 0.
        Ok(value) if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 => {
            format!("{:.0}", value + 0.0)
        }
        Ok(value) if value.is_finite() => format!("{value:?}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(canonical_json(text).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn equal_values_have_one_text() {
        check(
            r#" {"b": 1, "a" : [ true , null ]} "#,
            r#"{"a":[true,null],"b":1}"#,
        );
        check(r#"{"a":1,"a":2}"#, r#"{"a":2}"#);
        check(r#""\u00e9\/""#, r#""é/""#);
        check(
            "[1.0, 1e2, -0, -0.0, 0.5, -3.0, 1e-7]",
            "[1,100,0,0,0.5,-3,1e-7]",
        );
        check("12345678901234567890123", "12345678901234567890123");
        check("1e400", "1e400");
    }

    #[test]
    fn what_is_not_json_has_none() {
        for text in ["", "{", "nul", "{\"a\":}", "[1,]"] {
            assert_eq!(canonical_json(text), None, "{text}");
        }
        let deep = "[".repeat(5_000) + &"]".repeat(5_000);
        assert_eq!(canonical_json(&deep), None);
    }
}
