//! A person's word on a call.

use std::fmt;

use async_trait::async_trait;
use contexture_layers::ToolRequest;
use serde::{Deserialize, Serialize};

/// What a person decides about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "decision")]
pub enum ApprovalDecision {
    /// It may run.
    Allow,
    /// It may not; the model is told this.
    Deny {
        /// Why, for the model.
        reason: String,
    },
    /// Nobody knows yet: the run waits, and is resumed once somebody has decided.
    Later,
}

/// Whoever is asked about calls that a policy or a layer leaves to a person.
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync {
    /// Decides about a call. `reason` is what a layer says of it; empty if a policy asks.
    async fn decide(&self, call: &ToolRequest, reason: &str) -> ApprovalDecision;
}

/// Nobody to ask: the run waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoApprover;

#[async_trait]
impl Approver for NoApprover {
    async fn decide(&self, _: &ToolRequest, _: &str) -> ApprovalDecision {
        ApprovalDecision::Later
    }
}
