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
