//! `contexture restore`: back to a checkpoint.

use clap::Args;

use crate::commands::branch::print_branch;
use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;

/// Go back to a checkpoint: a new active branch that ends there
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture restore support-42 before-refund")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// The checkpoint
    checkpoint: String,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or checkpoint.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let chat = database::open_conversation(globals, &arguments.conversation, None).await?;
    let branch = chat.restore(&arguments.checkpoint).await?;
    print_branch("now on", &branch, globals)?;
    Ok(Exit::Done)
}
