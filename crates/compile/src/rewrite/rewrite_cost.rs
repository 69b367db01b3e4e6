//! What is at stake where a history is rewritten for money's sake: what is sent, what of it the provider holds, and
//! how short it may become.
//!
//! All in best guesses, not in the high bounds of the budget: the provider bills what there is.
//!
//! Not here: what a rewriting would change ([`crate::rewrite::clear_decision`], [`crate::rewrite::preview_decision`]), and the formula
//! ([`contexture_prompt_cache`]).

use contexture_catalogue::{Meter, Price};
use contexture_prompt_cache::{
    CacheState, CallTokens, Rates, Rewrite, RewriteValue, rewrite_value,
};
use contexture_tokens::TokenBounds;

use crate::contributions::{PayloadSlot, PlacedContribution, RequestOverhead};
use crate::history::{BlockTotals, LostThinking, SentBlocks};
use crate::input::{Band, CompileInput};

/// What stands around the history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentContext {
    /// Before it: framing, tools, system prompt, anchor.
    before: TokenBounds,
    behind: TokenBounds,
}

impl SentContext {
    pub(crate) fn around_history(
        frame: &RequestOverhead,
        slots: &[PayloadSlot<'_>],
        placed: &[PlacedContribution],
    ) -> Self {
        let mut around = Self {
            before: frame.tools + frame.framing,
            behind: TokenBounds::ZERO,
        };
        for (slot, placed) in slots.iter().zip(placed) {
            let side = if slot.band <= Band::Anchor {
                &mut around.before
            } else {
                &mut around.behind
            };
            *side += placed.text + placed.framing;
        }
        around
    }
}

/// A request that could be rewritten.
#[derive(Debug)]
pub(crate) struct RewriteCost<'a> {
    input: &'a CompileInput<'a>,
    context: SentContext,
    /// The history as the plan shows it.
    blocks: SentBlocks<'a>,
    history: TokenBounds,
    /// How many of those the provider holds with what stands before them; `None`: nothing.
    cached_blocks: Option<usize>,
    previous: PreviousRequest,
}

/// What the call before left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreviousRequest {
    /// Whether it had the same target and tools.
    pub(crate) same_prefix: bool,
    /// For how many calls the last rewriting has not paid back yet.
    pub(crate) payback_calls: u64,
}

/// A change of the history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistoryChange {
    /// The first entry that it changes.
    pub(crate) first: usize,
    /// What it takes away, in tokens of the budget.
    pub(crate) saved: u64,
    /// The tools that come with it, before everything.
    pub(crate) tools: Option<TokenBounds>,
    /// The thinking that goes with it.
    pub(crate) thinking: LostThinking,
}

impl<'a> RewriteCost<'a> {
    pub(crate) fn for_request(
        input: &'a CompileInput<'a>,
        around: SentContext,
        blocks: SentBlocks<'a>,
        before: PreviousRequest,
    ) -> Self {
        // The newest block is not counted there, as it may have grown.
        let sent = input.plan.sent.map(|sent| sent.blocks.saturating_add(1));
        // After the provider's time is over nothing is cached, and rewriting costs nothing.
        let holds = before.same_prefix && input.request.cache.state == CacheState::Warm;
        Self {
            context: around,
            history: total_tokens(&blocks.totals()),
            blocks,
            cached_blocks: sent.filter(|_| holds),
            previous: before,
            input,
        }
    }

    /// Whether a change pays over so many calls, and the last one has paid back.
    pub(crate) fn value_of(&self, change: HistoryChange, calls: u64) -> RewriteValue {
        let cache = &self.input.request.cache;
        let tokens = (self.context.before + self.history + self.context.behind).midpoint();
        let cached = self.prefix_tokens(self.cached_blocks);
        let now = CallTokens { tokens, cached };
        let tools = change.tools.map_or(0, TokenBounds::midpoint);
        let then = CallTokens {
            tokens: tokens.saturating_sub(self.guess_tokens(change.saved)) + tools,
            cached: match change.tools {
                None => self.cached_after_change(change.first),
                // New tools stand before everything: no prefix survives them.
                Some(_) => 0,
            },
        };
        let rewrite = Rewrite {
            now,
            then,
            calls,
            ttl: cache
                .marker_policy
                .map(|marks| marks.history)
                .unwrap_or_default(),
            minimum: cache.rules.minimum,
        };
        let worth = rewrite_value(&rewrite, self.input_rates().as_ref());
        // The model has to think again what it no longer reads.
        let price = cache.prices.get(Meter::Output, tokens);
        let price = price.map_or(u64::MAX, Price::micro_dollars_per_million);
        let thinking = u128::from(change.thinking.tokens).saturating_mul(u128::from(price));
        let cost = worth.cost.saturating_add(thinking);
        // An open turn keeps its thinking for money's sake: providers want it until the turn is over.
        let waits = change.thinking.in_open_turn || self.previous.payback_calls > 0;
        RewriteValue {
            // One rewriting at a time: the figures assume that the new history is sent unchanged for
            // the calls to come.
            rewrite: worth.saving > cost && !waits,
            cost,
            ..worth
        }
    }

    /// What the history has to weigh, in tokens of the budget, for the request to be long enough to be cached; 0
    /// where nothing is cached, or not in so little room.
    pub(crate) fn minimum_cacheable_weight(&self, room: u64) -> u64 {
        let minimum = self.input.request.cache.rules.minimum;
        let missing = minimum.saturating_sub(self.context.before.midpoint());
        let guess = u128::from(self.history.midpoint().max(1));
        // The minimum is in real tokens, the budget in high bounds: scaled by what the history is
        // known to weigh in both.
        let weight = (u128::from(missing) * u128::from(self.history.high)).div_ceil(guess);
        let weight = u64::try_from(weight).unwrap_or(u64::MAX);
        if weight <= room { weight } else { 0 }
    }

    /// Whether the provider holds anything of it.
    pub(crate) fn is_cached(&self) -> bool {
        self.cached_blocks.is_some()
            && self.prefix_tokens(self.cached_blocks) >= self.input.request.cache.rules.minimum
    }

    fn input_rates(&self) -> Option<Rates> {
        let cache = &self.input.request.cache;
        let tokens = (self.context.before + self.history).midpoint();
        Rates::for_request(&cache.prices, cache.rules.kind, tokens)
    }

    /// What the provider holds of a request that changes at an entry. Where marks decide, those within the history
    /// are behind the change, or may be.
    fn cached_after_change(&self, entry: usize) -> u64 {
        let before = self.blocks.count_before(entry);
        self.prefix_tokens(self.cached_blocks.map(|held| match () {
            () if held <= before => held,
            // A marker in the middle may be missing, so nothing before the change is taken to be
            // cached: rewriting looks dearer than it may be, never cheaper.
            () if self.input.request.cache.rules.is_marker_based() => 0,
            () => before,
        }))
    }

    /// The tokens up to a piece.
    fn prefix_tokens(&self, piece: Option<usize>) -> u64 {
        let Some(piece) = piece else { return 0 };
        let held = total_tokens(&self.blocks.totals_of_first(piece));
        (self.context.before + held).midpoint()
    }

    /// A weight of the budget as a best guess.
    fn guess_tokens(&self, weight: u64) -> u64 {
        let high = u128::from(self.history.high.max(1));
        let guess = u128::from(weight) * u128::from(self.history.midpoint()) / high;
        u64::try_from(guess).unwrap_or(weight)
    }
}

fn total_tokens(blocks: &BlockTotals) -> TokenBounds {
    blocks.text + blocks.framing
}
