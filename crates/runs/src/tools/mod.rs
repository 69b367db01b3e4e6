//! Tools that a run can call.
//!
//! A [`ToolBox`] holds tools with what runs them. The only way to run one is a [`Permit`], and the only way to a permit is
//! [`ToolBox::resolve_call`], which reads the call, checks its arguments and asks the policy; so it is one gate for what models
//! call, what programs call, and what people approve. [`ToolBox::run_tool`] asks the policy once more, for it may have changed.
//!
//! Not here: which tools a model is offered (`contexture-tools`), when tools run and what is kept of them, layers' gates.

mod handler;
mod permit;
mod toolbox;

pub use handler::{
    ToolCall, ToolConcurrency, ToolFailure, ToolHandler, ToolOptions, ToolOutput,
    function_call_output,
};
pub use permit::{Allowed, PendingApproval, Permit, Resolution};
pub use toolbox::ToolBox;
