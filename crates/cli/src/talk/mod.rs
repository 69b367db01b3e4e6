//! Talking to a model: what `run`, `chat` and `resume` have in common.
//!
//! Within which limits ([`arguments`]), what answers ([`answering`]), be it from files ([`script`]), what is shown while
//! it goes on ([`teller`]) and at its end ([`ending`]). Not here: what a turn is, which is `contexture-runs`.

mod answering;
mod arguments;
mod ending;
mod failures;
mod interrupt;
mod reading;
mod script;
mod teller;
mod waiting;
mod whereabouts;

pub(crate) use answering::AnswerArguments;
pub(crate) use arguments::AgentArguments;
pub(crate) use ending::print_run_result;
pub(crate) use interrupt::drive_run;
pub(crate) use teller::RunPrinter;
pub(crate) use waiting::{call_line, next_commands, waiting_line};
pub(crate) use whereabouts::ConversationArguments;
