//! Summaries that a model writes in the background, before a compaction is due.
//!
//! From a share of the window on, the model is asked when an answer was recorded: then the provider has just cached what it
//! read, and the question goes on from the same bytes. The call that was answered is over, and the next one does not wait. The
//! summary is a value beside the tree, under a key that redaction removes ([`DERIVED_KEYS`](contexture_store::DERIVED_KEYS)).
//! When a compaction is due it stands in that compaction's item, so no node is appended that would not have been appended
//! without it.
//!
//! * `options`: whom to ask, and from when on;
//! * `task`: the work in the background, one at a time for a conversation;
//! * `question`: what is asked, at which price, and how the answer is read;
//! * `ready`: the value beside the tree, and whether it may still be used.
//!
//! Not here: the text of the question (`contexture-condense`), the compaction that adopts the summary (`compact`).

mod options;
mod question;
mod ready;
mod task;

pub use options::{BackgroundSummary, SummaryModel, SummaryPayer};
pub(super) use ready::{LookupSizes, SummaryLookup, find_ready_summary, remove_summary};
pub(super) use task::{SentBody, SentRequest, SummaryPlan, start_summary};
