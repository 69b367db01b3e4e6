//! A text as what it has in common with others, and the rest.
//!
//! The text is encoded as copies of parts of a *base* and literal bytes between them, both compressed with zlib. Parts are found by the
//! hashes of short blocks of the base, as rsync does, so the work grows with the lengths of both and with nothing else.
//!
//! Not here: what a body is compared with (`frame`).

use std::collections::HashMap;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Bytes of a block: no shorter copy is worth its place and length.
const BLOCK: usize = 16;
/// Blocks of a base that are remembered at most; of a longer base only every so many bytes.
const MAX_BLOCKS: usize = 1 << 17;
/// The multiplier of the rolling hash.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// Longest text that is decoded: what is stored is read as if a stranger had written it.
const MAX_BYTES: usize = 256 << 20;

/// Encodes a text by what it has in common with a base.
pub(super) fn encode_delta(base: &[u8], text: &[u8]) -> Vec<u8> {
    let mut delta = DeltaWriter::default();
    let start = common_prefix(base, text);
    let mut done = 0;
    // What continues another text has its beginning, which need not be looked for block by block.
    if start >= BLOCK {
        delta.write_copy(&[], 0, start);
        done = start;
    }
    let blocks = BlockIndex::new(base);
    let mut window = done;
    let mut hash = None;
    while let Some(block) = text.get(window..window + BLOCK) {
        let rolled: u64 = hash.unwrap_or_else(|| hash_block(block));
        let found = blocks.find_block(rolled);
        // Two blocks may have one hash.
        if let Some(found) = found.filter(|at| base.get(*at..*at + BLOCK) == Some(block)) {
            let before = common_suffix(slice(base, 0, found), slice(text, done, window));
            let (from, to) = (found - before, window - before);
            let length = common_prefix(slice(base, from, base.len()), slice(text, to, text.len()));
            delta.write_copy(slice(text, done, to), from, length);
            done = to + length;
            window = done;
            hash = None;
            continue;
        }
        hash = text
            .get(window + BLOCK)
            .zip(block.first())
            .map(|(next, first)| roll_hash(rolled, *first, *next));
        window += 1;
    }
    delta.finish(slice(text, done, text.len()))
}

/// Decodes a text of this length from its base; `None` if it does not belong to it or is damaged.
pub(super) fn decode_delta(base: &[u8], delta: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > MAX_BYTES {
        return None;
    }
    // Each copy takes at most 30 bytes and gives at least one.
    let most = (MAX_BYTES as u64).saturating_mul(2);
    let mut plain = Vec::new();
    ZlibDecoder::new(delta)
        .take(most)
        .read_to_end(&mut plain)
        .ok()?;
    let mut reader = Varints(&plain);
    let operations = usize::try_from(reader.read_number()?).ok()?;
    let (operations, mut literals) = reader.0.split_at_checked(operations)?;
    let mut reader = Varints(operations);
    let mut text = Vec::with_capacity(length.min(1 << 20));
    let mut end = 0_i64;
    while !reader.0.is_empty() {
        let literal = usize::try_from(reader.read_number()?).ok()?;
        let (head, rest) = literals.split_at_checked(literal)?;
        literals = rest;
        let from = end.checked_add(reader.read_signed()?)?;
        let count = usize::try_from(reader.read_number()?).ok()?;
        let from = usize::try_from(from).ok()?;
        let copied = base.get(from..from.checked_add(count)?)?;
        if text.len() + head.len() + copied.len() > length {
            return None;
        }
        text.extend_from_slice(head);
        text.extend_from_slice(copied);
        end = i64::try_from(from + count).ok()?;
    }
    text.extend_from_slice(literals);
    (text.len() == length).then_some(text)
}

fn slice(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    bytes.get(from..to).unwrap_or_default()
}

fn common_prefix(one: &[u8], two: &[u8]) -> usize {
    one.iter().zip(two).take_while(|(a, b)| a == b).count()
}

fn common_suffix(one: &[u8], two: &[u8]) -> usize {
    let pairs = one.iter().rev().zip(two.iter().rev());
    pairs.take_while(|(a, b)| a == b).count()
}

fn hash_block(block: &[u8]) -> u64 {
    block.iter().fold(0, |hash: u64, byte| {
        hash.wrapping_mul(FACTOR).wrapping_add(u64::from(*byte))
    })
}

/// The weight of a block's first byte in its hash.
const FIRST_WEIGHT: u64 = {
    let mut weight: u64 = 1;
    let mut count = 1;
    while count < BLOCK {
        weight = weight.wrapping_mul(FACTOR);
        count += 1;
    }
    weight
};

/// The hash of the block that begins one byte later.
fn roll_hash(hash: u64, first: u8, next: u8) -> u64 {
    hash.wrapping_sub(u64::from(first).wrapping_mul(FIRST_WEIGHT))
        .wrapping_mul(FACTOR)
        .wrapping_add(u64::from(next))
}

/// Where blocks of a base stand.
struct BlockIndex(HashMap<u64, u32>);

impl BlockIndex {
    fn new(base: &[u8]) -> Self {
        let step = base.len().div_ceil(MAX_BLOCKS).max(BLOCK);
        let mut blocks = HashMap::with_capacity(base.len() / step);
        let starts = (0..base.len().saturating_sub(BLOCK - 1)).step_by(step);
        for start in starts {
            if let (Some(block), Ok(at)) = (base.get(start..start + BLOCK), u32::try_from(start)) {
                // Of equal blocks the first: a repetition is one long copy then.
                blocks.entry(hash_block(block)).or_insert(at);
            }
        }
        Self(blocks)
    }

    fn find_block(&self, hash: u64) -> Option<usize> {
        self.0.get(&hash).map(|at| *at as usize)
    }
}

/// Writes copies and literals apart from each other, which compresses better.
#[derive(Default)]
struct DeltaWriter {
    operations: Vec<u8>,
    literals: Vec<u8>,
    /// Where the last copy ended in the base: the next one is near, as a rule.
    end: usize,
}

impl DeltaWriter {
    fn write_copy(&mut self, literal: &[u8], from: usize, length: usize) {
        write_number(&mut self.operations, literal.len() as u64);
        let signed = |at: usize| i64::try_from(at).unwrap_or(i64::MAX);
        let distance = signed(from) - signed(self.end);
        // Zigzag: small numbers of either sign are short.
        let folded = (distance << 1) ^ (distance >> 63);
        write_number(&mut self.operations, folded.cast_unsigned());
        write_number(&mut self.operations, length as u64);
        self.literals.extend_from_slice(literal);
        self.end = from + length;
    }

    fn finish(mut self, rest: &[u8]) -> Vec<u8> {
        self.literals.extend_from_slice(rest);
        let mut plain = Vec::with_capacity(self.operations.len() + self.literals.len() + 4);
        write_number(&mut plain, self.operations.len() as u64);
        plain.extend_from_slice(&self.operations);
        plain.extend_from_slice(&self.literals);
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        // Writing into memory cannot fail.
        let _ = encoder.write_all(&plain);
        encoder.finish().unwrap_or_default()
    }
}

pub(super) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads numbers of variable length.
pub(super) struct Varints<'a>(pub(super) &'a [u8]);

impl Varints<'_> {
    pub(super) fn read_number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn read_signed(&mut self) -> Option<i64> {
        let folded = self.read_number()?;
        let half = (folded >> 1).cast_signed();
        Some(if folded & 1 == 0 { half } else { !half })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_appended_is_all_that_is_written() {
        let base: String = (0..2_000)
            .map(|n| format!("line {n} of a chat, "))
            .collect();
        let text = format!("{base}and one more sentence that is new.");
        let delta = encode_delta(base.as_bytes(), text.as_bytes());
        assert!(delta.len() < 70, "{} bytes", delta.len());
        let back = decode_delta(base.as_bytes(), &delta, text.len()).unwrap();
        assert_eq!(back, text.as_bytes());
        // Another base gives another text or none, and never a panic.
        let other = decode_delta(b"something else", &delta, text.len());
        assert_ne!(other.as_deref(), Some(text.as_bytes()));
    }

    proptest! {
        #[test]
        fn any_text_comes_back_from_any_base(
            words in prop::collection::vec("[a-d]{1,12}|.{0,6}", 0..120),
            cuts in prop::collection::vec((0..120_usize, 0..120_usize), 0..8),
        ) {
            let base = words.concat().into_bytes();
            let mut text = Vec::new();
            for (from, to) in cuts {
                let (from, to) = (from.min(words.len()), to.min(words.len()));
                text.extend_from_slice(words.get(from..to).unwrap_or_default().concat().as_bytes());
                text.extend_from_slice(b"between");
            }
            let delta = encode_delta(&base, &text);
            prop_assert_eq!(decode_delta(&base, &delta, text.len()), Some(text));
        }

        #[test]
        fn damaged_bytes_are_no_text(bytes in prop::collection::vec(any::<u8>(), 0..80), length in 0..500_usize) {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&bytes).unwrap();
            let packed = encoder.finish().unwrap();
            for delta in [&bytes, &packed] {
                let found = decode_delta(b"a base of some bytes, any will do", delta, length);
                prop_assert!(found.is_none_or(|text| text.len() == length));
            }
        }
    }
}
