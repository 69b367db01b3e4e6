//! `contexture checkpoint`: names that stay.

use clap::Args;
use contexture::Conversation;
use contexture::EngineError;
use contexture::store::{Checkpoint, Error as StoreError};
use contexture_api::{CheckpointDocument, CheckpointsDocument};
use owo_colors::OwoColorize as _;
use serde_json::json;

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::short_id;
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::table::Column;
use crate::output::write;

/// Name the place where a branch ends, to come back to with `restore`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture checkpoint support-42 before-refund
  contexture checkpoint support-42 before-refund --move
  contexture checkpoint support-42                    # lists them
  contexture checkpoint support-42 before-refund --delete")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// The checkpoint's name; without a name they are listed
    name: Option<String>,
    /// The branch; default: the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// Move the checkpoint of this name here, if there is one
    #[arg(long = "move", requires = "name", conflicts_with = "delete")]
    moves: bool,
    /// Delete the name; the messages stay
    #[arg(long, conflicts_with = "branch")]
    delete: bool,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, branch or checkpoint, the branch is empty, or the name is taken.
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
                write::print_sentence(&format!("deleted checkpoint {name}; its messages stay\n"))?;
            }
        }
        Some(name) => {
            let set = match arguments.moves {
                true => (&chat.move_checkpoint(name).await?).into(),
                false => (&create_checkpoint(&chat, name).await?).into(),
            };
            print_checkpoint(&set, globals)?;
        }
    }
    Ok(Exit::Done)
}

/// Says where a checkpoint was set.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print_checkpoint(checkpoint: &CheckpointDocument, globals: &Globals) -> Outcome<()> {
    if globals.json {
        return write::print_json(checkpoint);
    }
    if globals.quiet {
        return Ok(());
    }
    let (name, id) = (checkpoint.name.green(), short_id(&checkpoint.node));
    let from = match &checkpoint.moved_from {
        Some(from) => format!(" · moved from {}", short_id(from).magenta()),
        None => String::new(),
    };
    write::print_sentence(&format!("◆ {name} · {}{from}\n", id.magenta()))
}

/// Makes a checkpoint where the branch ends.
///
/// # Errors
/// The name is taken, or the branch is empty.
pub(crate) async fn create_checkpoint(chat: &Conversation, name: &str) -> Outcome<Checkpoint> {
    let made = chat.checkpoint(name).await;
    made.map_err(|error| {
        let taken = matches!(error, EngineError::Store(StoreError::AlreadyExists { .. }));
        let failure = Failure::from(error);
        match taken {
            true => failure.with_hint(format!(
                "`contexture checkpoint {} {name} --move` moves it here",
                chat.id()
            )),
            false => failure,
        }
    })
}

async fn print_checkpoints(chat: &Conversation, globals: &Globals) -> Outcome<()> {
    let checkpoints = chat.refs().await?.checkpoints;
    if globals.json {
        let checkpoints = checkpoints.iter().map(Into::into).collect();
        return write::print_json(&CheckpointsDocument {
            checkpoints,
            next: None,
        });
    }
    let now = now_ms();
    let row = |checkpoint: &Checkpoint| {
        let id = checkpoint.node.to_string();
        vec![
            "◆".to_owned(),
            checkpoint.name.to_string(),
            short_id(&id).to_owned(),
            relative_time(checkpoint.at_ms, now),
        ]
    };
    let rows: Vec<_> = checkpoints.iter().map(row).collect();
    write::print_table(&COLUMNS, &rows)
}

/// How the list is laid out: a mark, the name, the node and the age.
const COLUMNS: [Column; 4] = [
    Column::word("").with_rank(2),
    Column::id("").with_paint(|name| name.green().to_string()),
    Column::word("")
        .with_rank(1)
        .with_paint(|node| node.magenta().to_string()),
    Column::word("").with_paint(|age| age.dimmed().to_string()),
];
