//! Calls of tools: what a model wrote, read and taken to the tool that it means.
//!
//! A [`Call`] is a name and a text of arguments, from an item of ours or a provider's JSON ([`parse`]). [`arguments`]
//! reads that text, and mends it where only one reading is possible. [`resolve`] finds the tool by any route by which a
//! model reaches it (its own name, a namespace's action, the loader), holds the arguments against its schema and asks
//! the policy. Each step keeps what the model wrote, so that an error can quote it.
//!
//! Not here: running a tool, and pairing its output with the call.

pub mod arguments;
mod parse;
mod resolve;

pub use arguments::{Arguments, ArgumentsError, Issue, IssueKind};
pub use parse::{Call, CallError};
pub use resolve::{ResolveError, Resolved, Route};
