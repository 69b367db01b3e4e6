//! `contexture branch`: names that move.

use clap::{Args, Subcommand};
use contexture::Conversation;
use contexture::store::Branch;
use contexture_api::{BranchDocument, BranchesDocument};
use owo_colors::OwoColorize as _;
use serde_json::json;

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{count_with_noun, short_id};
use crate::output::table::Column;
use crate::output::write;

/// List, make, switch or delete branches
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture branch list support-42
  contexture branch create support-42 what-if
  contexture branch switch support-42 what-if
  contexture branch delete support-42 main-v2")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: BranchAction,
}

#[derive(Debug, Subcommand)]
enum BranchAction {
    /// List the branches
    List {
        /// The conversation
        conversation: String,
    },
    /// Make a branch where the active branch ends, without switching to it
    Create {
        /// The conversation
        conversation: String,
        /// The new branch's name
        name: String,
        /// Make it where this branch ends
        #[arg(long, value_name = "BRANCH")]
        from: Option<String>,
    },
    /// Make a branch the active one
    Switch {
        /// The conversation
        conversation: String,
        /// The branch
        name: String,
    },
    /// Delete a branch's name; its messages stay
    Delete {
        /// The conversation
        conversation: String,
        /// The branch
        name: String,
    },
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or branch, or the name is taken.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    match &arguments.action {
        BranchAction::List { conversation } => {
            let chat = database::open_conversation(globals, conversation, None).await?;
            print_branches(&chat, globals).await?;
        }
        BranchAction::Create {
            conversation,
            name,
            from,
        } => {
            let chat = database::open_conversation(globals, conversation, from.as_deref()).await?;
            let branch = chat.create_branch(name).await?;
            print_branch("made", &branch, globals)?;
        }
        BranchAction::Switch { conversation, name } => {
            let chat = database::open_conversation(globals, conversation, None).await?;
            let branch = chat.switch_branch(name).await?;
            print_branch("switched to", &branch, globals)?;
        }
        BranchAction::Delete { conversation, name } => {
            let chat = database::open_conversation(globals, conversation, None).await?;
            delete_branch(&chat, name, globals).await?;
        }
    }
    Ok(Exit::Done)
}

/// Deletes a branch, and tells the way back to its messages.
async fn delete_branch(chat: &Conversation, name: &str, globals: &Globals) -> Outcome<()> {
    // Read before the name is gone: the head is the only way back to its messages.
    let branches = chat.refs().await?.branches;
    let branch = branches.iter().find(|branch| branch.name.as_str() == name);
    let head = branch.and_then(|branch| branch.head);
    chat.delete_branch(name).await?;
    if globals.json {
        let head = head.map(|head| head.to_string());
        write::print_json(&json!({ "deleted": name, "head": head }))?;
    } else if !globals.quiet {
        write::print_sentence(&format!("deleted branch {name}\n"))?;
        if let Some(head) = head {
            write::print_note(&format!(
                "its messages stay: `contexture rewind {} {}` goes back to them\n",
                chat.id(),
                short_id(&head.to_string())
            ));
        }
    }
    Ok(())
}

/// Says what became of a branch.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn print_branch(what: &str, branch: &Branch, globals: &Globals) -> Outcome<()> {
    if globals.json {
        return write::print_json(&BranchDocument::from(branch));
    }
    if globals.quiet {
        return Ok(());
    }
    let messages = count_with_noun(branch.messages, "message");
    write::print_sentence(&format!(
        "{what} branch {} · {messages}\n",
        branch.name.as_str().green()
    ))
}

/// Lists the branches.
///
/// # Errors
/// The store's, or the output cannot be written.
pub(crate) async fn print_branches(chat: &Conversation, globals: &Globals) -> Outcome<()> {
    let refs = chat.refs().await?;
    if globals.json {
        let branches = refs.branches.iter().map(Into::into).collect();
        return write::print_json(&BranchesDocument {
            branches,
            next: None,
        });
    }
    let rows: Vec<_> = refs.branches.iter().map(branch_row).collect();
    write::print_table(&COLUMNS, &rows)
}

/// How the list is laid out: the active branch, its name, its messages and its head.
const COLUMNS: [Column; 4] = [
    Column::word("").with_rank(2),
    Column::id("").with_paint(|name| name.green().to_string()),
    Column::figure(""),
    Column::word("")
        .with_rank(1)
        .with_paint(|head| head.magenta().to_string()),
];

fn branch_row(branch: &Branch) -> Vec<String> {
    let head = branch.head.map_or("(empty)".to_owned(), |head| {
        short_id(&head.to_string()).to_owned()
    });
    vec![
        if branch.active { "@" } else { "" }.to_owned(),
        branch.name.to_string(),
        count_with_noun(branch.messages, "message"),
        head,
    ]
}
