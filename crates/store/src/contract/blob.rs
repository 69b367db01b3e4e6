//! Blobs: bytes by content.

use std::fmt;
use std::str::FromStr;

use contexture_ir::{Error, NodeId, Owner};

/// Id of a blob of one owner: a BLAKE3 hash of its bytes, keyed by the owner and cut to 16 bytes.
///
/// Equal bytes of two owners have unrelated ids, so an id confirms nothing about a stranger's data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId([u8; 16]);

impl BlobId {
    /// Returns the id of `bytes` for `owner`.
    #[must_use]
    pub fn of(owner: &Owner, bytes: &[u8]) -> Self {
        let key = blake3::derive_key(
            "contexture 2026 blob id of owner",
            owner.as_str().as_bytes(),
        );
        let hash = blake3::keyed_hash(&key, bytes);
        let mut id = [0; 16];
        id.iter_mut()
            .zip(hash.as_bytes())
            .for_each(|(to, from)| *to = *from);
        Self(id)
    }

    /// Returns everything in a text that looks like the id of a blob: exactly 32 hexadecimal digits.
    #[must_use]
    pub fn find_in_text(text: &str) -> Vec<Self> {
        let runs = text.split(|c: char| !c.is_ascii_hexdigit());
        let runs = runs.filter(|run| run.len() == 32);
        runs.filter_map(|run| run.parse().ok()).collect()
    }

    /// Returns the id that consists of these 16 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the 16 bytes of the id.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BlobId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // Blob ids have the textual form of node ids: 32 hexadecimal digits.
        text.parse::<NodeId>().map(|id| Self(*id.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_blobs_are_found_in_text() {
        let id = "0123456789abcdef0123456789abcdef";
        let found = |text: &str| BlobId::find_in_text(text).len();
        assert_eq!(found(&format!(r#"{{"url":"context://{id}"}}"#)), 1);
        assert_eq!(found(&format!("{id} {id}")), 2);
        assert_eq!(found(&format!("{id}0")), 0);
        assert_eq!(found("0123"), 0);
    }
}
