//! `contexture man`: the manual, as packages install it.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// Write the manual pages into a folder
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_long_help = "\
The folder is made if it does not exist. Releases have these pages under share/man/man1.

Examples:
  contexture man ~/.local/share/man/man1"
)]
pub(crate) struct Arguments {
    /// The folder
    folder: PathBuf,
}

/// Runs the command: one page for the program, and one for each command.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn run(arguments: &Arguments, command: clap::Command) -> Outcome {
    let folder = &arguments.folder;
    let written =
        fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(|error| {
        let message = format!("cannot write pages into `{}`: {error}", folder.display());
        Failure::new(Exit::Stream, "write", message)
    })?;
    Ok(Exit::Done)
}
