//! What the calls in agents' logs cost, what broke their prompt caches, and what a policy would have saved.
//!
//! * [`SpendingCollector`] takes the [usage of logs](contexture_sessions::LogUsage) one after the other, counts each answer
//!   once, prices it by the catalogue, finds the cache breaks, and sums up: [`Spending`].
//! * [`find_break`] tells whether a call had to pay again for what the call before had in the cache, how much, and why.
//! * [`replay_session`] compiles the calls of a session again with a history policy, and predicts what they would have cost,
//!   by the same model of the cache as for the calls as they were.
//! * [`estimate_session`] counts the tokens of a session whose log reports none.
//! * [`render_page`] shows it all as one page.
//!
//! Figures are what logs *report*; where they are predicted or estimated, they say so and are never added to reported ones.
//!
//! Not here: files, the terminal, and the lines of logs (`contexture-sessions`).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod breaks;
mod collect;
mod estimate;
mod figures;
mod page;
mod price;
mod savings;

pub use breaks::{BreakReason, FoundBreak, MIN_BREAK_TOKENS, find_break};
pub use collect::{SpendingCollector, SpendingOptions};
pub use estimate::{SessionEstimate, estimate_session};
pub use figures::{
    BreakRow, BreakSum, DamagedFile, EstimateRow, FileCounts, PolicySavings, SessionRow, Spending,
    SpendingGroup, Tally,
};
pub use page::render_page;
pub use savings::{MAX_REPLAYED_CALLS, ReplayPolicy, SessionReplay, replay_session};
