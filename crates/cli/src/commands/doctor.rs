//! `contexture doctor`: not there yet.

use clap::Args;

use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;

/// Soon
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

/// Runs the command.
///
/// # Errors
/// None.
pub(crate) async fn run(_arguments: &Arguments, _globals: &Globals) -> Outcome {
    Ok(Exit::Done)
}
