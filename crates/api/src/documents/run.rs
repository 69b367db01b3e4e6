//! Runs of agents, and their calls that wait for a decision.

use contexture::ir::Raw;
use contexture::runs::{ApprovalDecision, RunEntry, RunSpan, StoredDecision, WaitingCall};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::schema::RunStatusSchema;
use crate::time::format_timestamp;

/// A run of an agent, with its status and result.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunDocument {
    /// Id of the run, as 32 hexadecimal digits.
    pub run: String,
    /// Id of the conversation that it works in; empty if unknown.
    pub conversation: String,
    /// Name of the branch that it works on.
    pub branch: String,
    /// Name of the agent.
    pub agent: String,
    /// Id of its parent run; `null` if it has none.
    pub parent: Option<String>,
    /// Status of the run.
    #[schema(value_type = RunStatusSchema)]
    pub status: String,
    /// Time at which it began (RFC 3339).
    pub began: String,
    /// Time at which it ended (RFC 3339); `null` if it has not ended.
    pub ended: Option<String>,
    /// Usage and cost, child runs included; `null` if it has not ended.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub spent: Value,
    /// Result of the run, as text; `null` if there is none.
    pub result: Option<String>,
    /// Reason why it was aborted or failed; `null` otherwise.
    pub why: Option<String>,
    /// Calls of the run and of its child runs that wait for a decision.
    pub waiting: Vec<WaitingCallDocument>,
}

/// A tool call that waits for a decision.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WaitingCallDocument {
    /// Id of the node that holds the call.
    pub call: String,
    /// Name of the tool that is called.
    pub tool: String,
    /// Arguments of the call as JSON; a string with the model's text if that is not valid JSON.
    #[schema(value_type = Value)]
    pub arguments: Value,
    /// Decision about it, which holds; `null` if nobody has decided. The run applies it once it is resumed.
    pub decided: Option<DecidedDocument>,
}

/// A decision about a call that waits.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DecidedDocument {
    /// `allow` or `deny`.
    pub what: String,
    /// Reason of a denial, for the model; `null` otherwise.
    pub reason: Option<String>,
    /// Who decided; `null` if that was not stored.
    pub by: Option<String>,
    /// Time of the decision (RFC 3339).
    pub at: String,
}

/// A run to queue.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueRunDocument {
    /// Id of the conversation in which it works.
    pub conversation: String,
    /// Name of the branch on which it works. Default: the active one.
    pub branch: Option<String>,
    /// Name of the agent. A program that has an agent of this name takes the run up.
    pub agent: String,
    /// What the agent is told: the user's text, or items.
    pub input: RunInput,
}

/// What an agent is told.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum RunInput {
    /// Text of the user.
    Text(String),
    /// Items, as `items` of an append.
    #[schema(value_type = Vec<Value>)]
    Items(Vec<Raw>),
}

/// Runs, the newest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunsDocument {
    /// The runs, newest first.
    pub runs: Vec<RunDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
}

/// What a run and its child runs did when.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunTimelineDocument {
    /// The run as it is now.
    pub run: RunDocument,
    /// Time at which it ended, or of this answer if it has not (RFC 3339).
    pub until: String,
    /// What was done, in the order in which it began; what a child run did stands behind the call that began it.
    pub spans: Vec<RunSpanDocument>,
}

/// A stretch of time within a run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunSpanDocument {
    /// Id of the run that it belongs to, which may be a child run.
    pub run: String,
    /// Name of that run's agent.
    pub agent: String,
    /// How many runs are above that run, up to the one that was asked for.
    pub depth: usize,
    /// What happened: `run` (a run, as a whole), `model` (it was asked and answered), `tool` (a tool or a sub-agent was called) or
    /// `approval` (a call waited for a decision).
    pub what: &'static str,
    /// Number of the step; `null` for what belongs to none.
    pub step: Option<u32>,
    /// Name of the tool that was called; `null` for what is no call.
    pub tool: Option<String>,
    /// Id of the first node of the answer, or of the node of the call; `null` if there is none yet.
    pub node: Option<String>,
    /// Time at which it began (RFC 3339): what came before it was stored then.
    pub began: String,
    /// Time at which it ended (RFC 3339); `null` if it goes on.
    pub ended: Option<String>,
}

impl RunTimelineDocument {
    /// Creates the document of a run and what it did, as of a time in milliseconds since the Unix epoch.
    #[must_use]
    pub fn new(run: &RunEntry, waiting: &[WaitingCall], spans: &[RunSpan], now_ms: i64) -> Self {
        Self {
            run: RunDocument::new(run, waiting),
            until: format_timestamp(run.ended_ms.unwrap_or(now_ms)),
            spans: spans.iter().map(RunSpanDocument::from).collect(),
        }
    }
}

impl From<&RunSpan> for RunSpanDocument {
    fn from(span: &RunSpan) -> Self {
        Self {
            run: span.run.clone(),
            agent: span.agent.clone(),
            depth: span.depth,
            what: span.kind.as_str(),
            step: span.step,
            tool: span.tool.clone(),
            node: span.node.map(|node| node.to_string()),
            began: format_timestamp(span.started_ms),
            ended: span.ended_ms.map(format_timestamp),
        }
    }
}

impl<'de> Deserialize<'de> for RunInput {
    // By hand: an untagged enum reads its members from a buffer, which has no raw JSON.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        let read = match raw.get().trim_start().as_bytes().first() {
            Some(b'"') => raw.parse_as().map(Self::Text),
            Some(b'[') => raw.parse_as().map(Self::Items),
            _ => {
                return Err(D::Error::custom(
                    "`input` is neither a text nor a list of items",
                ));
            }
        };
        read.map_err(D::Error::custom)
    }
}

impl RunDocument {
    /// Creates the document of a run and its waiting calls.
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
            decided: call.decided.as_ref().map(Into::into),
        }
    }
}

impl From<&StoredDecision> for DecidedDocument {
    fn from(decided: &StoredDecision) -> Self {
        let (what, reason) = match &decided.decision {
            ApprovalDecision::Allow => ("allow", None),
            ApprovalDecision::Deny { reason } => ("deny", Some(reason.clone())),
            ApprovalDecision::Later => ("later", None),
        };
        Self {
            what: what.to_owned(),
            reason,
            by: decided.by.clone(),
            at: format_timestamp(decided.at_ms),
        }
    }
}
