//! Limits of a run: what it used, what it may use, and when its loop stops.
//!
//! [`RunUsage`] counts tokens, cost, steps and time; a [`RunBudget`] limits them, whatever the agent wants, and exceeding
//! it is an error; a [`StopCondition`] is the agent's own wish, and meeting it ends the run well. A child's usage is part
//! of its parent's, so a parent's budget holds for the whole tree.
//!
//! Always holds: everything here is a pure function of values, without a clock or a store. Not here: who asks
//! (`crate::steps`), and prices of models (`contexture-catalogue`).

mod budget;
mod stop_condition;
mod usage;

pub use budget::{BudgetKind, BudgetValue, Exceeded, RunBudget};
pub use stop_condition::{Snapshot, StopCause, StopCondition, StopReason};
pub use usage::{RunUsage, Tokens};
