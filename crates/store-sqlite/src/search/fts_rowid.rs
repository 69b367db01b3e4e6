//! Rowids of the full-text index, derived from the keys of nodes.
//!
//! For each term, FTS5 stores the distances between the rowids of its nodes, seven bits a byte. The
//! keys of two conversations are at least 2³² apart, so a word that many short conversations share
//! would cost five bytes in each of them. The first [`NEAR`] nodes of a conversation therefore get
//! rowids in a block of [`NEAR`], at a cost of two bytes. Later nodes get their key plus an offset,
//! after all of those.
//!
//! The triggers of `0008_space.sql` implement the same rule.

use std::ops::RangeInclusive;

use crate::rows::path::packed_key;

/// Number of nodes of each conversation with a rowid in its block.
const NEAR: u32 = 1 << NEAR_BITS;
const NEAR_BITS: u32 = 10;
/// Offset of the rowids of later nodes, larger than all blocks: conversations are numbered below
/// 2³¹.
const FAR_OFFSET: i64 = 1 << (31 + NEAR_BITS);

/// Returns the rowid of the node at a key.
pub(crate) fn of_key(key: i64) -> i64 {
    let seq = key & i64::from(u32::MAX);
    if seq < i64::from(NEAR) {
        (key >> 32) << NEAR_BITS | seq
    } else {
        key + FAR_OFFSET
    }
}

/// Returns the key of the node with a rowid.
pub(crate) fn key_of(entry: i64) -> i64 {
    if entry < FAR_OFFSET {
        (entry >> NEAR_BITS) << 32 | entry & i64::from(NEAR - 1)
    } else {
        entry - FAR_OFFSET
    }
}

/// Returns the ranges of rowids of some consecutive conversations, later nodes first. `longest` is
/// the largest number of nodes of one of them.
pub(crate) fn of_conversations(
    numbers: &RangeInclusive<u32>,
    longest: u32,
) -> impl Iterator<Item = RangeInclusive<i64>> + use<> {
    let (from, to) = (*numbers.start(), *numbers.end());
    let part = move |first, last| of_key(packed_key(from, first))..=of_key(packed_key(to, last));
    let far = (longest > NEAR).then(|| part(NEAR, u32::MAX));
    far.into_iter().chain([part(0, NEAR - 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_number_of_its_own_within_its_conversation() {
        let conversations = [0, 1, 2, 3000, (1 << 31) - 1025];
        let mut all = Vec::new();
        for no in conversations {
            for seq in [0, 1, NEAR - 1, NEAR, NEAR + 1, u32::MAX] {
                let entry = of_key(packed_key(no, seq));
                assert_eq!(key_of(entry), packed_key(no, seq), "{no} {seq}");
                for other in conversations {
                    let found = |numbers| {
                        of_conversations(&numbers, u32::MAX).any(|part| part.contains(&entry))
                    };
                    assert_eq!(found(other..=other), other == no, "{no} {seq} in {other}");
                    assert_eq!(found(0..=other), other >= no, "{no} {seq} up to {other}");
                }
                all.push(entry);
            }
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_short_conversation_is_one_range() {
        assert_eq!(of_conversations(&(7..=7), NEAR).count(), 1);
        assert_eq!(of_conversations(&(7..=7), NEAR + 1).count(), 2);
    }
}
