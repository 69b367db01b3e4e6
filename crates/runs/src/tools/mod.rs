//! Tools that a run can call.
//!
//! A [`ToolBox`] holds tools with their handlers. The only way to run one is a [`Permit`], and the only way to a permit
//! is [`ToolBox::resolve_call`], which parses the call, checks its arguments and asks the policy; so there is one gate
//! for calls by models, by programs, and with approval. [`ToolBox::run_tool`] asks the policy again, because it may
//! have changed.
//!
//! A [`TypedTool`] takes its schema from the types of its function.
//!
//! Not here: which tools a model is offered (`contexture-tools`), when tools run and what is stored of them, layers'
//! gates.

mod handler;
mod permit;
mod toolbox;
mod typed;

pub use handler::{
    ToolCall, ToolConcurrency, ToolFailure, ToolHandler, ToolOptions, ToolOutput,
    function_call_output,
};
pub use permit::{Allowed, PendingApproval, Permit, Resolution};
pub use toolbox::ToolBox;
pub(crate) use typed::schema_of_type;
pub use typed::{NoArguments, TypedTool};
