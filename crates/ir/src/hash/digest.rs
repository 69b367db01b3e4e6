//! Content hashes over more than one text, and content hashes in JSON.

use crate::id::ContentHash;

/// The state of a hasher as a content hash: its first 16 bytes, as for every other id.
#[must_use]
pub fn finish_content_hash(hasher: &blake3::Hasher) -> ContentHash {
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    ContentHash::from_bytes(bytes)
}

/// The bytes of many hashes as one buffer, to be hashed in one go.
#[must_use]
pub fn concat_hashes<'h>(hashes: impl IntoIterator<Item = &'h ContentHash>) -> Vec<u8> {
    let hashes = hashes.into_iter();
    // One long update: many updates of 16 bytes cost more than the hashing itself.
    let mut bytes = Vec::with_capacity(hashes.size_hint().0.saturating_mul(16));
    hashes.for_each(|hash| bytes.extend_from_slice(hash.as_bytes()));
    bytes
}

/// Content hashes as 32 hexadecimal digits in JSON, for serde's `with`.
pub mod hex {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::id::ContentHash;

    /// Writes a hash as text.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(hash: &ContentHash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(hash)
    }

    /// Reads a hash from text.
    ///
    /// # Errors
    /// Those of the deserializer, and that of a text that is no hash.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ContentHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }

    /// The same for a hash that may be absent.
    pub mod option {
        use serde::{Deserialize, Deserializer, Serializer};

        use crate::id::ContentHash;

        /// Writes a hash as text, or null.
        ///
        /// # Errors
        /// Those of the serializer.
        pub fn serialize<S: Serializer>(
            hash: &Option<ContentHash>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match hash {
                Some(hash) => serializer.collect_str(hash),
                None => serializer.serialize_none(),
            }
        }

        /// Reads a hash from text or null.
        ///
        /// # Errors
        /// Those of the deserializer, and that of a text that is no hash.
        pub fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<ContentHash>, D::Error> {
            let text = Option::<String>::deserialize(deserializer)?;
            let parsed = text.map(|text| text.parse()).transpose();
            parsed.map_err(serde::de::Error::custom)
        }
    }
}
