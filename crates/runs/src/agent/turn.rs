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
    /// The value that a tool or the program has ended it with.
    pub value: Option<Raw>,
    /// What it spent, children included.
    pub usage: RunUsage,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The last answer called nothing, or a tool or the program has ended it with a [value](Turn::value).
    Completed,
    /// The agent's stop condition was met.
    Stopped {
        /// The condition, in words.
        reason: String,
    },
    /// It goes on once somebody has decided about these calls: [`store_decision`](crate::store_decision), then [`Run::resume`](crate::Run::resume).
    Waiting {
        /// The calls' nodes, of this run or of runs below it.
        calls: Vec<NodeId>,
    },
}

impl TurnEnd {
    /// The lower-case word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Stopped { .. } => "stopped",
            Self::Waiting { .. } => "waiting",
        }
    }
}
