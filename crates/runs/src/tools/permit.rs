//! The permission to run a call once. Only the toolbox makes one.

use contexture_ir::Raw;
use contexture_layers::{Rerun, ToolRequest};
use contexture_tools::{Name, Resolved, Route, ToolId};

use super::handler::{ToolConcurrency, ToolOptions};

/// What a call comes to.
#[derive(Debug)]
pub enum Resolution {
    /// It may run at once.
    Allowed(Allowed),
    /// A person is to be asked; [`PendingApproval::approve`] takes a yes.
    Ask(PendingApproval),
}

/// A call that may run.
#[derive(Debug)]
pub enum Allowed {
    /// A call of a tool.
    Run(Permit),
    /// The loading of this toolkit: the host notes it as loaded, and answers with what is there now.
    Load(Name),
}

/// A call about which a person is to be asked. Dropping it refuses it.
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

/// Whether a person said yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApprovalState {
    NotAsked,
    Approved,
}

impl PendingApproval {
    /// A person said yes.
    #[must_use]
    pub fn approve(self) -> Allowed {
        let mut permit = self.permit;
        permit.approval = ApprovalState::Approved;
        permit.into_allowed()
    }

    /// What to ask about.
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

    /// The tool that was reached.
    #[must_use]
    pub fn tool(&self) -> &ToolId {
        &self.resolved.tool
    }

    /// The id by which the output answers.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The tool's own arguments, mended and checked.
    #[must_use]
    pub fn arguments(&self) -> &Raw {
        &self.resolved.arguments.raw
    }

    /// How the tool is run.
    #[must_use]
    pub fn options(&self) -> &ToolOptions {
        &self.options
    }

    /// What to do with the call if it was begun before a crash.
    #[must_use]
    pub(crate) fn rerun_policy(&self) -> Rerun {
        self.options.rerun
    }

    /// Whether it may run beside others.
    #[must_use]
    pub fn tool_concurrency(&self) -> ToolConcurrency {
        self.options.concurrency
    }

    /// The call as layers are asked about it.
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
