//! Agents: their configuration, approvals and events.
//!
//! An [`Agent`] names a model, tools, sub-agents and limits. An [`Approver`] decides about tool calls that are left to a
//! person, an [`Observer`] receives the [`RunEvent`]s of a run, and a [`Turn`] is the outcome of a run.
//!
//! * Approval: policies and layers may leave a call to a person. The approver answers at once, or the run *waits*: its end
//!   is [`TurnEnd::Waiting`], the decision is stored later, and the run is resumed.
//! * Events: they are delivered as they happen and are not stored. An observer that panics does not end the run. Events
//!   of child runs go to the same observer, unless the sub-agent has its own.
//! * Sub-agents: the model calls another agent like a tool, with a task as its argument. [`ChildHistory`] says how much of
//!   the parent's history the child sees.
//! * Tool names: the tool box, the target, sub-agents and the conversation's layers offer tools in one scope; two of one name
//!   are refused before anything is asked.
//! * Refusals: layers may refuse an answer and have the model asked again; the agent limits how often in a row.
//!
//! Always holds: an agent is plain configuration. It is cloned freely, is never stored, and one agent may drive many runs
//! at once. Not here: a run of it (`crate::run`).

mod approval;
mod config;
mod event;
mod final_answer;
mod sub_agent;
mod tool_names;
mod turn;

pub use approval::{ApprovalDecision, Approver, Decision, NoApprover, StoredDecision, WaitingCall};
pub use config::{Agent, UnfinishedRun};
pub use event::{Observer, RunEvent, RunEventKind};
pub(crate) use final_answer::OutputType;
pub use final_answer::{OutputError, Verdict, Verifier};
pub use sub_agent::{ChildHistory, SubAgent};
pub use tool_names::{AgentError, ToolOrigin};
pub use turn::{AnswerKind, Turn, TurnEnd};
