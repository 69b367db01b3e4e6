//! What functions gave back: text in an item, always an object here.

use contexture_ir::{Raw, quote};
use serde_json::Value;

use crate::json::as_object;

/// Text as a response object.
pub(super) fn object(text: &str, is_error: Option<bool>, wrap: Option<&str>) -> String {
    match wrap {
        Some(key) => single(key, text),
        None if is_error == Some(true) => single("error", text),
        None => as_object(text).map_or_else(|| single("result", text), str::to_owned),
    }
}

fn single(key: &str, text: &str) -> String {
    format!("{{{}:{}}}", quote(key), quote(text))
}

/// The hint of a response that was no object, against the provider's rules: its value.
pub(super) const VALUE: &str = "~value";

/// A response that is no object as text: a string's own text, anything else as JSON.
pub(super) fn bare(response: &Raw) -> String {
    response
        .as_string()
        .unwrap_or_else(|| response.get().to_owned())
}

/// A response object as text.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) is_error: Option<bool>,
    /// The key the text stood under, where we would not write it so.
    pub(super) wrap: Option<&'static str>,
}

/// Reads a response object: the string under `result`, `output` or `error` where that is all there
/// is, else the object's own JSON.
pub(super) fn text(response: &Raw) -> Text {
    let whole = || Text {
        text: response.get().to_owned(),
        is_error: None,
        wrap: None,
    };
    let Some(fields) = response.fields() else {
        return Text {
            text: bare(response),
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
    Text {
        text,
        is_error,
        wrap: (!plain).then_some(key),
    }
}
