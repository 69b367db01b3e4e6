//! JSON objects with one member changed and everything else as it was written.

use contexture_ir::{Fields, quote_json};

/// The object with the value of `key` replaced, in its place; added at the end if it is not there.
/// `None` if the text is not an object.
pub(crate) fn with_member(object: &str, key: &str, value: &str) -> Option<String> {
    let fields = Fields::parse(object).ok()?;
    // Rebuilt from the members and not edited in place: values keep their bytes, only white space between
    // members goes.
    let mut out = String::with_capacity(object.len() + value.len());
    let mut found = false;
    for (name, old) in fields.iter() {
        // Only the first of repeated keys is replaced; the others stay as they were.
        let value = if name == key && !found {
            value
        } else {
            old.get()
        };
        found |= name == key;
        push_member(&mut out, name, value);
    }
    if !found {
        push_member(&mut out, key, value);
    }
    Some(close_object(out))
}

/// The object without the members that `drop` names.
pub(crate) fn without_members(object: &str, drop: impl Fn(&str) -> bool) -> Option<String> {
    let fields = Fields::parse(object).ok()?;
    let mut out = String::with_capacity(object.len());
    for (name, value) in fields.iter().filter(|(name, _)| !drop(name)) {
        push_member(&mut out, name, value.get());
    }
    Some(close_object(out))
}

fn push_member(out: &mut String, name: &str, value: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    out.push_str(&quote_json(name));
    out.push(':');
    out.push_str(value);
}

fn close_object(mut out: String) -> String {
    if out.is_empty() {
        out.push('{');
    }
    out.push('}');
    out
}

/// Whether two texts are the same JSON value, numbers compared as they are written.
pub(crate) fn is_same_json(one: &str, other: &str) -> bool {
    // Equal texts are the usual case and need no parse.
    one == other
        || matches!((parse_value(one), parse_value(other)), (Some(one), Some(other)) if one == other)
}

fn parse_value(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}

/// The string a member holds.
pub(crate) fn text_of(fields: &Fields<'_>, key: &str) -> Option<String> {
    serde_json::from_str(fields.get(&[key])?.get()).ok()
}

/// The member `timestamp` in milliseconds since 1970; `None` where it is no time.
pub(crate) fn timestamp_of(fields: &Fields<'_>) -> Option<i64> {
    let time: jiff::Timestamp = text_of(fields, "timestamp")?.parse().ok()?;
    Some(time.as_millisecond())
}

/// The first characters of a text, for an error.
pub(crate) fn excerpt(text: &str) -> String {
    contexture_ir::truncate_chars(text, 60)
}
