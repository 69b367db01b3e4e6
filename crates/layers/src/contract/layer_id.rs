//! Names of layers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The name of a layer, unique within a list: 1 to 64 bytes of lower-case letters, digits, `-` and `_`.
///
/// It is part of the keys of its state and of the names of its tools, so it must never change.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LayerId(Box<str>);

impl LayerId {
    /// Maximum length of a name, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Creates a name after checking the rule.
    ///
    /// # Errors
    /// [`LayerIdError`].
    pub fn new(text: impl AsRef<str>) -> Result<Self, LayerIdError> {
        let text = text.as_ref();
        let allowed =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_');
        if text.is_empty() || text.len() > Self::MAX_BYTES || !text.bytes().all(allowed) {
            return Err(LayerIdError {
                id: text.chars().take(80).collect(),
            });
        }
        Ok(Self(text.into()))
    }

    /// Creates a name from our own source code.
    pub(crate) fn built_in(name: &'static str) -> Self {
        debug_assert!(Self::new(name).is_ok(), "{name} is no name of a layer");
        Self(name.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for LayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl TryFrom<String> for LayerId {
    type Error = LayerIdError;

    fn try_from(text: String) -> Result<Self, LayerIdError> {
        Self::new(text)
    }
}

impl From<LayerId> for String {
    fn from(id: LayerId) -> Self {
        id.0.into()
    }
}

/// A text that is not a valid name of a layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id:?} is no name of a layer: expected 1 to 64 bytes of a-z, 0-9, - and _")]
pub struct LayerIdError {
    /// The first characters of the id.
    pub id: String,
}
