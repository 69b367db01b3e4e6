//! What runs of agents stand on, each piece by itself.
//!
//! * [`RunUsage`] counts what was used; a [`RunBudget`] limits it; [`StopCondition`] says when a loop stops.
//! * An [`Abort`] cancels a run and all below it; [`Retry`] tries again what failed in passing; [`parallel`] runs work side
//!   by side.
//! * [`Channels`] carry messages between the runs of one tree, and to and from outside.
//! * A [`ToolBox`] runs the tools that a policy allows.
//! * [`OpenResponses`] and [`AgUi`] tell what a run tells to clients of those protocols.
//! * [`RunError`] says what went wrong.
//!
//! Not here: the history of a run, and asking models (`contexture-engine`, `contexture-models`).

mod agent;
mod budget;
mod cancel;
mod channels;
mod error;
mod micros;
mod money;
mod panics;
pub mod parallel;
mod protocols;
mod retry;
mod tools;
mod until;
mod usage;

pub use agent::{
    Agent, ApprovalDecision, Approver, ChildHistory, NoApprover, Observer, Run, RunEntry, RunEvent,
    RunEventKind, RunHandle, RunStatus, SubAgent, Turn, TurnEnd, WaitingCall, list_runs,
    open_calls, post_to_inbox, run_turn, run_turn_with_text, store_decision, waiting_calls,
};
pub use budget::{BudgetKind, BudgetValue, Exceeded, RunBudget};
pub use cancel::{Abort, Cancelled};
pub use channels::{
    Channel, ChannelError, ChannelMessage, ChannelMode, ChannelSender, ChannelStream, Channels,
    WaitTimeout,
};
pub use error::RunError;
pub use money::{Money, MoneyError};
pub use parallel::{ConcurrencyLimit, PartialFailure};
pub use protocols::{AgUi, OpenResponses, ProtocolEvent};
pub use retry::{Backoff, Retry, Retryable};
pub use tools::{
    Allowed, PendingApproval, Permit, Resolution, ToolBox, ToolCall, ToolConcurrency, ToolFailure,
    ToolHandler, ToolOptions, ToolOutput, function_call_output,
};
pub use until::{Snapshot, StopCause, StopCondition, StopReason};
pub use usage::{RunUsage, Tokens};
