//! Limits of a run: what it used, what it may use, and when its loop stops.
//!
//! [`RunUsage`] counts tokens, cost, steps and time; a [`RunBudget`] limits them, whatever the agent wants, and exceeding
//! it is an error; a [`StopCondition`] is the agent's own wish, and meeting it ends the run well. A child's usage is part
//! of its parent's, so a parent's budget holds for the whole tree.
//!
//! | | says | when met |
//! |---|---|---|
//! | usage | what was used so far | nothing: it only counts |
//! | budget | what may be used at most | the run fails with [`Exceeded`] before the next step |
//! | stop condition | what the agent wants | the run is completed, with the reason as its outcome |
//!
//! A budget is checked before a step begins, so a step that has begun may exceed it; a child gets at most what its parent
//! has left. A stop condition sees a [`Snapshot`] after each answer; one that fails or panics stops the run, because
//! nobody knows what it would have said.
//!
//! A cost that no price covers counts as nothing, and [`RunUsage::unpriced`] tells how many calls that concerns. Times
//! are stored as whole microseconds.
//!
//! Always holds: everything here is a pure function of values, without a clock or a store. Not here: who asks
//! (`crate::steps`), and prices of models (`contexture-catalogue`).

mod budget;
mod stop_condition;
mod usage;

pub use budget::{BudgetKind, BudgetValue, Exceeded, RunBudget};
pub use stop_condition::{Snapshot, StopCause, StopCondition, StopReason};
pub use usage::{RunUsage, Tokens};
