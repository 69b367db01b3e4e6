//! What runs of agents stand on, each piece by itself.
//!
//! * [`Spent`] counts what was used; a [`Budget`] limits it; [`Until`] says when a loop stops.
//! * An [`Abort`] cancels a run and all below it; [`Retry`] tries again what failed in passing; [`parallel`] runs work side
//!   by side.
//! * [`Channels`] carry messages between the runs of one tree, and to and from outside.
//! * A [`ToolBox`] runs the tools that a policy allows.
//! * [`OpenResponses`] and [`AgUi`] tell what a run tells to clients of those protocols.
//! * [`RunError`] says what went wrong.
//!
//! Not here: the history of a run, and asking models (`contexture-engine`, `contexture-llm`).

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
    Agent, Approver, ChildHistory, Decision, Delegate, Ended, NobodyThere, Observer, Run, RunEntry,
    RunEvent, RunHandle, RunNews, RunStatus, Turn, WaitingCall, decide, open_calls, post, runs,
    turn, turn_text, waiting_calls,
};
pub use budget::{Amount, Budget, Exceeded, Limited};
pub use cancel::{Abort, Cancelled};
pub use channels::{Channel, ChannelError, ChannelStream, Channels, External, Message, Mode, Wait};
pub use error::RunError;
pub use money::{BadMoney, Money};
pub use parallel::{Partial, Width};
pub use protocols::{AgUi, OpenResponses, Sent};
pub use retry::{Backoff, Retry, Retryable};
pub use tools::{
    Allowed, Handler, Lane, Pending, Permit, Resolution, ToolBox, ToolCall, ToolFailure,
    ToolOptions, ToolOutput, answer,
};
pub use until::{Cause, Snapshot, Stop, Until};
pub use usage::{Spent, Tokens};
