//! Human approval of a tool call.

use std::fmt;

use async_trait::async_trait;
use contexture_ir::NodeId;
use contexture_layers::ToolRequest;
use serde::{Deserialize, Serialize};

use crate::context::RunContext;

/// Decision of a person about a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum ApprovalDecision {
    /// The call may run.
    Allow,
    /// The call may not run; the model is given the reason.
    Deny {
        /// Reason, shown to the model.
        reason: String,
    },
    /// No decision yet: the run waits, and is resumed once somebody has decided.
    Later,
}

impl ApprovalDecision {
    /// Returns what was decided, as sentences say it: `allowed`, `denied` or `left open`.
    #[must_use]
    pub const fn past_text(&self) -> &'static str {
        match self {
            Self::Allow => "allowed",
            Self::Deny { .. } => "denied",
            Self::Later => "left open",
        }
    }

    /// Says who decided, as lists of runs show it.
    ///
    /// ```
    /// use contexture_runs::ApprovalDecision;
    ///
    /// let decision = ApprovalDecision::Allow.by("ada@example.org");
    /// assert_eq!(decision.by.as_deref(), Some("ada@example.org"));
    /// ```
    #[must_use]
    pub fn by(self, who: impl Into<String>) -> Decision {
        Decision {
            decision: self,
            by: Some(who.into()),
        }
    }
}

/// A decision to be stored, and who made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What was decided.
    pub decision: ApprovalDecision,
    /// Who decided, in the words of the program; `None` if that is not to be stored.
    pub by: Option<String>,
}

impl From<ApprovalDecision> for Decision {
    fn from(decision: ApprovalDecision) -> Self {
        Self { decision, by: None }
    }
}

/// A decision as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDecision {
    /// What was decided.
    pub decision: ApprovalDecision,
    /// Who decided, if that was stored.
    pub by: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

impl fmt::Display for StoredDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.decision.past_text();
        let by = self.by.as_deref().unwrap_or("somebody");
        write!(f, "{what} by {by} at {} ms", self.at_ms)
    }
}

/// A call without an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingCall {
    /// Node of the call.
    pub node: NodeId,
    /// Name of the tool.
    pub tool: String,
    /// Arguments as the model wrote them; usually JSON.
    pub arguments: String,
    /// What a person decided about it. The run applies that once it is resumed.
    pub decided: Option<StoredDecision>,
}

/// Decides about calls that a policy or a layer leaves to a person.
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync {
    /// Decides about a call of a run. `reason` is the layer's reason for asking; empty if only the policy asks.
    async fn decide(&self, call: &ToolRequest, reason: &str, run: &RunContext) -> ApprovalDecision;
}

/// Approver that never decides, so the run waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoApprover;

#[async_trait]
impl Approver for NoApprover {
    async fn decide(&self, _: &ToolRequest, _: &str, _: &RunContext) -> ApprovalDecision {
        ApprovalDecision::Later
    }
}
