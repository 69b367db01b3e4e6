//! Extracts from an item the text by which it is found.
//!
//! It consists of texts of messages and reasoning, summaries of compactions, names and arguments of
//! calls, and outputs. If arguments or an output are JSON, only names and values are taken;
//! otherwise escapes would become parts of words. Not searched: ids, opaque fields, media,
//! extensions.
//!
//! Not here: splitting the text into terms.

use std::borrow::Cow;

use contexture_ir::{Item, Output, Raw, replace_lone_surrogates};

/// Number of bytes of a text that are searched; the rest is stored but not found. A constant and
/// not a limit, since stored indexes depend on it.
pub const MAX_SEARCHED_BYTES: usize = 512 << 10;

/// Returns the searchable text of an item given as JSON; empty if it is no item.
#[must_use]
pub fn searchable_text(json: &str) -> String {
    let item = Item::parse(json).or_else(|error| match replace_lone_surrogates(json) {
        Cow::Owned(json) => Item::parse(&json),
        Cow::Borrowed(_) => Err(error),
    });
    let mut text = match item {
        Ok(Item::FunctionCall(call)) => {
            let mut text = call.name;
            text.push('\n');
            text.push_str(&json_leaves(call.arguments));
            text
        }
        Ok(Item::FunctionCallOutput(output)) => match output.output {
            Output::Text(text) => json_leaves(text),
            Output::Parts(_) => Item::FunctionCallOutput(output).text(),
        },
        Ok(item) => item.text(),
        Err(_) => String::new(),
    };
    text.truncate(text.floor_char_boundary(MAX_SEARCHED_BYTES));
    text
}

/// Returns names and values of an object or array; any other text as it is.
fn json_leaves(text: String) -> String {
    if !text.trim_start().starts_with(['{', '[']) {
        return text;
    }
    match Raw::parse(text.as_str()) {
        Ok(json) => scan_json(json.get()),
        Err(_) => text,
    }
}

/// Returns the leaves of valid JSON, one per line, names before values.
fn scan_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = match c {
            '"' => read_string(after, &mut out),
            ':' => {
                out.push_str(": ");
                after
            }
            ',' | '{' | '[' | '}' | ']' => {
                if !out.is_empty() && !out.ends_with('\n') {
                    out.push('\n');
                }
                after
            }
            c if c.is_ascii_whitespace() => after,
            c => {
                out.push(c);
                after
            }
        };
    }
    out.truncate(out.trim_end().len());
    out
}

/// Reads a string up to its closing quote and returns the rest.
fn read_string<'a>(mut rest: &'a str, out: &mut String) -> &'a str {
    loop {
        let Some(at) = rest.find(['"', '\\']) else {
            out.push_str(rest);
            return "";
        };
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut bytes = special.bytes();
        if bytes.next() == Some(b'"') {
            return special.get(1..).unwrap_or_default();
        }
        let (read, c) = match bytes.next() {
            Some(b'u') => decode_unicode_escape(special),
            Some(b'n') => (2, '\n'),
            Some(b't') => (2, '\t'),
            Some(b'r') => (2, '\r'),
            Some(b'b' | b'f') => (2, ' '),
            Some(c) => (2, char::from(c)),
            None => (1, ' '),
        };
        out.push(c);
        rest = special.get(read..).unwrap_or_default();
    }
}

/// Reads `\uXXXX`, or a surrogate pair of two of them; returns the length and the character.
fn decode_unicode_escape(text: &str) -> (usize, char) {
    match (
        parse_hex_escape(text),
        text.get(6..).and_then(parse_hex_escape),
    ) {
        (Some(high @ 0xD800..=0xDBFF), Some(low @ 0xDC00..=0xDFFF)) => {
            let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            (12, char::from_u32(code).unwrap_or('\u{FFFD}'))
        }
        (Some(code), _) => (6, char::from_u32(code).unwrap_or('\u{FFFD}')),
        (None, _) => (2, '\u{FFFD}'),
    }
}

/// Parses the number of a leading `\uXXXX`.
fn parse_hex_escape(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    u32::from_str_radix(digits, 16).ok().filter(|_| hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(searchable_text(json), expected, "{json}");
    }

    #[test]
    fn what_was_said_is_searched() {
        for (json, expected) in [
            (
                r#"{"type":"message","role":"user","content":"a \"b\"\nc"}"#,
                "a \"b\"\nc",
            ),
            (
                r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},
                   {"type":"refusal","refusal":"b"}]}"#,
                "a\nb",
            ),
            (
                r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"x"}"#,
                "s",
            ),
            (
                r#"{"type":"compaction","summary":[{"type":"summary_text","text":"s"}]}"#,
                "s",
            ),
            (r#"{"type":"ctx:message","text":"x"}"#, ""),
            ("{", ""),
            ("7", ""),
        ] {
            check(json, expected);
        }
    }

    #[test]
    fn json_in_texts_is_its_leaves() {
        let call = |arguments: &str| {
            let arguments = contexture_ir::quote_json(arguments);
            format!(
                r#"{{"type":"function_call","call_id":"1","name":"sh","arguments":{arguments}}}"#
            )
        };
        check(
            &call(r#"{"cmd":"ls\ncat \u00e9","n":[1,true]}"#),
            "sh\ncmd: ls\ncat é\nn: \n1\ntrue",
        );
        check(&call("not json {"), "sh\nnot json {");
        check(&call(""), "sh\n");
        let output = |text: &str| {
            let text = contexture_ir::quote_json(text);
            format!(r#"{{"type":"function_call_output","call_id":"1","output":{text}}}"#)
        };
        check(&output(r#" ["\ud83d\ude00\ud83d"]"#), "😀\u{FFFD}");
        check(&output("[warn] half\\n"), "[warn] half\\n");
    }

    #[test]
    fn halves_of_characters_hide_nothing() {
        let json = r#"{"type":"message","role":"user","content":"a\ud800 b \\ud801 \ud83d\ude00"}"#;
        check(json, "a\u{FFFD} b \\ud801 😀");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let text = format!("a{}", "é".repeat(MAX_SEARCHED_BYTES / 2));
        let json = format!(r#"{{"type":"message","role":"user","content":"{text}"}}"#);
        assert_eq!(searchable_text(&json).len(), MAX_SEARCHED_BYTES - 1);
    }
}
