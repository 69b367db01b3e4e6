//! `contexture checkpoint`: names that stay.

use std::fmt::Write as _;

use clap::Args;
use contexture::Conversation;
use contexture::store::Checkpoint;
use contexture_api::{CheckpointDocument, CheckpointsDocument};
use owo_colors::OwoColorize as _;
use serde_json::json;

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{display_width, pad_right, short_id};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::write;

/// Name the place where a branch ends, to come back to with `restore`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture checkpoint support-42 before-refund
  contexture checkpoint support-42                    # lists them
  contexture checkpoint support-42 before-refund --delete")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// The checkpoint's name, moved if there is one; without a name they are listed
    name: Option<String>,
    /// The branch; default: the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// Delete the name; the messages stay
    #[arg(long, conflicts_with = "branch")]
    delete: bool,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, branch or checkpoint, or the branch is empty.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let chat = database::open_conversation(globals, &arguments.conversation, branch).await?;
    match &arguments.name {
        // Not as a rule of the parser: `--delete` is a flag, and the name is optional for listing.
        None if arguments.delete => {
            return Err(Failure::usage("--delete needs the checkpoint's name"));
        }
        None => print_checkpoints(&chat, globals).await?,
        Some(name) if arguments.delete => {
            chat.delete_checkpoint(name).await?;
            if globals.json {
                write::print_json(&json!({ "deleted": name }))?;
            } else if !globals.quiet {
                write::print_styled(&format!("deleted checkpoint {name}; its messages stay\n"))?;
            }
        }
        Some(name) => {
            let checkpoint = chat.checkpoint(name).await?;
            print_checkpoint(&checkpoint, globals)?;
        }
    }
    Ok(Exit::Done)
}

/// Says where a checkpoint was set.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print_checkpoint(checkpoint: &Checkpoint, globals: &Globals) -> Outcome<()> {
    let (name, id) = (checkpoint.name.as_str(), checkpoint.node.to_string());
    if globals.json {
        return write::print_json(&CheckpointDocument::from(checkpoint));
    }
    if globals.quiet {
        return Ok(());
    }
    write::print_styled(&format!(
        "◆ {} · {}\n",
        name.green(),
        short_id(&id).magenta()
    ))
}

async fn print_checkpoints(chat: &Conversation, globals: &Globals) -> Outcome<()> {
    let checkpoints = chat.refs().await?.checkpoints;
    if globals.json {
        let checkpoints = checkpoints.iter().map(Into::into).collect();
        return write::print_json(&CheckpointsDocument { checkpoints });
    }
    let wide = checkpoints
        .iter()
        .map(|checkpoint| display_width(checkpoint.name.as_str()))
        .max();
    let now = now_ms();
    let mut out = String::new();
    for checkpoint in &checkpoints {
        let id = checkpoint.node.to_string();
        let _ = writeln!(
            out,
            "◆ {}  {}  {}",
            pad_right(checkpoint.name.as_str(), wide.unwrap_or(0)).green(),
            short_id(&id).magenta(),
            relative_time(checkpoint.at_ms, now).dimmed()
        );
    }
    write::print_styled(&out)
}
