//! The permission to run a call once. Only the tool box creates one.

use contexture_ir::Raw;
use contexture_layers::{Rerun, ToolRequest};
use contexture_tools::{Name, Resolved, Route, ToolId};

use super::handler::{ToolConcurrency, ToolOptions};

/// Result of resolving a call.
#[derive(Debug)]
pub enum Resolution {
    /// It may run at once.
    Allowed(Allowed),
    /// A person has to approve it first; [`PendingApproval::approve`] records the approval.
    Ask(PendingApproval),
}

/// A call that may run.
#[derive(Debug)]
pub enum Allowed {
    /// A call of a tool.
    Run(Permit),
    /// Loads a toolkit: the host records it as loaded, and answers with the tools it adds.
    Load(Name),
}

/// A call that a person has to approve. Dropping it refuses the call.
#[derive(Debug)]
pub struct PendingApproval {
    permit: Permit,
}

/// The permission to run one call, once, with the arguments that were checked.
#[derive(Debug)]
pub struct Permit {
    pub(super) resolved: Resolved,
    pub(super) approval: ApprovalState,
    called: String,
    call_id: String,
    options: ToolOptions,
}

/// Whether a person approved the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalState {
    NotAsked,
    Approved,
}

impl PendingApproval {
    /// Records a person's approval.
    #[must_use]
    pub fn approve(self) -> Allowed {
        let mut permit = self.permit;
        permit.approval = ApprovalState::Approved;
        permit.into_allowed()
    }

    /// Returns the call to be approved.
    #[must_use]
    pub fn tool_request(&self) -> ToolRequest {
        self.permit.tool_request()
    }
}

impl Permit {
    pub(super) fn new(
        resolved: Resolved,
        called: &str,
        call_id: &str,
        options: ToolOptions,
    ) -> Self {
        Self {
            resolved,
            approval: ApprovalState::NotAsked,
            called: called.to_owned(),
            call_id: call_id.to_owned(),
            options,
        }
    }

    pub(super) fn into_pending(self) -> PendingApproval {
        PendingApproval { permit: self }
    }

    pub(super) fn into_allowed(self) -> Allowed {
        match self.resolved.route {
            Route::Load(toolkit) => Allowed::Load(toolkit),
            _ => Allowed::Run(self),
        }
    }

    /// Returns the tool that was resolved.
    #[must_use]
    pub fn tool(&self) -> &ToolId {
        &self.resolved.tool
    }

    /// Returns the provider's id of the call, which the output repeats.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Returns the tool's own arguments, repaired and checked.
    #[must_use]
    pub fn arguments(&self) -> &Raw {
        &self.resolved.arguments.raw
    }

    /// Returns how the tool is run.
    #[must_use]
    pub fn options(&self) -> &ToolOptions {
        &self.options
    }

    /// Returns what to do with the call if it was started before a crash.
    #[must_use]
    pub(crate) fn rerun_policy(&self) -> Rerun {
        self.options.rerun
    }

    /// Returns whether it may run in parallel with others.
    #[must_use]
    pub fn tool_concurrency(&self) -> ToolConcurrency {
        self.options.concurrency
    }

    /// Returns the call in the form that layers get.
    #[must_use]
    pub fn tool_request(&self) -> ToolRequest {
        ToolRequest {
            tool: self.resolved.tool.to_string(),
            called_name: self.called.clone(),
            call_id: self.call_id.clone(),
            arguments: self.resolved.arguments.raw.clone(),
        }
    }
}
