//! Faults of a configuration, and the line of the file that each is in.

use std::fmt;

use toml::de::{DeTable, DeValue};

/// What is wrong, and with which key.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFault {
    pub(crate) path: Vec<KeyPathStep>,
    pub(crate) why: String,
}

impl ConfigFault {
    pub(crate) fn new(path: Vec<KeyPathStep>, why: impl fmt::Display) -> Self {
        let why = why.to_string();
        Self { path, why }
    }

    /// The key as people write it: `routes[1].policy`.
    pub(crate) fn key_path(&self) -> String {
        let mut out = String::new();
        for step in &self.path {
            match step {
                KeyPathStep::Key(key) if out.is_empty() => out.push_str(key),
                KeyPathStep::Key(key) => out.extend([".", key]),
                KeyPathStep::Index(index) => out.push_str(&format!("[{index}]")),
            }
        }
        out
    }
}

/// One step towards a value.
#[derive(Clone, Debug)]
pub(crate) enum KeyPathStep {
    /// Into a table.
    Key(String),
    /// Into an array, counted from 0.
    Index(usize),
}

impl KeyPathStep {
    pub(crate) fn key(name: &str) -> Self {
        Self::Key(name.to_owned())
    }
}

/// The line, counted from 1, in which the byte stands.
pub(crate) fn line_number(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    before.matches('\n').count() + 1
}

/// The line of a value, or of the nearest table around it that stands in the file.
pub(crate) fn line_of_path(text: &str, path: &[KeyPathStep]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    let mut found = None;
    let mut value: Option<&DeValue<'_>> = None;
    for step in path {
        let next = match (step, value) {
            (KeyPathStep::Key(key), None) => table.get_ref().get(key.as_str()),
            (KeyPathStep::Key(key), Some(value)) => {
                value.as_table().and_then(|table| table.get(key.as_str()))
            }
            (KeyPathStep::Index(index), Some(value)) => {
                value.as_array().and_then(|array| array.get(*index))
            }
            (KeyPathStep::Index(_), None) => None,
        };
        // A missing key is reported at its table: that is where it has to be added.
        let Some(next) = next else { break };
        found = Some(line_number(text, next.span().start));
        value = Some(next.get_ref());
    }
    found
}
