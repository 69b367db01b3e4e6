//! The outcome of one turn of an agent.

use contexture_ir::{BranchName, NodeId, Raw, RunId};

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
