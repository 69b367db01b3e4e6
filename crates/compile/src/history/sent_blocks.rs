//! What is sent of a history, without listing it: what is kept of rounds that are cut, then the rest.

use contexture_ir::{ContentHash, concat_hashes, finish_content_hash};

use crate::blocks::LoweredBlock;
use crate::growing::{PrefixHashes, Totals};
use crate::history::rounds::{BlockTotals, History, RequiredMessage};

/// The blocks that are sent of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentBlocks<'h> {
    kept: &'h [RequiredMessage],
    history: &'h History,
    /// The first block of the rest.
    first: usize,
}

impl<'h> SentBlocks<'h> {
    pub(crate) const fn new(
        kept: &'h [RequiredMessage],
        history: &'h History,
        first: usize,
    ) -> Self {
        Self {
            kept,
            history,
            first,
        }
    }

    /// What is kept of rounds that are cut.
    pub(crate) fn kept(self) -> impl DoubleEndedIterator<Item = &'h LoweredBlock> + Clone {
        self.kept.iter().flat_map(|kept| &kept.blocks)
    }

    /// The blocks that are not cut.
    pub(crate) fn rest(self) -> &'h [LoweredBlock] {
        self.history.blocks.get(self.first..).unwrap_or_default()
    }

    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = &'h LoweredBlock> + Clone {
        self.kept().chain(self.rest())
    }

    /// The first block of the rest.
    pub(crate) const fn first(self) -> usize {
        self.first
    }

    /// The totals of the rest.
    pub(crate) fn rest_totals(self) -> BlockTotals {
        self.history
            .block_totals(self.first..self.history.blocks.len())
    }

    pub(crate) fn len(self) -> usize {
        self.kept().count() + self.rest().len()
    }

    /// The totals of all of them.
    pub(crate) fn totals(self) -> BlockTotals {
        self.totals_of_first(self.len())
    }

    /// The totals of the first so many.
    pub(crate) fn totals_of_first(self, count: usize) -> BlockTotals {
        let kept = self.kept().count();
        let mut sum = BlockTotals::of_blocks(self.kept().take(count));
        let rest = count.saturating_sub(kept).min(self.rest().len());
        sum.add(&self.history.block_totals(self.first..self.first + rest));
        sum
    }

    /// How many of the first blocks are of entries before one.
    pub(crate) fn count_before(self, entry: usize) -> usize {
        let is_before = |block: &&LoweredBlock| block.entries.end <= entry;
        let kept = self.kept().take_while(is_before).count();
        if kept < self.kept().count() {
            return kept;
        }
        kept + self.rest().partition_point(|block| is_before(&block))
    }

    /// Brings the hashes over beginnings of what is sent up to date. The newest round is not among them: it may still
    /// change.
    pub(crate) fn follow_hashes(self, hashes: &mut PrefixHashes) {
        let mut before = blake3::Hasher::new();
        before.update(&concat_hashes(self.kept().map(|block| &block.key)));
        let newest = self.history.rounds.last();
        let end = newest.map_or(0, |round| round.blocks.start);
        let settled = end.saturating_sub(self.first);
        hashes.follow(&before, self.first, settled, |at| self.rest_key(at));
    }

    /// The hash over the first so many blocks.
    pub(crate) fn prefix_hash(self, hashes: &PrefixHashes, count: usize) -> ContentHash {
        let kept = self.kept().count();
        let Some(rest) = count.checked_sub(kept) else {
            let own = self.kept().take(count).map(|block| &block.key);
            return ContentHash::of(&concat_hashes(own));
        };
        let known = rest.min(hashes.len());
        let mut state = hashes.state_after(known, |at| self.rest_key(at));
        let new = (known..rest).filter_map(|at| self.rest_key(at));
        state.update(&concat_hashes(new));
        finish_content_hash(&state)
    }

    fn rest_key(self, at: usize) -> Option<&'h ContentHash> {
        self.rest().get(at).map(|block| &block.key)
    }
}
