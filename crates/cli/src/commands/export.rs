//! `contexture export`: a conversation as a session file or a document.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use contexture::Format;
use contexture::sessions::SessionFormat;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::words::session_format;
use crate::{database, say};

/// Write a conversation as a session file or as a list of messages
///
/// In the format it was imported from, the file comes out as it went in, with what was said since
/// behind it. In another format it is one branch, as messages.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture export support-42 > support-42.json
  contexture export support-42 --to anthropic --branch main-v2
  contexture export swe-agent:marshmallow-1867 --to swe-agent -o again.traj")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// The format; default: the one it was imported from, else items
    #[arg(long, visible_alias = "format", value_parser = session_format())]
    to: Option<String>,
    /// The branch; default: the active one
    #[arg(long)]
    branch: Option<String>,
    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, it cannot be written in that format, or the file cannot be written.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let chat = database::conversation(globals, &arguments.conversation, branch).await?;
    let format = match &arguments.to {
        Some(name) => name.parse::<SessionFormat>()?,
        None => {
            chat.session(SessionFormat::Wire(Format::Items))
                .await?
                .format
        }
    };
    let text = chat.export(format).await?;
    match &arguments.output {
        None => say::raw(&text)?,
        Some(path) => fs::write(path, text).map_err(|error| {
            let message = format!("cannot write `{}`: {error}", path.display());
            Failure::new(Exit::Stream, "write", message)
                .hint("name a file in a directory that exists and that you may write to")
        })?,
    }
    Ok(Exit::Done)
}
