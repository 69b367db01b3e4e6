//! Why a configuration cannot be used.

use crate::config::line_numbers::{ConfigFault, line_number, line_of_path};

/// An error in a configuration: the file, the line, the key, and what is wrong with it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file}{}: {}{why}", LineSuffix(*line), KeyPrefix(key.as_deref()))]
pub struct ConfigError {
    /// Name of the configuration file.
    pub file: String,
    /// Line of the error, counted from 1; `None` if it is about no line.
    pub line: Option<usize>,
    /// Key of the error, such as `routes[1].policy`; `None` if it is about no key.
    pub key: Option<String>,
    /// Description of the error, in lower case and without a full stop.
    pub why: String,
}

impl ConfigError {
    pub(crate) fn new(file: &str, why: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            key: None,
            why: why.into(),
        }
    }

    /// Converts the parser's error. The line itself is not shown, as it may hold a secret.
    pub(crate) fn from_syntax_error(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map(|span| span.start);
        Self {
            line: start.map(|start| line_number(text, start)),
            key: start.and_then(|start| key_on_line(text, start)),
            ..Self::new(file, error.message().replace('\n', ", "))
        }
    }

    pub(crate) fn from_fault(file: &str, text: &str, fault: &ConfigFault) -> Self {
        Self {
            line: line_of_path(text, &fault.path),
            key: Some(fault.key_path()),
            ..Self::new(file, fault.why.clone())
        }
    }
}

/// Returns the text before `=` in the line of a byte.
fn key_on_line(text: &str, byte: usize) -> Option<String> {
    let before = text.get(..byte)?;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(start..)?.lines().next()?;
    let (key, _) = line.split_once('=')?;
    Some(key.trim().to_owned()).filter(|key| !key.is_empty())
}

struct LineSuffix(Option<usize>);

impl std::fmt::Display for LineSuffix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

struct KeyPrefix<'a>(Option<&'a str>);

impl std::fmt::Display for KeyPrefix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |key| write!(f, "{key}: "))
    }
}
