//! The names of state entries, and what a patch expects under them.

use std::fmt;
use std::str::FromStr;

use contexture_ir::{ContentHash, Error};

/// The key of a state entry: 1 to 255 bytes without control characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateKey(Box<str>);

impl StateKey {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 255;

    /// Checks the rule.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Error> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > Self::MAX_BYTES || text.chars().any(char::is_control) {
            return Err(Error::BadId {
                kind: "state key",
                value: text.chars().take(80).collect(),
                rule: "expected 1 to 255 bytes without control characters",
            });
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for StateKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

/// What must be there, or [`Error::StateConflict`](crate::Error::StateConflict).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateExpectation {
    /// Anything or nothing.
    Any,
    /// Nothing.
    Absent,
    /// A value with this hash.
    Hash(ContentHash),
}

impl fmt::Display for StateExpectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::Absent => f.write_str("nothing"),
            Self::Hash(hash) => fmt::Display::fmt(hash, f),
        }
    }
}
