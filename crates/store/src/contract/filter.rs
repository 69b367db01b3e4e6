//! Filters over a conversation's metadata.
//!
//! A filter can test metadata fields whose name is a valid [`MetadataKey`]: whether they exist, and
//! how they compare with a value of the same type. Lists and objects exist but compare with
//! nothing. Backends index these fields in a table of their own, so no query looks into JSON.
//! [`rules::matches_filter`](crate::rules::matches_filter) defines what a filter means.

use std::fmt;
use std::str::FromStr;

use crate::contract::Error;

/// Name of a metadata field that a filter can test: `[A-Za-z0-9_.-]{1,64}`. A dot has no special meaning.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MetadataKey(String);

/// Condition on the metadata of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataFilter {
    /// The field exists.
    Has(MetadataKey),
    /// The field exists, has the type of `value`, and compares with it as `by` says.
    Compare {
        /// Name of the field, on the left of the operator.
        key: MetadataKey,
        /// Operator of the comparison.
        by: Comparison,
        /// Value on the right of the operator.
        value: MetadataValue,
    },
    /// All of these conditions hold; true if there are none.
    All(Vec<MetadataFilter>),
    /// At least one of these conditions holds; false if there are none.
    Any(Vec<MetadataFilter>),
    /// The condition does not hold.
    Not(Box<MetadataFilter>),
}

/// Operator that compares a field with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The field equals the value.
    Equal,
    /// The field is less than the value.
    Less,
    /// The field is less than or equal to the value.
    LessOrEqual,
    /// The field is greater than the value.
    Greater,
    /// The field is greater than or equal to the value.
    GreaterOrEqual,
}

/// Value to compare with. Text compares by its bytes in UTF-8, numbers as 64-bit floating point,
/// and `false` is less than `true`.
#[derive(Clone, Debug, PartialEq)]
pub enum MetadataValue {
    /// The JSON value `null`.
    Null,
    /// The JSON value `true` or `false`.
    Bool(bool),
    /// A finite number.
    Number(f64),
    /// A text, compared by its bytes in UTF-8.
    Text(String),
}

impl MetadataKey {
    /// Length of the longest key, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Checks that `text` is 1 to 64 of the characters `A-Z a-z 0-9 _ . -`.
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

    /// Returns the key as text.
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
    /// Returns the condition that the field `key` equals `value`.
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
    /// Returns the stored code of the value's type; backends store 4 for lists, objects and
    /// incomparable values.
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
    /// Returns the operator as SQL writes it, such as `<=`.
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
