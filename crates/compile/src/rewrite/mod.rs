//! Whether a history that the provider has cached is rewritten: cleared further, or previewed from now on.
//!
//! Either is done because the history does not fit, or because it pays: what the shorter history saves over the calls to come
//! is more than writing the cache anew costs (`rewrite_cost`), and the last rewriting has paid back.
//!
//! Not here: how content is cleared or previewed (`history`), and the formula (`contexture-prompt-cache`).

mod clear_decision;
mod preview_decision;
mod rewrite_cost;

pub(crate) use clear_decision::{ClearDecision, decide_clearing};
pub(crate) use preview_decision::{PreviewDecision, preview_savings};
pub(crate) use rewrite_cost::{PreviousRequest, RewriteCost, SentContext};
