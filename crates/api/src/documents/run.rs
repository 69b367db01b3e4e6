//! Runs of agents, and their calls that wait for a decision.

use contexture::runs::{RunEntry, WaitingCall};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// A run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunDocument {
    /// Its id.
    pub run: String,
    /// Its conversation.
    pub conversation: String,
    /// The branch it works on.
    pub branch: String,
    /// The agent's name.
    pub agent: String,
    /// Its parent, if it has one.
    pub parent: Option<String>,
    /// How it stands.
    pub status: String,
    /// When it began.
    pub began: String,
    /// When it ended.
    pub ended: Option<String>,
    /// What it spent, children included; of a run that goes on nothing is said.
    #[schema(value_type = Option<Object>)]
    pub spent: Value,
    /// What it gave.
    pub result: Option<String>,
    /// Why it was called off or went wrong.
    pub why: Option<String>,
    /// Calls of it, and of runs below it, that wait for a decision.
    pub waiting: Vec<WaitingCallDocument>,
}

/// A call that waits for a decision.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WaitingCallDocument {
    /// Its node.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// What it is called with: JSON, or the text that came where it is none.
    #[schema(value_type = Object)]
    pub arguments: Value,
}

/// Runs, the newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunsDocument {
    /// The runs.
    pub runs: Vec<RunDocument>,
}

impl RunDocument {
    /// A run and its calls that wait.
    #[must_use]
    pub fn new(run: &RunEntry, waiting: &[WaitingCall]) -> Self {
        let conversation = run.conversation.as_ref().map(ToString::to_string);
        Self {
            run: run.run.clone(),
            conversation: conversation.unwrap_or_default(),
            branch: run.branch.clone(),
            agent: run.agent.clone(),
            parent: run.parent.clone(),
            status: run.status.as_str().to_owned(),
            began: format_timestamp(run.started_ms),
            ended: run.ended_ms.map(format_timestamp),
            // As the run's own record writes it, so that both read alike.
            spent: serde_json::to_value(run.usage).unwrap_or_default(),
            result: run.result.clone(),
            why: run.reason.clone(),
            waiting: waiting.iter().map(Into::into).collect(),
        }
    }
}

impl From<&WaitingCall> for WaitingCallDocument {
    fn from(call: &WaitingCall) -> Self {
        let arguments = call.arguments.as_str();
        let parsed = serde_json::from_str(arguments);
        Self {
            call: call.node.to_string(),
            tool: call.tool.clone(),
            // Models write invalid JSON at times: a person who decides must see what they wrote.
            arguments: parsed.unwrap_or_else(|_| arguments.into()),
        }
    }
}
