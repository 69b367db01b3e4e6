//! `contexture rewind`: back to a message, or to the beginning.

use clap::Args;
use contexture::Conversation;
use contexture::engine::tree::load_newest_message;
use contexture::store::Branch;

use crate::commands::branch::print_branch;
use crate::database;
use crate::options::globals::Globals;
use crate::options::node_ref::{NodeRef, resolve_node_ref};
use crate::output::exit::Exit;
use crate::output::failure::Outcome;

/// Go back to a message, or before the first: a new active branch that ends there
///
/// Nothing is lost: what came after stays on the branch left behind. If the active branch ends there already, it stays.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture rewind support-42 51c2
  contexture rewind support-42 --beginning    # an empty branch
  contexture branch switch support-42 main    # and back again")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// A message's id, or the beginning of an id that `log` shows
    #[arg(required_unless_present = "beginning")]
    message: Option<String>,
    /// Before the first message
    #[arg(long, conflicts_with = "message")]
    beginning: bool,
    /// The branch on which the message is looked for first; default: the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or message, or it is on several branches and ends differently.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let chat = database::open_conversation(globals, &arguments.conversation, branch).await?;
    let place = match &arguments.message {
        None => None,
        Some(message) => Some(resolve_node_ref(&chat, message).await?),
    };
    if let Some(here) = find_standing_branch(&chat, place.as_ref()).await? {
        print_branch("already there: on", &here, globals)?;
        return Ok(Exit::Done);
    }
    let branch = match place {
        None => chat.clear().await?,
        // A message's id keeps the whole of it; a node's may stand in the middle of one.
        Some(NodeRef::Message(id, _)) => chat.rewind(&id).await?,
        Some(NodeRef::Node(node)) => chat.rewind_to(node.id).await?,
    };
    print_branch("now on", &branch, globals)?;
    Ok(Exit::Done)
}

/// The active branch, if it is asked for and ends at the place already: one more would be the same under another name.
async fn find_standing_branch(
    chat: &Conversation,
    place: Option<&NodeRef>,
) -> Outcome<Option<Branch>> {
    let newest = load_newest_message(chat).await?.map(|node| node.id);
    let is_there = match (place, newest) {
        (None, newest) => newest.is_none(),
        (Some(NodeRef::Node(node)), newest) => newest == Some(node.id),
        (Some(NodeRef::Message(_, nodes)), Some(newest)) => {
            nodes.iter().any(|node| node.id == newest)
        }
        (Some(NodeRef::Message(..)), None) => false,
    };
    let branches = chat.refs().await?.branches.into_iter();
    // Another branch than the active one is made active by going there.
    let mut here = branches.filter(|branch| branch.active && branch.name == chat.branch());
    Ok(here.next().filter(|_| is_there))
}
