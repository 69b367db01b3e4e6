//! Options that several commands share, and the values they are parsed to.
//!
//! Each group of options is a struct that derives `clap::Args` and is flattened into the commands that take it. Help
//! texts are part of the interface: documentation comments on options reach users word for word. Not here: options of
//! one command, which stand with it.

pub(crate) mod compile_request;
pub(crate) mod conversation;
pub(crate) mod default_model;
pub(crate) mod globals;
pub(crate) mod history;
pub(crate) mod layers;
pub(crate) mod node_ref;
pub(crate) mod parse_values;
pub(crate) mod run_ref;
pub(crate) mod target;
