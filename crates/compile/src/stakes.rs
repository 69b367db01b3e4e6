//! What is at stake where a history is rewritten for money's sake: what is sent, what of it the provider holds, and
//! how short it may become.
//!
//! All in best guesses, not in the high bounds of the budget: the provider bills what there is.
//!
//! Not here: what a rewriting would change ([`crate::clearing`], [`crate::previewing`]), and the formula
//! ([`crate::cache::worth`]).

use crate::cache::bill::Rates;
use crate::cache::worth::{CacheState, Course, Rewrite, Worth, worth};
use crate::contribution::Band;
use crate::count::Tokens;
use crate::frame::Frame;
use crate::passes::lower::Piece;
use crate::passes::place::{Placed, Slot};
use crate::request::CompileInput;

/// What stands around the history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around {
    /// Before it: framing, tools, system prompt, anchor.
    before: Tokens,
    behind: Tokens,
}

impl Around {
    pub(crate) fn of(frame: &Frame, slots: &[Slot<'_>], placed: &[Placed]) -> Self {
        let mut around = Self {
            before: frame.tools + frame.framing,
            behind: Tokens::ZERO,
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
pub(crate) struct Stakes<'a> {
    input: &'a CompileInput<'a>,
    around: Around,
    /// The history as the plan shows it.
    pieces: Vec<&'a Piece>,
    history: Tokens,
    /// How many of those the provider holds with what stands before them; `None`: nothing.
    held: Option<usize>,
    before: Before,
}

/// What the call before left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// Whether it had the same target and tools.
    pub(crate) same_prefix: bool,
    /// For how many calls the last rewriting has not paid back yet.
    pub(crate) owes: u64,
}

/// A change of the history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// The first entry that it changes.
    pub(crate) first: usize,
    /// What it takes away, in tokens of the budget.
    pub(crate) saved: u64,
    /// The tools that come with it, before everything.
    pub(crate) tools: Option<Tokens>,
}

impl<'a> Stakes<'a> {
    pub(crate) fn of(
        input: &'a CompileInput<'a>,
        around: Around,
        pieces: Vec<&'a Piece>,
        before: Before,
    ) -> Self {
        // The newest block is not counted there, as it may have grown.
        let sent = input.plan.sent.map(|sent| sent.blocks.saturating_add(1));
        let holds = before.same_prefix && input.request.cache.state == CacheState::Warm;
        Self {
            around,
            history: pieces.iter().map(|piece| whole(piece)).sum(),
            pieces,
            held: sent.filter(|_| holds),
            before,
            input,
        }
    }

    /// Whether a change pays over so many calls, and the last one has paid back.
    pub(crate) fn worth(&self, change: Change, calls: u64) -> Worth {
        let cache = &self.input.request.cache;
        let tokens = (self.around.before + self.history + self.around.behind).guess();
        let cached = self.upto(self.held);
        let now = Course { tokens, cached };
        let tools = change.tools.map_or(0, Tokens::guess);
        let then = Course {
            tokens: tokens.saturating_sub(self.guess_of(change.saved)) + tools,
            cached: match change.tools {
                None => self.left_by(change.first),
                Some(_) => 0,
            },
        };
        let rewrite = Rewrite {
            now,
            then,
            calls,
            ttl: cache.marks.map(|marks| marks.history).unwrap_or_default(),
            minimum: cache.rules.minimum,
        };
        let worth = worth(&rewrite, self.rates().as_ref());
        Worth {
            rewrite: worth.rewrite && self.before.owes == 0,
            ..worth
        }
    }

    /// What the history has to weigh, in tokens of the budget, for the request to be long enough to be cached; 0
    /// where nothing is cached, or not in so little room.
    pub(crate) fn floor(&self, room: u64) -> u64 {
        let minimum = self.input.request.cache.rules.minimum;
        let missing = minimum.saturating_sub(self.around.before.guess());
        let guess = u128::from(self.history.guess().max(1));
        let weight = (u128::from(missing) * u128::from(self.history.high)).div_ceil(guess);
        let weight = u64::try_from(weight).unwrap_or(u64::MAX);
        if weight <= room { weight } else { 0 }
    }

    /// Whether the provider holds anything of it.
    pub(crate) fn is_cached(&self) -> bool {
        self.held.is_some() && self.upto(self.held) >= self.input.request.cache.rules.minimum
    }

    fn rates(&self) -> Option<Rates> {
        let cache = &self.input.request.cache;
        let tokens = (self.around.before + self.history).guess();
        Rates::of(&cache.prices, cache.rules.kind, tokens)
    }

    /// What the provider holds of a request that changes at an entry. Where marks decide, those within the history
    /// are behind the change, or may be.
    fn left_by(&self, entry: usize) -> u64 {
        let before = self
            .pieces
            .iter()
            .take_while(|piece| piece.entries.end <= entry);
        let before = before.count();
        self.upto(self.held.map(|held| match () {
            () if held <= before => held,
            () if self.input.request.cache.rules.by_marks() => 0,
            () => before,
        }))
    }

    /// The tokens up to a piece.
    fn upto(&self, piece: Option<usize>) -> u64 {
        let Some(piece) = piece else { return 0 };
        let held: Tokens = self.pieces.iter().take(piece).map(|one| whole(one)).sum();
        (self.around.before + held).guess()
    }

    /// A weight of the budget as a best guess.
    fn guess_of(&self, weight: u64) -> u64 {
        let high = u128::from(self.history.high.max(1));
        let guess = u128::from(weight) * u128::from(self.history.guess()) / high;
        u64::try_from(guess).unwrap_or(weight)
    }
}

fn whole(piece: &Piece) -> Tokens {
    piece.text + piece.framing
}
