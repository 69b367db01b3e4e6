//! A vocabulary ready to count with: merges, splits, whole words and prefixes.
//!
//! Everything is derived from the packed merges when a vocabulary is first used, and is immutable from then on.
//! Invariant: tokens are numbered by rank, so "merged earlier" is "smaller number". Not here: the counting itself.

use super::packed::{BYTES, Merges, PackedError};
use super::table::HashIndex;
use super::trie::{NONE, Trie, TrieBuilder};
use super::whole_tokens::WholeTokens;

/// The tables of one byte-pair encoding.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    /// The bytes of all tokens, one after the other.
    bytes: Vec<u8>,
    entries: Vec<TokenEntry>,
    /// (left, right) → the token they merge to.
    merges: HashIndex,
    /// A token's bytes → the token.
    words: WholeTokens,
    trie: Trie,
    longest: usize,
}

/// What there is to know about one token, in sixteen bytes because it is asked together.
#[derive(Debug, Clone, Copy)]
struct TokenEntry {
    /// Where the token begins in the bytes of all tokens.
    start: u32,
    /// The token's length in bytes, and above [`TokenEntry::LENGTH_BITS`] the longest token that is a proper prefix of
    /// it, plus one; 0 if there is none.
    length_and_shorter: u32,
    /// The two parts of a merged token; a byte's parts are itself.
    left: u32,
    right: u32,
}

impl TokenEntry {
    /// Lengths are at most 1,024, token numbers have 20 bits.
    const LENGTH_BITS: u32 = 11;

    #[inline]
    fn merge_parts(&self) -> (u32, u32) {
        (self.left, self.right)
    }

    #[inline]
    fn byte_length(&self) -> usize {
        (self.length_and_shorter & ((1 << Self::LENGTH_BITS) - 1)) as usize
    }

    #[inline]
    fn shorter_prefix(&self) -> u32 {
        // None is stored as 0, so that this yields `NONE`.
        (self.length_and_shorter >> Self::LENGTH_BITS).wrapping_sub(1)
    }
}

impl Vocabulary {
    /// Builds the tables from a packed vocabulary.
    pub(crate) fn unpack(packed: &[u8]) -> Result<Self, PackedError> {
        Ok(Self::from_merges(&Merges::unpack(packed)?))
    }

    /// The vocabulary in which every byte is a token.
    pub(crate) fn of_bytes() -> Self {
        Self::from_merges(&Merges {
            bytes: std::array::from_fn(|byte| byte as u8),
            parts: Vec::new(),
        })
    }

    /// Builds the tables from merges.
    fn from_merges(source: &Merges) -> Self {
        let count = source.bytes.len() + source.parts.len();
        let (bytes, starts) = expand_token_bytes(source);
        let builder = build_prefix_tree(source, &bytes, &starts);
        let mut merges = HashIndex::with_capacity(count);
        let mut words = WholeTokens::sized_for(token_slices(&bytes, &starts));
        let mut entries = Vec::with_capacity(count);
        let mut longest = 0;
        let parts = (0..BYTES).map(|byte| (byte, byte));
        let parts = parts.chain(source.parts.iter().copied());
        let shorter = builder.longest_proper_prefixes(count);
        for (((token, word), (left, right)), shorter) in (0..)
            .zip(token_slices(&bytes, &starts))
            .zip(parts)
            .zip(shorter)
        {
            // Single bytes are not merged from anything.
            if token >= BYTES {
                merges.insert(merge_key(left, right), token);
            }
            words.insert(word, token);
            longest = longest.max(word.len());
            entries.push(TokenEntry {
                start: starts.get(token as usize).copied().unwrap_or(0),
                length_and_shorter: word.len() as u32
                    | shorter.wrapping_add(1) << TokenEntry::LENGTH_BITS,
                left,
                right,
            });
        }
        Self {
            trie: builder.finish(count as u32, token_slices(&bytes, &starts)),
            bytes,
            entries,
            merges,
            words,
            longest,
        }
    }

    /// Length in bytes of the longest token.
    pub(crate) fn longest_token(&self) -> usize {
        self.longest
    }

    /// The bytes of a token, none for a number that is no token.
    #[inline]
    pub(crate) fn token_bytes(&self, token: u32) -> &[u8] {
        self.entries
            .get(token as usize)
            .and_then(|entry| {
                let start = entry.start as usize;
                self.bytes.get(start..start + entry.byte_length())
            })
            .unwrap_or_default()
    }

    /// The length of a token in bytes, 0 for a number that is no token.
    #[inline]
    pub(crate) fn token_length(&self, token: u32) -> usize {
        self.entries
            .get(token as usize)
            .map_or(0, TokenEntry::byte_length)
    }

    /// The token that is exactly these bytes.
    #[inline]
    pub(crate) fn whole_token(&self, bytes: &[u8]) -> Option<u32> {
        // Longer strings cannot be tokens and need no hash.
        if bytes.is_empty() || bytes.len() > self.longest {
            return None;
        }
        self.words
            .get(bytes, |token| self.token_bytes(token) == bytes)
    }

    /// Whether these bytes are exactly one token.
    #[inline]
    pub(crate) fn is_whole_token(&self, bytes: &[u8]) -> bool {
        !bytes.is_empty()
            && bytes.len() <= self.longest
            && self
                .words
                .contains(bytes, |token| self.token_bytes(token) == bytes)
    }

    /// The longest token that `bytes` begin with; [`NONE`] for no bytes.
    #[inline]
    pub(crate) fn longest_prefix(&self, bytes: &[u8]) -> u32 {
        self.trie.longest_prefix(bytes)
    }

    /// The next shorter token that `token` begins with, or [`NONE`].
    #[inline]
    pub(crate) fn shorter_prefix(&self, token: u32) -> u32 {
        self.entries
            .get(token as usize)
            .map_or(NONE, TokenEntry::shorter_prefix)
    }

    /// The token that two tokens merge to.
    #[inline]
    fn merged_token(&self, left: u32, right: u32) -> Option<u32> {
        let pair = merge_key(left, right);
        // Most pairs never merge; the filter answers for them without touching the index.
        if !self.merges.may_contain(pair) {
            return None;
        }
        self.merges.find_value(pair, |token| {
            self.entries
                .get(token as usize)
                .is_some_and(|entry| entry.left == left && entry.right == right)
        })
    }

    /// Whether two tokens can stand side by side: whether their joined bytes encode to just these two.
    ///
    /// Undoes the merges inside both tokens, latest first, and asks at each step whether the encoding would rather
    /// have merged across the boundary. `limit` is the rank from which on a merge across comes too late; on equal
    /// rank the merge further left wins.
    #[inline]
    pub(crate) fn can_be_adjacent(&self, mut left: u32, mut right: u32) -> bool {
        let mut limit = u32::MAX;
        loop {
            if let Some(across) = self.merged_token(left, right)
                && across < limit
            {
                return false;
            }
            if left < BYTES && right < BYTES {
                return true;
            }
            // Which side is undone is as good as random, so this is written for selection without branching.
            let undo_left = left > right;
            let latest = left.max(right);
            let parts = self
                .entries
                .get(latest as usize)
                .map_or((0, 0), TokenEntry::merge_parts);
            limit = latest + u32::from(!undo_left);
            left = if undo_left { parts.1 } else { left };
            right = if undo_left { right } else { parts.0 };
        }
    }
}

/// Writes out the bytes of every token.
fn expand_token_bytes(source: &Merges) -> (Vec<u8>, Vec<u32>) {
    let count = source.bytes.len() + source.parts.len();
    let mut bytes = Vec::with_capacity(count * 8);
    let mut starts = Vec::with_capacity(count + 1);
    starts.push(0);
    for &byte in &source.bytes {
        bytes.push(byte);
        starts.push(bytes.len() as u32);
    }
    for &(left, right) in &source.parts {
        for part in [left as usize, right as usize] {
            if let (Some(&from), Some(&to)) = (starts.get(part), starts.get(part + 1)) {
                bytes.extend_from_within(from as usize..to as usize);
            }
        }
        starts.push(bytes.len() as u32);
    }
    (bytes, starts)
}

fn token_slices<'a>(bytes: &'a [u8], starts: &'a [u32]) -> impl Iterator<Item = &'a [u8]> + Clone {
    starts
        .iter()
        .zip(starts.iter().skip(1))
        .map(|(&from, &to)| bytes.get(from as usize..to as usize).unwrap_or_default())
}

/// Adds all tokens to a prefix tree, each below the node of its left part.
fn build_prefix_tree(source: &Merges, bytes: &[u8], starts: &[u32]) -> TrieBuilder {
    let right = |token: u32| {
        let at = token as usize;
        match (starts.get(at), starts.get(at + 1)) {
            (Some(&from), Some(&to)) => bytes.get(from as usize..to as usize).unwrap_or_default(),
            _ => &[],
        }
    };
    // Every token adds at most the bytes of its right part.
    let nodes = source
        .parts
        .iter()
        .map(|parts| right(parts.1).len())
        .sum::<usize>();
    let nodes = nodes + source.bytes.len();
    let mut builder = TrieBuilder::with_capacity(nodes);
    let mut ends: Vec<u32> = Vec::with_capacity(starts.len());
    for (token, &byte) in (0..).zip(&source.bytes) {
        ends.push(builder.insert_token(None, &[byte], token));
    }
    for (token, &(left, tail)) in (BYTES..).zip(&source.parts) {
        let node = ends.get(left as usize).copied();
        ends.push(builder.insert_token(node, right(tail), token));
    }
    builder
}

fn merge_key(left: u32, right: u32) -> u64 {
    u64::from(left) << 20 | u64::from(right)
}
