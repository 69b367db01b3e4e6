//! The packed form of a vocabulary: for every token, the two tokens it was merged from.
//!
//! A byte-pair encoding is fully described by its merges in order of rank; the bytes of a token are the bytes of
//! its two parts. So a vocabulary packs to two small numbers per token (about 0.8 MB for `o200k_base`) and unpacks
//! by copying. Layout: `CTXBPE1\n`; the number of tokens (LEB128); the 256 bytes that tokens 0..256 stand for; then
//! for each further token its left and its right part (LEB128), both smaller than the token itself.

use super::table::HashIndex;

/// What every packed vocabulary begins with.
pub(crate) const MAGIC: &[u8; 8] = b"CTXBPE1\n";
/// Tokens that are one byte.
pub(crate) const BYTES: u32 = 256;
/// Tokens are values of an [`HashIndex`].
const MAX_TOKENS: u32 = HashIndex::LIMIT;
/// Merges can double a length at each step; no real vocabulary comes near this.
const MAX_LENGTH: usize = 1024;

/// Why a packed vocabulary cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum PackedError {
    #[error("not a packed vocabulary: the first eight bytes are not CTXBPE1")]
    Magic,
    #[error("packed vocabulary announces {0} tokens, expected 256 to 1048575")]
    Size(u32),
    #[error("packed vocabulary ends inside token {0}")]
    Truncated(u32),
    #[error("token {0} refers to a part that does not stand before it")]
    Order(u32),
    #[error("token {0} has more than 1024 bytes")]
    Long(u32),
    #[error("packed vocabulary lacks a token for byte {0:#04x}")]
    Byte(u8),
    #[error("{0} bytes follow the last token")]
    Trailing(usize),
}

/// A vocabulary read from its packed form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Merges {
    /// The byte of each of the first 256 tokens.
    pub(crate) bytes: [u8; BYTES as usize],
    /// Left and right part of tokens 256, 257, ….
    pub(crate) parts: Vec<(u32, u32)>,
}

impl Merges {
    /// Reads a packed vocabulary.
    pub(crate) fn unpack(packed: &[u8]) -> Result<Self, PackedError> {
        let mut rest = packed.strip_prefix(MAGIC).ok_or(PackedError::Magic)?;
        let count = take_leb128(&mut rest).ok_or(PackedError::Truncated(0))?;
        // Checked before anything is reserved by the count.
        if !(BYTES..=MAX_TOKENS).contains(&count) {
            return Err(PackedError::Size(count));
        }
        let (bytes, tail) = rest.split_first_chunk().ok_or(PackedError::Truncated(0))?;
        rest = tail;
        if let Some(missing) = (0..=u8::MAX).find(|byte| !bytes.contains(byte)) {
            return Err(PackedError::Byte(missing));
        }
        // A token takes at least two bytes, so the input's length bounds what a false count can make us reserve.
        let mut parts = Vec::with_capacity(rest.len().min((count - BYTES) as usize));
        let mut lengths = vec![1; BYTES as usize];
        for token in BYTES..count {
            let left = take_leb128(&mut rest).ok_or(PackedError::Truncated(token))?;
            let right = take_leb128(&mut rest).ok_or(PackedError::Truncated(token))?;
            let length = |part: u32| lengths.get(part as usize).copied();
            let (Some(before), Some(after)) = (length(left), length(right)) else {
                return Err(PackedError::Order(token));
            };
            if before + after > MAX_LENGTH {
                return Err(PackedError::Long(token));
            }
            lengths.push(before + after);
            parts.push((left, right));
        }
        if !rest.is_empty() {
            return Err(PackedError::Trailing(rest.len()));
        }
        Ok(Self {
            bytes: *bytes,
            parts,
        })
    }
}

/// Takes one LEB128 number of at most 32 bits off the front.
pub(crate) fn take_leb128(rest: &mut &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..32).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(count: u32, parts: &[u8]) -> Vec<u8> {
        let mut packed = MAGIC.to_vec();
        packed.extend([(count & 0x7f) as u8 | 0x80, (count >> 7) as u8]);
        packed.extend(0..=u8::MAX);
        packed.extend(parts);
        packed
    }

    #[test]
    fn damaged_vocabularies_are_refused() {
        let mut twice = packed(256, &[]);
        *twice.last_mut().unwrap() = 0;
        let doubling: Vec<u8> = [97, 97]
            .into_iter()
            .chain((0..10).flat_map(|step| [0x80 | step, 2, 0x80 | step, 2]))
            .collect();
        for (input, expected) in [
            (Vec::new(), PackedError::Magic),
            (MAGIC.to_vec(), PackedError::Truncated(0)),
            (packed(255, &[]), PackedError::Size(255)),
            (packed(257, &[1]), PackedError::Truncated(256)),
            (packed(257, &[1, 0x80, 2]), PackedError::Order(256)),
            (packed(256, &[1]), PackedError::Trailing(1)),
            (packed(267, &doubling), PackedError::Long(266)),
            (twice, PackedError::Byte(255)),
        ] {
            assert_eq!(Merges::unpack(&input), Err(expected));
        }
        assert_eq!(
            Merges::unpack(&packed(257, &[97, 98])).unwrap().parts,
            [(97, 98)]
        );
    }
}
