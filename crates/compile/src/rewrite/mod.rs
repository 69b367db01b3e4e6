//! Whether a history that the provider has cached is rewritten: cleared further, or previewed from now on.
//!
//! Each rewriting changes bytes that were sent before, so the provider has to read and write the rest of the prefix anew.
//! There are two reasons for it:
//! * The history does not fit. Then it is rewritten whatever it costs, down to the low-water mark of the policy.
//! * It pays. The shorter history saves more over the calls to come than writing the cache anew costs, and the last
//!   rewriting has paid back.
//!
//! `clear_decision` and `preview_decision` decide, each with a figure for the report; `rewrite_cost` knows what is sent, what
//! of it the provider holds, and how short the request may become before it is not cached at all.
//!
//! A decision is made once and goes into the plan: what is cleared or previewed stays so.
//!
//! Not here: how content is cleared or previewed (`history`), and the formula (`contexture-prompt-cache`).

mod clear_decision;
mod preview_decision;
mod rewrite_cost;

pub(crate) use clear_decision::{ClearDecision, decide_clearing};
pub(crate) use preview_decision::{PendingPreviews, PreviewDecision, preview_savings};
pub(crate) use rewrite_cost::{PreviousRequest, RewriteCost, SentContext};
