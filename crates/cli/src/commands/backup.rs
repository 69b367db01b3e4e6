//! `contexture backup`: the database as a second file.

use std::path::PathBuf;

use clap::Args;
use contexture::store::Error as StoreError;
use serde_json::json;

use crate::database::{self, WhenMissing, require_maintenance};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::group_thousands;
use crate::output::write;

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
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let done = require_maintenance(&engine)?.back_up(&arguments.file).await;
    let done = done.map_err(|error| {
        let is_there = matches!(error, StoreError::AlreadyExists { .. });
        let failure = Failure::from(error);
        match is_there {
            true => failure.with_hint(
                "no file is overwritten: name another one, with the date say, or remove it first",
            ),
            false => failure,
        }
    })?;
    let file = arguments.file.display().to_string();
    if globals.json {
        write::print_json(&json!({ "file": file, "bytes": done.bytes }))?;
    } else if !globals.quiet {
        write::print_sentence(&format!("{file}: {} bytes\n", group_thousands(done.bytes)))?;
    }
    Ok(Exit::Done)
}
