//! Talking to a model: what `run`, `chat` and `resume` have in common.
//!
//! The options of an agent ([`agent_options`]), the model that answers ([`model`]), be it from a file
//! ([`scripted_model`]), what is shown while a run goes on ([`output`]) and at its end ([`run_result`]), and calls that
//! wait for approval ([`pending_calls`]). Not here: what a turn is, which is `contexture-runs`.

mod agent_options;
mod interrupt;
mod model;
mod output;
mod pending_calls;
mod run_errors;
mod run_result;
mod scripted_model;
mod toolbox;

pub(crate) use agent_options::AgentArguments;
pub(crate) use interrupt::drive_run;
pub(crate) use model::AnswerArguments;
pub(crate) use output::RunPrinter;
pub(crate) use pending_calls::{call_line, next_commands, waiting_text};
pub(crate) use run_result::print_run_result;
