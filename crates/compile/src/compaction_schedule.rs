//! The laws of compaction: how far a history is compacted, which earlier compactions the next one takes in, and how large
//! what stands for them may be.
//!
//! * All manifests in effect together take at most [`MANIFEST_PERCENT`] of the window.
//! * A compaction gains at least 30 % of what it covers ([`gains_enough`]); otherwise it is not made.
//! * After it there is room for some steps like those before ([`retained_tokens`]).
//! * Of a run of n items no item is summarised more than log₂(n) times ([`absorbed_count`]).
//!
//! Used for stored conversations and for callers who keep the history themselves alike. Not here: where a path can be cut.

use contexture_condense::Manifest;

use crate::input::StandingRulesPolicy;

/// How much of the window all manifests in effect may take, in per cent.
pub const MANIFEST_PERCENT: u8 = 15;

/// From so many compactions in effect on, the next one takes some of them in, on a short path …
const STANDING: usize = 3;
/// … and from so many on in any case.
const MOST_STANDING: usize = 8;
/// A compaction covers at least so many items, as a rule: fewer are not worth one.
const ITEMS_OF_ONE: u64 = 4;
/// After a compaction there is room for so many steps like those before.
const STEPS: u64 = 10;

/// A compaction in effect, as the next one sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandingCompaction {
    /// What is shown of it, in tokens.
    pub tokens: u64,
    /// How often the items that it stands for were summarised, itself included: 1 for one that took no other in.
    pub generation: u32,
}

/// How many of the last compactions in effect the next one takes in, on a path of so many items.
///
/// At most three stand side by side on a path of 500 items, and one more each time it gets some ten times as long: with w
/// of them and at most d summaries of an item there is room for (d + w)! / (d! · w!) compactions. One more takes in as many of
/// the last ones as keeps the generation lowest. Where even that would be more than log₂(items), it stands beside them, up to
/// eight. `limit` is what all of them may take in tokens: beyond that they become one, if the law allows it.
///
/// ```
/// use contexture_compile::compaction::{StandingCompaction, absorbed_count};
///
/// let standing = |generation| StandingCompaction { tokens: 100, generation };
/// assert_eq!(absorbed_count(&[standing(1), standing(1)], 400, 900), 0);
/// assert_eq!(absorbed_count(&[standing(2), standing(1), standing(1)], 400, 900), 2);
/// assert_eq!(absorbed_count(&[standing(2), standing(2), standing(2)], 400, 900), 3);
/// ```
#[must_use]
pub fn absorbed_count(standing: &[StandingCompaction], items: usize, limit: u64) -> usize {
    let allowed = items.max(2).ilog2();
    let taken: u64 = standing.iter().map(|one| one.tokens).sum();
    // What the next one's generation is if it takes in the compactions from `first` on.
    let generation = |first: usize| {
        let taken_in = standing.get(first..).unwrap_or_default();
        let oldest = taken_in.iter().map(|one| one.generation).max();
        oldest.unwrap_or(0).saturating_add(1)
    };
    let firsts = || 0..standing.len();
    let chosen = if taken >= limit {
        // The longest row that may be summarised once more.
        firsts().find(|first| generation(*first) <= allowed)
    } else if standing.len() < standing_width(items) {
        None
    } else {
        // Of equal generations the longest row: it is the first one.
        let best = firsts().min_by_key(|first| generation(*first));
        best.filter(|first| generation(*first) <= allowed || standing.len() >= MOST_STANDING)
    };
    chosen.map_or(0, |first| standing.len() - first)
}

/// How many compactions stand side by side on a path of so many items: as few as hold all compactions that it can have, if
/// each item may be in log₂(items) of them.
fn standing_width(items: usize) -> usize {
    let depth = u64::from(items.max(2).ilog2());
    let wanted = items as u64 / ITEMS_OF_ONE;
    let (mut width, mut held) = (0, 1_u64);
    while width < STANDING as u64 || (held < wanted && width < MOST_STANDING as u64) {
        width += 1;
        // (depth + width)! / (depth! · width!) from the one before; it divides evenly.
        held = held.saturating_mul(depth + width) / width;
    }
    width as usize
}

/// How large the next manifest may be, where all of them may take `all` tokens and those that stay take `staying`.
///
/// The first takes half, so that those after it find room: at most three stand side by side, as a rule.
#[must_use]
pub fn manifest_budget(all: u64, staying: &[u64]) -> u64 {
    let left = all.saturating_sub(staying.iter().sum());
    match staying.len() {
        0 | 1 => left / 2,
        _ => left / 4 * 3,
    }
}

/// Whether a compaction gains at least 30 % of what it covers.
#[must_use]
pub const fn gains_enough(covered: u64, instead: u64) -> bool {
    instead.saturating_mul(10) <= covered.saturating_mul(7)
}

/// What a compaction leaves room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoomAfterCompaction {
    /// The size of a request above which the next compaction is due, in tokens.
    pub trigger: u64,
    /// What a request takes beside the history that can be compacted: instructions, tools, the first message, framing.
    pub fixed: u64,
    /// What the compactions in effect will take.
    pub compactions: u64,
    /// What a step adds, on average.
    pub step: u64,
    /// Most of the history that stays in any case.
    pub most: u64,
}

/// How much of the history stays as it is behind a compaction, in tokens. With 0 it is the last round alone.
#[must_use]
pub const fn retained_tokens(room: &RoomAfterCompaction) -> u64 {
    let taken = room
        .fixed
        .saturating_add(room.compactions)
        .saturating_add(room.step.saturating_mul(STEPS));
    let left = room.trigger.saturating_sub(taken);
    if left < room.most { left } else { room.most }
}

/// Returns a manifest without the rules that requests quote beside it as long as they hold.
#[must_use]
pub fn without_quoted_rules(manifest: Manifest, rules: StandingRulesPolicy) -> Manifest {
    match rules {
        StandingRulesPolicy::Keep => manifest.without_rules(),
        StandingRulesPolicy::Off => manifest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many compactions in a row, each of `items` new items: the most often an item was summarised, and the most that
    /// stood side by side.
    fn run(compactions: usize, items: usize) -> (u32, usize) {
        let mut standing: Vec<StandingCompaction> = Vec::new();
        let (mut oldest, mut most) = (0, 0);
        for made in 1..=compactions {
            let absorbed = absorbed_count(&standing, made * items, u64::MAX);
            let taken_in = standing.split_off(standing.len() - absorbed);
            let generation = taken_in.iter().map(|one| one.generation).max().unwrap_or(0) + 1;
            standing.push(StandingCompaction {
                tokens: 0,
                generation,
            });
            oldest = oldest.max(generation);
            most = most.max(standing.len());
            assert!(
                generation <= (made * items).max(2).ilog2(),
                "{made} of {items}: {generation}"
            );
        }
        (oldest, most)
    }

    #[test]
    fn no_item_is_summarised_more_often_than_the_law_allows() {
        assert_eq!(run(4, 8), (2, 3));
        assert_eq!(run(30, 24), (4, 3));
        assert_eq!(run(375, 24), (8, 5));
        for items in [8, 24, 100, 1_000] {
            for compactions in [1, 2, 10, 100, 1_000, 20_000] {
                let (_, most) = run(compactions, items);
                assert!(most <= MOST_STANDING, "{most}");
            }
        }
    }

    #[test]
    fn longer_paths_have_more_compactions_side_by_side() {
        let widths = [1, 100, 1_000, 10_000, 100_000, usize::MAX].map(standing_width);
        assert_eq!(widths, [3, 3, 4, 5, 6, 8]);
    }

    #[test]
    fn manifests_share_what_all_may_take() {
        let mut staying = Vec::new();
        for _ in 0..10 {
            let next = manifest_budget(1_000, &staying);
            staying.push(next);
            assert!(staying.iter().sum::<u64>() <= 1_000);
        }
        assert_eq!(staying.get(..3), Some(&[500, 250, 186][..]));
    }

    #[test]
    fn what_stays_leaves_room_for_steps() {
        let mut room = RoomAfterCompaction {
            trigger: 5_000,
            fixed: 500,
            compactions: 500,
            step: 200,
            most: 3_000,
        };
        assert_eq!(retained_tokens(&room), 2_000);
        room.most = 800;
        assert_eq!(retained_tokens(&room), 800);
        room.step = 1_000;
        assert_eq!(retained_tokens(&room), 0);
        assert!(gains_enough(100, 70) && !gains_enough(100, 71));
        // However large the summary is that no longer fits, the law comes first.
        let large = StandingCompaction {
            tokens: 2_000,
            generation: 3,
        };
        assert_eq!(absorbed_count(&[large], 16, 900), 1);
        assert_eq!(absorbed_count(&[large], 8, 900), 0);
    }
}
