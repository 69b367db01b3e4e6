//! `contexture cancel`: ending a run, whoever carries it out.

use clap::Args;
use contexture::runs::{cancel_run, waiting_calls};
use contexture_api::RunDocument;

use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::options::run_ref::find_run;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::short_id;
use crate::output::write;

/// End a run: one that waits or was interrupted at once, one that another process drives within seconds
///
/// What it did stays; its calls without an output never run. A process that drives the run cuts off what is
/// in progress.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture cancel 0198f3a1
  contexture cancel 0198f3a1 --reason 'the order was withdrawn'")]
pub(crate) struct Arguments {
    /// The run, or the beginning of its id, as `contexture runs` shows it
    #[arg(value_name = "RUN")]
    run: String,
    /// Why, as `contexture runs` shows it
    #[arg(long, value_name = "TEXT", default_value = "the user cancelled it")]
    reason: String,
}

/// Runs the command.
///
/// # Errors
/// There is no such run, or the database cannot be used.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let owner = database::resolve_owner(globals)?;
    let found = find_run(&engine, &owner, &arguments.run).await?;
    let chat = engine
        .conversation(found.conversation.as_str())
        .owner(owner.as_str());
    let chat = chat.open_existing().await?;
    let ended = cancel_run(&chat, found.id, &arguments.reason).await?;
    if globals.json {
        let waiting = waiting_calls(&engine, &owner, &ended).await?;
        write::print_json(&RunDocument::new(&ended, &waiting))?;
        return Ok(Exit::Done);
    }
    if !globals.quiet {
        let name = short_id(&ended.run);
        match ended.status.is_open() {
            true => write::print_note(&format!(
                "{name} is driven by another process, which ends it within seconds\n"
            )),
            false => write::print_note(&format!("{name} is {}\n", ended.status.as_str())),
        }
    }
    Ok(Exit::Done)
}
