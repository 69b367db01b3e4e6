//! The state of a run while a process drives it.
//!
//! A [`LiveRun`] holds the conversation, the layer session and what follows from the run's path: the [`NextStep`], the
//! usage so far, and the [`ResumeState`] of calls that an earlier process left open. It appends to the run's branch,
//! and reads the states again after a conflict with another writer.
//!
//! * The *path* of a run ([`RunPath`]) is its nodes on the branch, and its answers that lost a race with another
//!   writer.
//! * *Open calls* ([`UnansweredCalls`]) are those of the last answer without an output. They run before the model is asked
//!   again, also after a restart.
//! * *Side usage* is what layers and summaries use. It is kept by source, apart from the run's own answers.
//! * A *decision* about a call is a node on the branch, so it is found again like everything else.
//!
//! Always holds: all of it can be computed again from the store, so a process that dies loses nothing that was stored.
//! Not
//! here: what a step does (`crate::steps`), and the handle that programs hold (`crate::run`).

mod append;
mod decision;
mod durable_step;
mod live_run;
mod next_step;
mod open_children;
mod resume_state;
mod side_usage;
mod timeline;
mod usage;
mod waiting_calls;

pub(crate) use append::AppendBatch;
pub use decision::store_decision;
pub(crate) use live_run::{LiveRun, json_bytes, user_message};
pub(crate) use next_step::{
    NextStep, RunPath, UnansweredCall, UnansweredCalls, answer_texts, next_step,
};
pub(crate) use resume_state::ResumeState;
pub(crate) use side_usage::{RunSideUsage, SideUsageLog};
pub use timeline::{RunSpan, RunSpanKind, run_timeline};
pub(crate) use usage::{load_usage, model_call_usage};
pub use waiting_calls::{open_calls, waiting_calls};
