//! Hashes over ever longer beginnings of a list of hashes.

use contexture_ir::{ContentHash, concat_hashes, finish_content_hash};

/// Behind how many hashes the state of the hasher is kept: a state takes 2 KB, hashing so many 16-byte hashes a few
/// microseconds.
const EVERY: usize = 512;

/// The hash over what stands before a list and every beginning of it. The list only grows; if what stands before it
/// changes, all is hashed anew.
#[derive(Debug, Default)]
pub(crate) struct PrefixHashes {
    /// What stands before the list, and where the list begins in a longer one.
    seed: Option<(ContentHash, usize)>,
    /// The states behind 0, [`EVERY`], 2 · [`EVERY`] … hashes.
    states: Vec<blake3::Hasher>,
    /// The state behind all.
    end: blake3::Hasher,
    count: usize,
}

impl PrefixHashes {
    /// Follows a list of so many hashes behind what `before` has hashed. `start` is where it begins in a longer list, which
    /// tells apart two lists behind the same; `hash` gives its hashes.
    pub(crate) fn follow<'h>(
        &mut self,
        before: &blake3::Hasher,
        start: usize,
        count: usize,
        hash: impl Fn(usize) -> Option<&'h ContentHash>,
    ) {
        let seed = Some((finish_content_hash(before), start));
        if self.seed != seed || self.count > count {
            *self = Self {
                seed,
                states: vec![before.clone()],
                end: before.clone(),
                count: 0,
            };
        }
        while self.count < count {
            let until = (self.count / EVERY + 1).saturating_mul(EVERY).min(count);
            let new = (self.count..until).filter_map(&hash);
            self.end.update(&concat_hashes(new));
            self.count = until;
            if until.is_multiple_of(EVERY) {
                self.states.push(self.end.clone());
            }
        }
    }

    /// How many hashes are followed.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// The state behind the first so many hashes of the list that was followed last.
    pub(crate) fn state_after<'h>(
        &self,
        count: usize,
        hash: impl Fn(usize) -> Option<&'h ContentHash>,
    ) -> blake3::Hasher {
        let (group, count) = (count / EVERY, count.min(self.count));
        match self.states.get(group) {
            Some(state) if count < self.count => {
                let mut state = state.clone();
                let rest = (group * EVERY..count).filter_map(hash);
                state.update(&concat_hashes(rest));
                state
            }
            _ => self.end.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_has_the_hash_of_a_walk() {
        let keys: Vec<ContentHash> = (0..EVERY * 2 + 9)
            .map(|at| ContentHash::of(&at.to_le_bytes()))
            .collect();
        let mut hashes = PrefixHashes::default();
        // The list grows; then something else stands before it, or it begins elsewhere, and is shorter.
        for (before, start, count) in [
            ("a", 0, 3),
            ("a", 0, EVERY - 1),
            ("a", 0, EVERY * 2 + 9),
            ("b", 0, EVERY + 1),
            ("b", 7, EVERY + 1),
            ("b", 7, EVERY),
        ] {
            let mut seed = blake3::Hasher::new();
            seed.update(before.as_bytes());
            let key = |at: usize| keys.get(start + at);
            hashes.follow(&seed, start, count, key);
            for end in [0, 1, 2, EVERY - 1, EVERY, EVERY + 1, count] {
                let mut walked = seed.clone();
                let end = end.min(count);
                walked.update(&concat_hashes(&keys[start..start + end]));
                let state = hashes.state_after(end, key);
                assert_eq!(
                    finish_content_hash(&state),
                    finish_content_hash(&walked),
                    "{before} {start} {end} of {count}"
                );
            }
        }
    }
}
