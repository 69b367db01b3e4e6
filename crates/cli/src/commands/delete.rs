//! `contexture delete`: conversations that are to be gone.

use clap::Args;
use contexture::store::{EraseScope, erase_all};
use serde_json::json;

use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::count_with_noun;
use crate::output::write;

/// Delete a conversation, or everything of an owner or about a subject
///
/// What is deleted is gone: items, state, blobs, values, search text. Nothing brings it back but a
/// backup.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture delete support-42
  contexture export --all --resource ada@example.org -o ada.jsonl    # what there is
  contexture delete --all --resource ada@example.org --yes           # and away
  contexture --owner tenant/bob delete --all --yes")]
pub(crate) struct Arguments {
    /// The conversation
    #[arg(required_unless_present = "all")]
    conversation: Option<String>,
    /// Everything of the owner: conversations and values
    #[arg(long, conflicts_with = "conversation", requires = "yes")]
    all: bool,
    /// With --all: only what belongs to this resource
    #[arg(
        long,
        requires = "all",
        conflicts_with = "conversation",
        value_name = "RESOURCE"
    )]
    resource: Option<String>,
    /// Yes, this is meant; needed with --all
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, or the database cannot be written.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let (conversations, values) = delete_selected(arguments, globals).await?;
    if globals.json {
        write::print_json(&json!({ "conversations": conversations, "values": values }))?;
    } else if !globals.quiet {
        let values = match values {
            0 => String::new(),
            many => format!(" and {}", count_with_noun(many, "value")),
        };
        let what = count_with_noun(conversations, "conversation");
        write::print_sentence(&format!("{what}{values} deleted\n"))?;
    }
    Ok(Exit::Done)
}

/// Deletes what the arguments name, and returns how many conversations and values that were.
async fn delete_selected(arguments: &Arguments, globals: &Globals) -> Outcome<(u64, u64)> {
    let owner = database::resolve_owner(globals)?;
    if let Some(id) = &arguments.conversation {
        let chat = database::open_conversation(globals, id, None).await?;
        chat.engine().delete_conversation(&owner, chat.id()).await?;
        return Ok((1, 0));
    }
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let scope = match &arguments.resource {
        Some(name) => EraseScope::Resource(name.clone()),
        None => EraseScope::Owner,
    };
    // Values that belong to no conversation go too: nothing of the person may be left.
    let erased = erase_all(&**engine.store(), &owner, &scope).await?;
    Ok((erased.conversations, erased.entries))
}
