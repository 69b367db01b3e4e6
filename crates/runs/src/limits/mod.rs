//! Limits of a run: what it used, what it may use, and when its loop stops.
//!
//! [`RunUsage`] counts tokens, cost, steps and time; a [`RunBudget`] limits them, and exceeding it is an error; a
//! [`StopCondition`] is the agent's own choice, and meeting it completes the run. A child's usage is part of its
//! parent's, so a parent's budget holds for the whole tree.
//!
//! | | says | when met |
//! |---|---|---|
//! | usage | what was used so far | nothing: it only counts |
//! | budget | what may be used at most | the run fails with [`Exceeded`] before the next step |
//! | stop condition | when the agent wants to stop | the run is completed, with the reason as its outcome |
//!
//! A budget is checked before a step starts, so a step in progress may exceed it; a child gets at most what its parent
//! has left when it starts. A stop condition sees a [`Snapshot`] after each answer; one that fails or panics stops the
//! run, because its result is unknown.
//!
//! A call without a known price costs nothing here, and [`RunUsage::unpriced`] counts such calls. Times are stored in
//! whole microseconds.
//!
//! Always holds: nothing here reads a clock or a store. Not here: when limits are checked (`crate::steps`), and prices
//! of models (`contexture-catalogue`).

mod budget;
mod stop_condition;
mod usage;

pub use budget::{BudgetKind, BudgetValue, Exceeded, RunBudget};
pub use stop_condition::{OwnedSnapshot, Snapshot, StopCause, StopCondition, StopReason};
pub use usage::{RunUsage, Tokens};
