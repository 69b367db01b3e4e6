//! Runs of agents over a conversation: a model is asked, its calls are run, until it is done.
//!
//! Everything durable is an append. What comes next follows from the path alone ([`situation`]), so a run that was cut
//! off at any instant goes on from there as if nothing had happened.
//!
//! ```text
//! begin ─▶ ask: compile ─▶ model ─▶ layers judge ─▶ record ─▶ calls? ─▶ gate ─▶ tools ─▶ append ─▶ ask …
//!                                                          └─ none ─▶ end: layers are told, the run's entries go
//! ```
//!
//! Not here: what a tool is ([`crate::ToolBox`]), providers, storage.

mod appending;
mod approval;
mod ask;
mod beside;
mod calls;
mod children;
mod config;
mod driving;
mod ended;
mod ending;
mod entry;
mod event;
mod inbox;
mod keys;
mod outcome;
mod outputs;
mod recovery;
mod run;
mod situation;
mod spending;
mod started;
mod stored;
mod waiting;

pub use approval::{ApprovalDecision, Approver, NoApprover};
pub use config::{Agent, ChildHistory, SubAgent};
pub use driving::{run_turn, run_turn_with_text};
pub use entry::{RunEntry, RunStatus};
pub use event::{Observer, RunEvent, RunEventKind};
pub use inbox::post_to_inbox;
pub use outcome::{Turn, TurnEnd};
pub use recovery::list_runs;
pub use run::{Run, RunHandle};
pub use started::store_decision;
pub use waiting::{WaitingCall, open_calls, waiting_calls};
