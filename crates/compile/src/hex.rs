//! Hashes as 32 hexadecimal digits in JSON, for serde's `with`.

use contexture_ir::ContentHash;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(
    hash: &ContentHash,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(hash)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ContentHash, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

/// The same for a hash that may be absent.
pub(crate) mod option {
    use super::{ContentHash, Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the form serde asks for")]
    pub(crate) fn serialize<S: Serializer>(
        hash: &Option<ContentHash>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match hash {
            Some(hash) => serializer.collect_str(hash),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ContentHash>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let parsed = text.map(|text| text.parse()).transpose();
        parsed.map_err(serde::de::Error::custom)
    }
}
