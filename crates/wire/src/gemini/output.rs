//! What functions gave back: text in an item, always an object here.

use contexture_ir::{Raw, quote_json};
use serde_json::Value;

use crate::model::json::as_object;

/// Text as a response object.
pub(super) fn encode_output(text: &str, is_error: Option<bool>, wrap: Option<&str>) -> String {
    match wrap {
        Some(key) => single_member_object(key, text),
        None if is_error == Some(true) => single_member_object("error", text),
        None => as_object(text).map_or_else(|| single_member_object("result", text), str::to_owned),
    }
}

fn single_member_object(key: &str, text: &str) -> String {
    format!("{{{}:{}}}", quote_json(key), quote_json(text))
}

/// The hint of a response that was no object, against the provider's rules: its value.
pub(super) const VALUE: &str = "~value";

/// A response that is no object as text: a string's own text, anything else as JSON.
pub(super) fn bare_value_text(response: &Raw) -> String {
    response
        .as_string()
        .unwrap_or_else(|| response.get().to_owned())
}

/// A response object as text.
pub(super) struct ParsedOutput {
    pub(super) text: String,
    pub(super) is_error: Option<bool>,
    /// The key the text stood under, where we would not write it so.
    pub(super) wrap: Option<&'static str>,
}

/// Reads a response object: the string under `result`, `output` or `error` where that is all there
/// is, else the object's own JSON.
pub(super) fn parse_output(response: &Raw) -> ParsedOutput {
    let whole = || ParsedOutput {
        text: response.get().to_owned(),
        is_error: None,
        wrap: None,
    };
    let Some(fields) = response.fields() else {
        return ParsedOutput {
            text: bare_value_text(response),
            ..whole()
        };
    };
    let mut members = fields.iter();
    let (Some((key, value)), None) = (members.next(), members.next()) else {
        return whole();
    };
    let Some(key) = ["result", "output", "error"]
        .into_iter()
        .find(|known| *known == key)
    else {
        return whole();
    };
    let Ok(Value::String(text)) = serde_json::from_str(value.get()) else {
        return whole();
    };
    let is_error = (key == "error").then_some(true);
    let plain = match key {
        "error" => true,
        "result" => as_object(&text).is_none(),
        _ => false,
    };
    ParsedOutput {
        text,
        is_error,
        wrap: (!plain).then_some(key),
    }
}
