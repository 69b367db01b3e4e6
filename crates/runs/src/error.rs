//! Why a run, or a step of one, did not succeed.
//!
//! Not here: a tool's failure, which is an output for the model ([`crate::ToolFailure`]).

use std::time::Duration;

use contexture_engine::EngineError;
use contexture_ir::{BranchName, FunctionCallOutput, NodeId, ProcessId, RunId};
use contexture_models::{ModelError, Retryable};
use contexture_store::Error as StoreError;

use crate::agent::{AgentError, OutputError, StoredDecision, WaitingCall};
use crate::channels::ChannelError;
use crate::limits::Exceeded;
use crate::tasks::{Cancelled, PartialFailure};

/// Why a run did not succeed. Variants are grouped by what a caller does next; [`RunError::kind`] is the stable name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A step failed with an error of its own.
    #[error("step {step:?} failed after {attempts} attempts")]
    StepFailed {
        /// Name of the step.
        step: String,
        /// How often it was tried.
        attempts: u32,
        /// Error of the last attempt.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The model refused to answer.
    #[error("the model refused in step {step:?}: {refusal}")]
    ModelRefused {
        /// Name of the step.
        step: String,
        /// The model's text.
        refusal: String,
    },
    /// The model's answer is not what was asked for.
    #[error("the answer in step {step:?} is not what was asked for: {reason}")]
    ModelParse {
        /// Name of the step.
        step: String,
        /// What was expected, and what was found.
        reason: String,
        /// The answer as received.
        raw: String,
    },
    /// Parallel work in which at least one task failed.
    #[error("{} of {total} parallel tasks failed", failed.len())]
    Parallel {
        /// Number of tasks.
        total: usize,
        /// Indices of the tasks that succeeded.
        succeeded: Vec<usize>,
        /// Errors of the failed tasks with their indices, in the order in which they failed.
        failed: Vec<(usize, RunError)>,
    },
    /// A channel operation failed.
    #[error(transparent)]
    Channel(ChannelError),
    /// The work was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// An item is not of the expected kind.
    #[error("{subject}: expected {expected}, found {found}")]
    ItemMismatch {
        /// Where the mismatch is.
        subject: String,
        /// What is expected there.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The run had already ended, for this reason.
    #[error("{reason}")]
    Ended {
        /// Reason as it was stored.
        reason: String,
    },
    /// The run is being driven, or another run works on its branch; nothing was changed.
    #[error(
        "branch {branch} is being worked on by process {by} since {since_ms} ms: wait for it, or work on another branch"
    )]
    Busy {
        /// Branch of the run.
        branch: BranchName,
        /// Process that drives it.
        by: ProcessId,
        /// Time since when, in milliseconds since the Unix epoch.
        since_ms: i64,
        /// Time after which the process counts as dead if it gives no sign of life until then, at most 10 s; `None` for
        /// this process itself.
        dead_in: Option<Duration>,
    },
    /// Another process has taken the run up, because this one gave no sign of life. It goes on there; nothing more is done
    /// here.
    #[error("another process has taken the run up: follow it there")]
    Superseded {
        /// Output of a tool that ran here and that could not be stored, because its call was answered meanwhile.
        output: Option<Box<FunctionCallOutput>>,
    },
    /// A run of the branch waits for a decision, so no other one begins there.
    #[error(
        "run {run} of agent {agent:?} waits for a decision{}: decide and resume it, or abandon it",
        of_calls(calls)
    )]
    Unfinished {
        /// The run that waits.
        run: RunId,
        /// Name of its agent.
        agent: String,
        /// The calls that it waits for.
        calls: Vec<WaitingCall>,
    },
    /// Another decision about the call was made before; it holds.
    #[error("call {call} was {decided}: that decision holds")]
    AlreadyDecided {
        /// Node of the call.
        call: NodeId,
        /// The decision that holds.
        decided: StoredDecision,
    },
    /// There is no such call, it has its output, or its run has ended.
    #[error("call {call} of run {run} does not wait for a decision")]
    NotWaiting {
        /// Node that was named.
        call: NodeId,
        /// Run that was named.
        run: RunId,
    },
    /// A limit of the budget is reached.
    #[error(transparent)]
    BudgetExceeded(#[from] Exceeded),
    /// The run has had as many answers as its agent allows.
    #[error(
        "the run has had {limit} answers, the most that its agent allows: see why its model does not come to an end, or allow more (`Agent::with_max_answers`)"
    )]
    TooManyAnswers {
        /// The agent's limit.
        limit: u32,
    },
    /// The action is not allowed.
    #[error("denied: {reason}")]
    Denied {
        /// What denied it, and why.
        reason: String,
    },
    /// A run would be nested too deeply.
    #[error(
        "a run would stand {depth} deep, the limit is {}: do it without another child",
        RunError::MAX_DEPTH
    )]
    Depth {
        /// Depth of the run; a root run has depth 0.
        depth: usize,
    },
    /// The agent cannot run over the conversation.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// Reading or writing stored data failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The model could not be called, or did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl RunError {
    /// Maximum depth of a run; a root run has depth 0.
    pub const MAX_DEPTH: usize = 64;

    /// Checks that a run may have this depth.
    ///
    /// # Errors
    /// [`RunError::Depth`] above [`Self::MAX_DEPTH`].
    pub(crate) fn check_depth(depth: usize) -> Result<(), Self> {
        if depth > Self::MAX_DEPTH {
            return Err(Self::Depth { depth });
        }
        Ok(())
    }

    /// Whether the run stays open: it goes on once it is resumed, here or elsewhere. Any other error of a driven run has
    /// ended it.
    #[must_use]
    pub(crate) const fn leaves_open(&self) -> bool {
        matches!(
            self,
            Self::Engine(EngineError::Store(_))
                | Self::Busy { .. }
                | Self::Superseded { .. }
                | Self::Agent(AgentError::OtherAgent { .. })
        )
    }

    /// Returns what a refused append means to a driver: another process has claimed the branch.
    pub(crate) fn or_superseded(self) -> Self {
        match self {
            Self::Engine(EngineError::Store(StoreError::StaleFence { .. })) => {
                Self::Superseded { output: None }
            }
            error => error,
        }
    }

    /// Returns a short stable name for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::StepFailed { .. } => "step_failed",
            Self::ModelRefused { .. } => "model_refused",
            Self::ModelParse { .. } => "model_parse",
            Self::Parallel { .. } => "parallel",
            Self::Channel(error) => error.kind(),
            Self::Cancelled(_) => "cancelled",
            Self::ItemMismatch { .. } => "item_mismatch",
            Self::Ended { .. } => "ended",
            Self::Busy { .. } => "busy",
            Self::Superseded { .. } => "superseded",
            Self::Unfinished { .. } => "unfinished",
            Self::AlreadyDecided { .. } => "already_decided",
            Self::NotWaiting { .. } => "not_waiting",
            Self::BudgetExceeded(_) => "budget_exceeded",
            Self::TooManyAnswers { .. } => "too_many_answers",
            Self::Denied { .. } => "denied",
            Self::Depth { .. } => "depth",
            Self::Agent(_) => "agent",
            Self::Engine(_) => "engine",
            Self::Model(ModelError::RateLimited { .. }) => "rate_limited",
            Self::Model(_) => "model",
        }
    }

    /// Whether the same call may succeed later. Never for cancelled work, nor for parallel work and failed steps, which
    /// have been retried already where that was wanted.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Channel(ChannelError::TimedOut { .. }) | Self::Busy { .. } => true,
            Self::Engine(error) => error.is_retryable(),
            Self::Model(error) => error.is_retryable(),
            Self::StepFailed { .. }
            | Self::ModelRefused { .. }
            | Self::ModelParse { .. }
            | Self::Parallel { .. }
            | Self::Channel(_)
            | Self::Cancelled(_)
            | Self::ItemMismatch { .. }
            | Self::Ended { .. }
            | Self::Superseded { .. }
            | Self::Unfinished { .. }
            | Self::AlreadyDecided { .. }
            | Self::NotWaiting { .. }
            | Self::BudgetExceeded(_)
            | Self::TooManyAnswers { .. }
            | Self::Denied { .. }
            | Self::Depth { .. }
            | Self::Agent(_) => false,
        }
    }
}

impl From<OutputError> for RunError {
    fn from(error: OutputError) -> Self {
        Self::ModelParse {
            step: "final answer".to_owned(),
            reason: error.reason,
            raw: error.raw,
        }
    }
}

/// Names the calls that a run waits for.
fn of_calls(calls: &[WaitingCall]) -> String {
    let names: Vec<String> = calls
        .iter()
        .map(|call| format!("{} ({})", call.tool, call.node))
        .collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" about {}", names.join(", ")),
    }
}

impl Retryable for RunError {
    fn is_retryable(&self) -> bool {
        Self::is_retryable(self)
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Model(error) => error.retry_after(),
            Self::Busy { dead_in, .. } => *dead_in,
            _ => None,
        }
    }
}

impl From<ChannelError> for RunError {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Cancelled(cancelled) => cancelled.into(),
            error => Self::Channel(error),
        }
    }
}

/// Becomes [`RunError::Cancelled`] if the caller was aborted, otherwise lists the failed tasks.
impl<T> From<PartialFailure<T, RunError>> for RunError {
    fn from(partial: PartialFailure<T, RunError>) -> Self {
        if let Some(cancelled) = partial.cancelled {
            return cancelled.into();
        }
        Self::Parallel {
            total: partial.succeeded.len() + partial.failed.len() + partial.skipped,
            succeeded: partial
                .succeeded
                .into_iter()
                .map(|(place, _)| place)
                .collect(),
            failed: partial.failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(retry_after_ms: Option<u64>) -> ModelError {
        ModelError::RateLimited {
            model: "m".into(),
            reason: "slow".into(),
            retry_after_ms,
        }
    }

    #[test]
    fn errors_say_what_they_are_and_whether_to_try_again() {
        let cancelled = || Cancelled {
            reason: "enough".into(),
        };
        let channel = || "c".into();
        let waited = Duration::from_secs(1);
        for (error, kind, again) in [
            (RunError::from(limited(None)), "rate_limited", true),
            (
                ModelError::NoAnswer {
                    model: "m".into(),
                    call: 1,
                    reason: "end".into(),
                }
                .into(),
                "model",
                false,
            ),
            (EngineError::CannotSearch.into(), "engine", false),
            (cancelled().into(), "cancelled", false),
            (ChannelError::from(cancelled()).into(), "cancelled", false),
            (
                ChannelError::TimedOut {
                    channel: channel(),
                    waited,
                }
                .into(),
                "channel_timeout",
                true,
            ),
            (
                ChannelError::Closed { channel: channel() }.into(),
                "channel_closed",
                false,
            ),
            (RunError::check_depth(65).unwrap_err(), "depth", false),
        ] {
            assert_eq!(
                (error.kind(), error.is_retryable()),
                (kind, again),
                "{error}"
            );
        }
        assert!(RunError::check_depth(64).is_ok());
        let hint = RunError::from(limited(Some(1_500))).retry_after();
        assert_eq!(hint, Some(Duration::from_millis(1_500)));
    }

    #[test]
    fn partial_work_is_told_unless_it_was_called_off() {
        let failed = || {
            vec![(
                1,
                RunError::Denied {
                    reason: "no".into(),
                },
            )]
        };
        let mut partial = PartialFailure {
            succeeded: vec![(0, "x")],
            failed: failed(),
            skipped: 2,
            cancelled: None,
        };
        let told = RunError::from(partial);
        assert_eq!(told.to_string(), "1 of 4 parallel tasks failed");
        assert_eq!(told.kind(), "parallel");
        let cancelled = Some(Cancelled {
            reason: "enough".into(),
        });
        partial = PartialFailure {
            succeeded: vec![],
            failed: failed(),
            skipped: 0,
            cancelled,
        };
        assert_eq!(RunError::from(partial).to_string(), "cancelled: enough");
    }
}
