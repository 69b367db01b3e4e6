//! Chance that is the same in every run, or that a printed seed repeats.

use contexture_store_testkit::test_seed;

/// SplitMix64: its state is a counter, so every seed will do.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// Another one in every run, see [`test_seed`].
    pub(crate) fn of_run() -> Self {
        Self::of(test_seed())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Heads or tails.
    pub(crate) fn toss(&mut self) -> bool {
        self.next() & 1 == 1
    }
}
