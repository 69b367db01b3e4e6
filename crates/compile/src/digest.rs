//! Hashes over much, or over many hashes, as the hash that contents have.

use contexture_ir::ContentHash;

/// What a hasher was given, as a content hash.
pub(crate) fn finish_content_hash(hasher: &blake3::Hasher) -> ContentHash {
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    ContentHash::from_bytes(bytes)
}

/// The bytes of many hashes, to be hashed at once: many small updates of a hasher cost more than the hashing.
pub(crate) fn concat_hashes<'h>(hashes: impl IntoIterator<Item = &'h ContentHash>) -> Vec<u8> {
    let hashes = hashes.into_iter();
    let mut bytes = Vec::with_capacity(hashes.size_hint().0.saturating_mul(16));
    hashes.for_each(|hash| bytes.extend_from_slice(hash.as_bytes()));
    bytes
}
