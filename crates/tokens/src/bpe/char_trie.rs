//! Steps through the prefix tree by whole three-byte characters.
//!
//! Chinese, Japanese and Korean text would take three look-ups per character in the tree of bytes, nearly all of them in
//! memory that is in no cache. This table takes one, and is small. It is exact because it says where it must not be
//! used: a node is *open* if some token below it does not go on by a whole three-byte character, and from an open
//! node the walk goes on by bytes.

/// The table of steps; keys are (node, code point), see [`step_key`].
#[derive(Debug)]
pub(crate) struct CharTrie {
    slots: Vec<(u64, u32)>,
    /// One bit per node.
    open: Vec<u64>,
}

const EMPTY: u64 = u64::MAX;

impl CharTrie {
    /// Makes a table for up to `steps` steps between `nodes` nodes.
    pub(crate) fn with_capacity(steps: usize, nodes: usize) -> Self {
        // Half full at most: probe chains stay short even for keys that collide.
        Self {
            slots: vec![(EMPTY, 0); steps.saturating_mul(2).max(8).next_power_of_two()],
            open: vec![0; nodes / 64 + 1],
        }
    }

    /// The node that one character leads to.
    #[inline]
    pub(crate) fn next_node(&self, node: u32, character: usize) -> Option<u32> {
        let key = step_key(node, character);
        let mask = self.slots.len() - 1;
        let mut at = home_slot(key) & mask;
        for _ in 0..self.slots.len() {
            let (found, value) = *self.slots.get(at)?;
            if found == key {
                return Some(value);
            }
            if found == EMPTY {
                return None;
            }
            at = (at + 1) & mask;
        }
        // A full table without the key; building never fills it, so this only keeps the loop finite.
        None
    }

    /// Adds a step unless it is there; the caller stays within the capacity it named.
    pub(crate) fn insert_step(&mut self, node: u32, character: usize, next: u32) {
        let key = step_key(node, character);
        let mask = self.slots.len() - 1;
        let mut at = home_slot(key) & mask;
        for _ in 0..self.slots.len() {
            match self.slots.get_mut(at) {
                Some(slot) if slot.0 == EMPTY || slot.0 == key => {
                    *slot = (key, next);
                    return;
                }
                _ => at = (at + 1) & mask,
            }
        }
        debug_assert!(false, "the table of steps is full");
    }

    /// Whether the walk must go on by bytes here.
    #[inline]
    pub(crate) fn is_open(&self, node: u32) -> bool {
        let bits = self.open.get(node as usize / 64).copied();
        bits.is_none_or(|bits| bits >> (node % 64) & 1 == 1)
    }

    /// Marks a node as open.
    pub(crate) fn mark_open(&mut self, node: u32) {
        if let Some(bits) = self.open.get_mut(node as usize / 64) {
            *bits |= 1 << (node % 64);
        }
    }
}

#[inline]
fn step_key(node: u32, character: usize) -> u64 {
    u64::from(node) << 16 | character as u64
}

#[inline]
fn home_slot(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}
