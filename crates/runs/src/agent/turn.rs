//! The outcome of one turn of an agent.

use std::sync::Arc;

use contexture_ir::{BranchName, FinishReason, NodeId, Raw, RunId};

use crate::context::LastStep;
use crate::limits::RunUsage;

/// The outcome of a run that did not fail: it ended, or it waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Id of the run.
    pub run: RunId,
    /// The branch it worked on.
    pub branch: BranchName,
    /// How it ended.
    pub end: TurnEnd,
    /// The text of the last answer.
    pub text: String,
    /// Final value set by a tool or by the program.
    pub value: Option<Raw>,
    /// Usage of the run, children included.
    pub usage: RunUsage,
    /// The last answer, with the report of its request; `None` if the run was asked nothing in this process.
    pub last_step: Option<Arc<LastStep>>,
}

/// What kind of answer ended a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The model said what it had to say.
    Complete,
    /// The model or a filter of its provider refused.
    Refused,
    /// The answer was cut off by the output limit.
    Cut,
    /// The answer is empty, also after it was asked for again.
    Empty,
}

impl Turn {
    /// Returns what kind of answer the last one is; `None` if the run was asked nothing in this process.
    #[must_use]
    pub fn answer_kind(&self) -> Option<AnswerKind> {
        let last = self.last_step.as_ref()?;
        Some(match &last.finish {
            Some(FinishReason::ContentFilter) => AnswerKind::Refused,
            _ if last.refusal.is_some() => AnswerKind::Refused,
            Some(FinishReason::Length) => AnswerKind::Cut,
            _ if last.calls.is_empty() && self.text.is_empty() => AnswerKind::Empty,
            _ => AnswerKind::Complete,
        })
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The last answer called no tool, or a tool or the program ended the run with a [value](Turn::value).
    Completed,
    /// The agent's stop condition was met.
    Stopped {
        /// The condition, in words.
        reason: String,
    },
    /// The run continues once somebody has decided about these calls: store it with
    /// [`store_decision`](crate::store_decision), then call [`Run::resume`](crate::Run::resume).
    Waiting {
        /// The calls' nodes, of this run or of runs below it.
        calls: Vec<NodeId>,
    },
}

impl TurnEnd {
    /// Returns the name in lower case.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Stopped { .. } => "stopped",
            Self::Waiting { .. } => "waiting",
        }
    }
}
