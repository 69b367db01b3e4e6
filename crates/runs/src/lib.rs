//! Agents and their runs: the step loop with tools, approvals, sub-agents, limits, channels and recovery.
//!
//! * An [`Agent`] is configuration; a [`Run`] is one execution of it, which can be resumed after a crash.
//! * [`RunUsage`] counts usage; a [`RunBudget`] limits it; a [`StopCondition`] says when the step loop ends.
//! * An [`Abort`] cancels a run and its children; [`Retry`] configures retries; [`parallel`] runs tasks concurrently.
//! * A [`RunContext`] is what tools, approvers and steps of the program are given of their run.
//! * [`Channels`] carry messages between the runs of one tree, and to and from the host.
//! * A [`ToolBox`] runs the tools that a policy allows.
//! * [`OpenResponses`] and [`AgUi`] convert a run's events for clients of those protocols.
//! * [`RunError`] says why a run failed.
//!
//! Not here: storing the history (`contexture-engine`), and providers of models (`contexture-models`).

mod agent;
mod channels;
mod context;
mod error;
mod execution;
mod limits;
mod protocols;
mod record;
mod recovery;
mod run;
mod run_handle;
mod steps;
mod tasks;
mod tools;

pub use agent::{
    Agent, AgentError, AnswerKind, ApprovalDecision, Approver, ChildHistory, Decision, NoApprover,
    Observer, OutputError, RunEvent, RunEventKind, StoredDecision, SubAgent, ToolOrigin, Turn,
    TurnEnd, UnfinishedRun, Verdict, Verifier, WaitingCall,
};
pub use channels::{
    Channel, ChannelError, ChannelMessage, ChannelMode, ChannelSender, ChannelStream, Channels,
    WaitTimeout,
};
pub use context::{LastStep, RunContext};
pub use contexture_catalogue::{Money, MoneyError};
pub use contexture_models::{Backoff, Retry, Retryable};
pub use error::RunError;
pub use execution::{
    RunSpan, RunSpanKind, open_calls, run_timeline, store_decision, waiting_calls,
};
pub use limits::{
    BudgetKind, BudgetValue, Exceeded, OwnedSnapshot, RunBudget, RunUsage, Snapshot, StopCause,
    StopCondition, StopReason, Tokens,
};
pub use protocols::{AgUi, OpenResponses, ProtocolEvent};
pub use record::{RunCursor, RunEntry, RunPage, RunQuery, RunStatus, list_runs, list_runs_with};
pub use recovery::{Recovered, recover_runs};
pub use run::{Run, run_turn, run_turn_with_text};
pub use run_handle::RunHandle;
pub use steps::{abandon_run, cancel_run, post_to_inbox, queue_run};
pub use tasks::{Abort, Cancelled, ConcurrencyLimit, PartialFailure, parallel, run_with_retries};
pub use tools::{
    Allowed, NoArguments, PendingApproval, Permit, Resolution, ToolBox, ToolCall, ToolConcurrency,
    ToolFailure, ToolHandler, ToolOptions, ToolOutput, TypedTool, function_call_output,
};
