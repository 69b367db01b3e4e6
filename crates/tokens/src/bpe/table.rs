//! Open-addressing tables with one machine word per slot, small enough to stay in the caches.
//!
//! Built once, never changed, looked up millions of times a second. The tables are written only from the embedded
//! vocabulary; text is only ever looked up, so no text can lengthen a probe chain. Not here: what the keys mean.

/// 2^64 divided by the golden ratio: spreads consecutive keys over the whole table.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A map from 32-bit keys to 32-bit values, key and value side by side.
#[derive(Debug)]
pub(crate) struct CompactMap {
    slots: Vec<u64>,
}

impl CompactMap {
    /// The key that cannot be stored.
    const EMPTY: u64 = u64::MAX;

    /// Makes an empty table that will hold `capacity` entries at most half full.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self::with_slots(slot_count(capacity))
    }

    /// Makes an empty table of so many slots, which holds as many entries, the more slowly the fuller it is.
    pub(crate) fn with_slots(slots: usize) -> Self {
        Self {
            slots: vec![Self::EMPTY; slots.max(8)],
        }
    }

    /// The value stored under `key`, if any.
    #[inline]
    pub(crate) fn get(&self, key: u32) -> Option<u32> {
        let mut at = hash_slot(u64::from(key), self.slots.len());
        for _ in 0..self.slots.len() {
            let slot = *self.slots.get(at)?;
            if (slot >> 32) as u32 == key {
                return Some(slot as u32);
            }
            if slot == Self::EMPTY {
                return None;
            }
            at = next_slot(at, self.slots.len());
        }
        None
    }

    /// Adds an entry under a new key; the caller stays within the capacity it named.
    pub(crate) fn insert(&mut self, key: u32, value: u32) {
        let mut at = hash_slot(u64::from(key), self.slots.len());
        for _ in 0..self.slots.len() {
            match self.slots.get_mut(at) {
                Some(slot) if *slot == Self::EMPTY => {
                    *slot = u64::from(key) << 32 | u64::from(value);
                    return;
                }
                _ => at = next_slot(at, self.slots.len()),
            }
        }
        debug_assert!(false, "the table is full");
    }
}

/// A map from hashes to 20-bit values: a slot keeps the value and twelve bits of the hash, and the caller says
/// whether a value found is the one it looks for.
#[derive(Debug)]
pub(crate) struct HashIndex {
    slots: Vec<u32>,
    /// One bit for each of many classes of hashes: mostly says "not here" without a search.
    filter: Vec<u64>,
}

impl HashIndex {
    /// Values must be smaller than this.
    pub(crate) const LIMIT: u32 = (1 << Self::VALUE_BITS) - 1;
    const VALUE_BITS: u32 = 20;
    const EMPTY: u32 = u32::MAX;

    /// Makes an empty index that will hold `capacity` entries at most half full.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            slots: vec![Self::EMPTY; slot_count(capacity)],
            filter: vec![0; slot_count(capacity) / 8],
        }
    }

    /// Whether an entry under `hash` is possible; wrong in at most one of eight cases.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        let bit = hash_slot(hash, self.filter.len() * 64);
        self.filter
            .get(bit / 64)
            .is_some_and(|bits| bits >> (bit % 64) & 1 == 1)
    }

    /// The first value stored under `hash` that `accept` takes.
    #[inline]
    pub(crate) fn find_value(&self, hash: u64, mut accept: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = hash_tag(hash);
        let mut at = hash_slot(hash, self.slots.len());
        for _ in 0..self.slots.len() {
            let slot = *self.slots.get(at)?;
            if slot == Self::EMPTY {
                return None;
            }
            let value = slot & Self::LIMIT;
            if slot >> Self::VALUE_BITS == tag && accept(value) {
                return Some(value);
            }
            at = next_slot(at, self.slots.len());
        }
        None
    }

    /// Adds an entry; the caller stays within the capacity it named.
    pub(crate) fn insert(&mut self, hash: u64, value: u32) {
        let bit = hash_slot(hash, self.filter.len() * 64);
        if let Some(bits) = self.filter.get_mut(bit / 64) {
            *bits |= 1 << (bit % 64);
        }
        let mut at = hash_slot(hash, self.slots.len());
        for _ in 0..self.slots.len() {
            match self.slots.get_mut(at) {
                Some(slot) if *slot == Self::EMPTY => {
                    *slot = hash_tag(hash) << Self::VALUE_BITS | (value & Self::LIMIT);
                    return;
                }
                _ => at = next_slot(at, self.slots.len()),
            }
        }
        debug_assert!(false, "the index is full");
    }
}

/// Twelve bits of a hash, other than those that choose the slot.
#[inline]
fn hash_tag(hash: u64) -> u32 {
    (hash.wrapping_mul(SPREAD) >> 16) as u32 & 0xfff
}

/// Maps a hash to a slot: the upper half of its spread, scaled to the number of slots.
#[inline]
pub(crate) fn hash_slot(hash: u64, slots: usize) -> usize {
    (((hash.wrapping_mul(SPREAD) >> 32) * slots as u64) >> 32) as usize
}

#[inline]
fn next_slot(at: usize, slots: usize) -> usize {
    if at + 1 < slots { at + 1 } else { 0 }
}

fn slot_count(capacity: usize) -> usize {
    capacity.saturating_mul(2).max(8)
}
