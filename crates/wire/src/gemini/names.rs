//! Names of fields: camelCase, or snake_case where the writer preferred that.
//!
//! The provider accepts both. Which fields came in snake_case is a hint, kept per part.

use contexture_ir::{Error, Extra, Fields, Raw, is_beyond_f64};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The hint's key.
const HINT: &str = "~names";

/// The fields that were, or are to be, written in snake_case.
#[derive(Default)]
pub(super) struct SnakeCaseFields(Vec<String>);

impl SnakeCaseFields {
    /// Reads the names that are stored with a format's fields.
    pub(super) fn from_wire(wire: &Extra) -> Self {
        let names = wire
            .get(HINT)
            .and_then(|raw| raw.parse_as::<Vec<String>>().ok());
        Self(names.unwrap_or_default())
    }

    /// Stores the names with a format's fields.
    pub(super) fn save_to(self, wire: &mut Extra) {
        if !self.0.is_empty()
            && let Ok(raw) = Raw::from_value(&self.0)
        {
            wire.set(HINT, raw);
        }
    }

    /// Takes a field in either spelling; `null` counts as absent and stays.
    pub(super) fn take_field<'a>(
        &mut self,
        fields: &mut Fields<'a>,
        name: &'static str,
    ) -> Result<Option<&'a RawValue>, Error> {
        let snake = to_snake_case(name);
        let found = fields.take_present(&[name])?;
        if snake == name {
            return Ok(found);
        }
        let other = fields.take_present(&[&snake])?;
        if other.is_none() {
            return Ok(found);
        }
        // Both spellings at once are ambiguous; the provider refuses that as well.
        if found.is_some() {
            return Err(Error::Duplicate {
                path: String::new(),
                field: snake,
            });
        }
        if !self.0.contains(&snake) {
            self.0.push(snake);
        }
        Ok(other)
    }

    /// As [`SnakeCaseFields::take_field`], of a known type.
    pub(super) fn take_as<'a, T: Deserialize<'a>>(
        &mut self,
        fields: &mut Fields<'a>,
        name: &'static str,
        expected: &'static str,
    ) -> Result<Option<T>, Error> {
        // As in [`Fields::take_as`]: legal JSON that no number type holds is data, not a fault.
        if peek_field(fields, name).is_some_and(|value| is_beyond_f64(value.get())) {
            return Ok(None);
        }
        let Some(value) = self.take_field(fields, name)? else {
            return Ok(None);
        };
        serde_json::from_str(value.get())
            .map(Some)
            .map_err(|_| unexpected_value(expected, value.get()).at_segment(name))
    }

    /// As [`SnakeCaseFields::take_field`], a string.
    pub(super) fn take_string(
        &mut self,
        fields: &mut Fields<'_>,
        name: &'static str,
    ) -> Result<Option<String>, Error> {
        self.take_as(fields, name, "a string")
    }

    /// The field's name as it is to be written.
    pub(super) fn spelled_name(&self, name: &'static str) -> String {
        let snake = to_snake_case(name);
        if self.0.contains(&snake) {
            snake
        } else {
            name.to_owned()
        }
    }
}

/// A value of the wrong type or an unknown word.
pub(super) fn unexpected_value(expected: &'static str, found: &str) -> Error {
    let found = found.chars().take(60).collect();
    Error::Unexpected {
        path: String::new(),
        expected,
        found,
    }
}

/// A field in either spelling, left where it is.
pub(super) fn peek_field<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a RawValue> {
    fields
        .get(&[name, &to_snake_case(name)])
        .filter(|value| value.get() != "null")
}

/// `functionCall` as `function_call`.
fn to_snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// `function_call` as `functionCall`.
pub(super) fn to_camel_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for c in name.chars() {
        if c == '_' && !out.is_empty() {
            upper = true;
        } else if std::mem::take(&mut upper) {
            out.push(c.to_ascii_uppercase());
        } else {
            out.push(c);
        }
    }
    out
}
