//! Writing JSON objects member by member, in the order they are given.
//!
//! The bytes of a payload are part of the provider's cache key, so the order of members is decided
//! here and nowhere else. Values that are already JSON text are copied, never parsed. A member that
//! is written twice keeps its first value: typed members come first, carried ones after them.

use contexture_ir::{Extra, Fields, REPEATED, quote_json};
use serde_json::value::RawValue;

use crate::model::format_extras::original_key;

/// An object being written.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    text: String,
    keys: Vec<&'static str>,
}

impl ObjectWriter {
    pub(crate) fn new() -> Self {
        Self {
            text: "{".to_owned(),
            keys: Vec::new(),
        }
    }

    /// Adds a member whose value is JSON text.
    pub(crate) fn raw(&mut self, key: &'static str, json: &str) -> &mut Self {
        self.raw_as(key, key, json)
    }

    /// Adds a member that is known as `key` but written as `name`.
    pub(crate) fn raw_as(&mut self, key: &'static str, name: &str, json: &str) -> &mut Self {
        self.keys.push(key);
        self.write_member(name, json);
        self
    }

    /// Adds a string member.
    pub(crate) fn string(&mut self, key: &'static str, value: &str) -> &mut Self {
        self.raw(key, &quote_json(value))
    }

    /// Adds a member whose value is JSON text, if there is one.
    pub(crate) fn raw_if_some(
        &mut self,
        key: &'static str,
        json: Option<impl AsRef<str>>,
    ) -> &mut Self {
        if let Some(json) = json {
            self.raw(key, json.as_ref());
        }
        self
    }

    /// Adds a string member, if there is one.
    pub(crate) fn string_if_some(
        &mut self,
        key: &'static str,
        value: Option<impl AsRef<str>>,
    ) -> &mut Self {
        if let Some(value) = value {
            self.string(key, value.as_ref());
        }
        self
    }

    /// Adds a number or a boolean, if there is one.
    pub(crate) fn value_if_some(
        &mut self,
        key: &'static str,
        value: Option<impl ToString>,
    ) -> &mut Self {
        if let Some(value) = value {
            self.raw(key, &value.to_string());
        }
        self
    }

    /// Adds an array member of JSON texts.
    pub(crate) fn array(
        &mut self,
        key: &'static str,
        values: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> &mut Self {
        self.raw(key, &json_array(values))
    }

    /// Adds the members carried for this format; hints, members already written and values that a later one of the same
    /// name replaced are left out.
    pub(crate) fn extra_fields(&mut self, fields: &Extra) -> &mut Self {
        for (key, value) in fields.iter().filter(|(key, _)| *key != REPEATED) {
            if let Some(name) = original_key(key)
                // A typed member wins over a carried one of the same name: the item may have been
                // edited since.
                && !self.keys.contains(&name)
            {
                self.write_member(name, value.get());
            }
        }
        self
    }

    /// Counts the members of another piece of the same object as written, and one more.
    pub(crate) fn mark_written(&mut self, other: &Self, key: &'static str) -> &mut Self {
        self.keys.extend_from_slice(&other.keys);
        self.keys.push(key);
        self
    }

    /// Whether no member was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.len() == 1
    }

    /// The members without the braces.
    pub(crate) fn inner_json(&self) -> &str {
        self.text.get(1..).unwrap_or_default()
    }

    pub(crate) fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }

    fn write_member(&mut self, name: &str, json: &str) {
        if !self.is_empty() {
            self.text.push(',');
        }
        self.text.push_str(&quote_json(name));
        self.text.push(':');
        self.text.push_str(json);
    }
}

/// Reads a string value.
pub(crate) fn string_value(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// Reads a string member.
pub(crate) fn string_field(fields: &Fields<'_>, name: &str) -> Option<String> {
    fields.get(&[name]).and_then(string_value)
}

/// Joins JSON values into an array.
pub(crate) fn json_array<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> String {
    let mut text = "[".to_owned();
    for value in values {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(value.as_ref());
    }
    text.push(']');
    text
}

/// The text without surrounding white space if it is one JSON object.
pub(crate) fn as_object(text: &str) -> Option<&str> {
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    // Returned as it stands: the order and spelling of arguments are part of what the model wrote.
    (text.starts_with('{') && Fields::parse(text).is_ok()).then_some(text)
}
