//! Links to stored content of a conversation: `context://vfs/` and the 32 hexadecimal digits of a content hash.
//!
//! A link is parsed, never joined to a path: anything that does not match the grammar exactly is an error. It
//! identifies bytes, not their owner: whoever resolves one searches only what its reader may see.

use std::fmt;
use std::str::FromStr;

use contexture_ir::ContentHash;
use serde::{Serialize, Serializer};

/// Prefix of every link.
const SCHEME: &str = "context://vfs/";

/// A link to an item by the hash of its stored bytes.
///
/// ```
/// use contexture_condense::Link;
///
/// let link: Link = "context://vfs/0123456789abcdef0123456789abcdef".parse()?;
/// assert_eq!(link.to_string(), "context://vfs/0123456789abcdef0123456789abcdef");
/// assert!("context://vfs/../../etc/passwd".parse::<Link>().is_err());
/// # Ok::<(), contexture_condense::LinkError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link(ContentHash);

/// Why a text is not a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no link: expected `context://vfs/` and 32 of the digits 0-9 a-f")]
pub struct LinkError {
    /// The text, shortened.
    pub text: String,
}

impl Link {
    /// Creates the link to the item whose stored bytes have this hash.
    #[must_use]
    pub const fn new(hash: ContentHash) -> Self {
        Self(hash)
    }

    /// Returns the hash of the item's stored bytes.
    #[must_use]
    pub const fn hash(&self) -> ContentHash {
        self.0
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Self, LinkError> {
        let digits = text.strip_prefix(SCHEME).filter(|digits| {
            let lower = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            digits.bytes().all(lower)
        });
        digits
            .and_then(|digits| digits.parse().ok())
            .map(Self)
            .ok_or_else(|| LinkError {
                text: text.chars().take(80).collect(),
            })
    }
}

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_one_spelling() {
        let link = Link::new(ContentHash::of(b"x"));
        assert_eq!(link.to_string().parse(), Ok(link));
        let digits = link.hash().to_string();
        for foreign in [
            String::new(),
            digits.clone(),
            format!("context://vfs/{}", digits.to_uppercase().replace('0', "A")),
            format!("context://vfs/{digits}0"),
            format!("context://vfs/{digits}.txt"),
            format!("context://vfs/{digits}/"),
            format!("context://vfs/{digits}?a"),
            format!(" context://vfs/{digits}"),
            format!("context://vfs//{digits}"),
            format!("Context://vfs/{digits}"),
            format!("file:///{digits}"),
            "context://vfs/../secret.txt".to_owned(),
            "context://vfs/../../../../../../etc/hostname".to_owned(),
            format!("context://vfs/{}\0", &digits[..31]),
            format!("context://vfs/{}é", &digits[..30]),
        ] {
            assert!(foreign.parse::<Link>().is_err(), "{foreign:?}");
        }
    }

    #[test]
    fn the_error_names_the_text_and_what_was_expected() {
        let error = format!("context://vfs/{}", "../".repeat(1_000))
            .parse::<Link>()
            .unwrap_err();
        assert!(error.to_string().len() < 200);
        assert!(error.to_string().contains("context://vfs/../"), "{error}");
        assert!(error.to_string().contains("32 of the digits"), "{error}");
    }
}
