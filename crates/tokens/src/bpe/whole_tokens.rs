//! Which byte strings are whole tokens?
//!
//! Most pieces of ordinary text are one token of a few bytes, so this is the question asked most. A string of up to
//! seven bytes is its own key in a table of plain words, and the answer takes one look at one cache line; longer ones
//! are found by hash and compared by the caller. Not here: the bytes of tokens.

use crate::bpe::table::{HashIndex, hash_slot};

/// Strings up to this length are their own keys.
const SHORT: usize = 7;

/// A map from byte strings to tokens.
#[derive(Debug)]
pub(crate) struct WholeTokens {
    /// The key of a short string, or 0.
    short: Vec<u64>,
    /// The token of each key in `short`; apart, as counting does not need it.
    tokens: Vec<u32>,
    long: HashIndex,
}

impl WholeTokens {
    /// Makes an empty map for the strings of these lengths.
    pub(crate) fn sized_for<'w>(words: impl Iterator<Item = &'w [u8]>) -> Self {
        let (mut short, mut long) = (0usize, 0usize);
        for word in words {
            match short_key(word) {
                Some(_) => short += 1,
                None => long += 1,
            }
        }
        let slots = short.saturating_mul(2).max(8);
        Self {
            short: vec![0; slots],
            tokens: vec![0; slots],
            long: HashIndex::with_capacity(long),
        }
    }

    /// Adds a token; the caller stays within what it announced.
    pub(crate) fn insert(&mut self, word: &[u8], token: u32) {
        match short_key(word) {
            Some(key) => {
                if let Some(at) = self.find_slot(key, 0)
                    && let (Some(slot), Some(value)) =
                        (self.short.get_mut(at), self.tokens.get_mut(at))
                {
                    (*slot, *value) = (key, token);
                }
            }
            None => self.long.insert(hash_bytes(word), token),
        }
    }

    /// Whether the string is a token; `is_it` says whether a long string's candidate is it.
    #[inline]
    pub(crate) fn contains(&self, word: &[u8], is_it: impl FnMut(u32) -> bool) -> bool {
        match short_key(word) {
            Some(key) => self.find_slot(key, key).is_some(),
            None => self.long.find_value(hash_bytes(word), is_it).is_some(),
        }
    }

    /// The token that the string is; `is_it` says whether a long string's candidate is it.
    #[inline]
    pub(crate) fn get(&self, word: &[u8], is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        match short_key(word) {
            Some(key) => self.tokens.get(self.find_slot(key, key)?).copied(),
            None => self.long.find_value(hash_bytes(word), is_it),
        }
    }

    /// The first slot from the home of `key` on that holds `wanted`; an empty one ends the search.
    #[inline]
    fn find_slot(&self, key: u64, wanted: u64) -> Option<usize> {
        let slots = self.short.len();
        let mut at = hash_slot(key, slots);
        for _ in 0..slots {
            let found = *self.short.get(at)?;
            if found == wanted {
                return Some(at);
            }
            if found == 0 {
                return None;
            }
            at = if at + 1 < slots { at + 1 } else { 0 };
        }
        None
    }
}

/// The bytes of a short string with its length above them; `None` for long strings. Never 0 but for the empty string,
/// which is no token.
#[inline]
fn short_key(word: &[u8]) -> Option<u64> {
    if word.len() > SHORT {
        return None;
    }
    let bytes = word.iter().fold(0, |key, &byte| key << 8 | u64::from(byte));
    Some((word.len() as u64) << 56 | bytes)
}

/// A hash of a string's bytes; equal hashes are told apart by comparing bytes.
#[inline]
fn hash_bytes(bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0xD6E8_FEB8_6659_FD93;
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = chunk.try_into().map_or(0, u64::from_le_bytes);
        hash = (hash ^ word).wrapping_mul(MULTIPLIER).rotate_left(29);
    }
    let word = chunks
        .remainder()
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte));
    hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 32
}
