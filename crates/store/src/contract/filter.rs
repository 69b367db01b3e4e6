//! Filters over a conversation's metadata.
//!
//! What can be asked for are the metadata's own fields with a [`MetadataKey`]'s name: whether they
//! are there, and how they compare with a value of the same kind. Lists and objects are there, and
//! compare with nothing. Backends keep these fields in a table of their own; no query looks into
//! JSON. [`rules::matches_filter`](crate::rules::matches_filter) says what a filter means.

use std::fmt;
use std::str::FromStr;

use crate::contract::Error;

/// The name of a metadata field that a filter can test: `[A-Za-z0-9_.-]{1,64}`. A dot is a
/// character like any other.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataKey(String);

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataFilter {
    /// The field exists.
    Has(MetadataKey),
    /// The field exists, has the type of the value, and compares like this with it.
    Compare {
        /// The field, on the left.
        key: MetadataKey,
        /// The comparison.
        by: Comparison,
        /// The value, on the right.
        value: MetadataValue,
    },
    /// All of these hold; with none, this does.
    All(Vec<MetadataFilter>),
    /// Any of these holds; with none, this does not.
    Any(Vec<MetadataFilter>),
    /// This does not hold.
    Not(Box<MetadataFilter>),
}

/// How a field compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Less.
    Less,
    /// Less or equal.
    LessOrEqual,
    /// Greater.
    Greater,
    /// Greater or equal.
    GreaterOrEqual,
}

/// A value to compare with. Text compares by its bytes in UTF-8, numbers as 64-bit floating point,
/// `false` is less than `true`.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A finite number.
    Number(f64),
    /// Text.
    Text(String),
}

impl MetadataKey {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Checks the rule.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        if text.is_empty() || text.len() > Self::MAX_BYTES || !text.bytes().all(allowed) {
            let start: String = text.chars().take(80).collect();
            return Err(Error::invalid_argument(
                "metadata key",
                format!("{start:?}: expected 1 to 64 of the characters A-Z a-z 0-9 _ . -"),
            ));
        }
        Ok(Self(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MetadataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for MetadataKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl MetadataFilter {
    /// The field `key` equals `value`.
    pub fn field_equals(key: &str, value: impl Into<MetadataValue>) -> Result<Self, Error> {
        Ok(Self::Compare {
            key: MetadataKey::new(key)?,
            by: Comparison::Equal,
            value: value.into(),
        })
    }
}

impl From<&str> for MetadataValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<f64> for MetadataValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for MetadataValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl MetadataValue {
    /// The stored code of the value's kind; lists and objects have 4.
    #[must_use]
    pub const fn kind_code(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
        }
    }
}

impl Comparison {
    /// The operator, as SQL and most languages write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

impl FromStr for Comparison {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let all = [
            Self::Equal,
            Self::Less,
            Self::LessOrEqual,
            Self::Greater,
            Self::GreaterOrEqual,
        ];
        all.into_iter()
            .find(|one| one.as_str() == text)
            .ok_or_else(|| {
                let start: String = text.chars().take(20).collect();
                Error::invalid_argument("comparison", format!("{start:?}: expected = < <= > or >="))
            })
    }
}
