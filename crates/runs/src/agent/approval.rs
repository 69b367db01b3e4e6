//! Human approval of a tool call.

use std::fmt;

use async_trait::async_trait;
use contexture_layers::ToolRequest;
use serde::{Deserialize, Serialize};

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

/// Decides about calls that a policy or a layer leaves to a person.
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync {
    /// Decides about a call. `reason` is the layer's reason for asking; empty if only the policy asks.
    async fn decide(&self, call: &ToolRequest, reason: &str) -> ApprovalDecision;
}

/// Approver that never decides, so the run waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoApprover;

#[async_trait]
impl Approver for NoApprover {
    async fn decide(&self, _: &ToolRequest, _: &str) -> ApprovalDecision {
        ApprovalDecision::Later
    }
}
