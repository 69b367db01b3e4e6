//! `contexture backup`: the database as a second file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::database::{self, Missing, upkeep};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::printable::grouped;
use crate::say;

/// Copy the database to a new file, while others go on writing to it
///
/// The copy is the database as it was at one instant, conversations of all owners included, and can
/// be used in its place. No file is overwritten.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture backup contexture-2026-11-21.db
  contexture --db contexture-2026-11-21.db verify    # is the copy sound?")]
pub(crate) struct Arguments {
    /// The new file
    file: PathBuf,
}

/// Runs the command.
///
/// # Errors
/// The file exists or cannot be written, or the database cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let engine = database::open(globals, Missing::Refuse).await?;
    let done = upkeep(&engine)?.back_up(&arguments.file).await?;
    let file = arguments.file.display().to_string();
    if globals.json {
        say::json(&json!({ "file": file, "bytes": done.bytes }))?;
    } else if !globals.quiet {
        say::styled(&format!("{file}: {} bytes\n", grouped(done.bytes)))?;
    }
    Ok(Exit::Done)
}
