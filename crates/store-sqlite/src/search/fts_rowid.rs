//! Row numbers of the full-text index, derived from the keys of nodes.
//!
//! FTS5 stores the distance between the numbers of the nodes that have a term, seven bits a byte.
//! The keys of nodes lie 2³² apart from one conversation to the next, so a word that many short
//! conversations have would cost five bytes in each of them. The first [`NEAR`] nodes of a
//! conversation therefore get numbers that lie [`NEAR`] apart, which costs two. Later nodes keep
//! their keys, behind all of those.
//!
//! The rule stands in the triggers of `0008_space.sql` too.

use std::ops::RangeInclusive;

use crate::rows::path::packed_key;

/// How many nodes of each conversation are numbered closely.
const NEAR: u32 = 1 << NEAR_BITS;
const NEAR_BITS: u32 = 10;
/// The numbers from here on are keys, so much larger: conversations are numbered below 2³¹.
const FAR: i64 = 1 << (31 + NEAR_BITS);

/// The number of the node at a key.
pub(crate) fn of_key(key: i64) -> i64 {
    let seq = key & i64::from(u32::MAX);
    if seq < i64::from(NEAR) {
        (key >> 32) << NEAR_BITS | seq
    } else {
        key + FAR
    }
}

/// The key of the node that has a number.
pub(crate) fn key_of(entry: i64) -> i64 {
    if entry < FAR {
        (entry >> NEAR_BITS) << 32 | entry & i64::from(NEAR - 1)
    } else {
        entry - FAR
    }
}

/// The numbers that nodes of conversations can have, which follow each other and of which the longest
/// has so many nodes: those of later nodes first.
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
