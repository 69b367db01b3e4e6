//! An agent: its configuration, and what it shows and asks of the outside.
//!
//! An [`Agent`] names a model, tools, sub-agents and limits. An [`Approver`] decides about tool calls that are left to a
//! person, an [`Observer`] receives the [`RunEvent`]s of a run, and a [`Turn`] is what a run came to.
//!
//! Always holds: an agent is plain configuration. It is cloned freely, is never stored, and one agent may drive many runs
//! at once. Not here: a run of it (`crate::run`).

mod approval;
mod config;
mod event;
mod turn;

pub use approval::{ApprovalDecision, Approver, NoApprover};
pub use config::{Agent, ChildHistory, SubAgent};
pub use event::{Observer, RunEvent, RunEventKind};
pub use turn::{Turn, TurnEnd};
