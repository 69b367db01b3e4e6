//! `contexture pin` and `contexture unpin`: what stays in view, whatever is cleared or cut.

use clap::Args;
use serde_json::json;

use crate::database;
use crate::options::globals::Globals;
use crate::options::node_ref::{NodeRef, resolve_node_ref};
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::write;

/// Keep a message in view, whatever is cleared or cut
///
/// The round it is in is sent whole in every request. What is pinned is required: a request that
/// has no room for it is refused.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture pin support-42 51c2
  contexture unpin support-42 51c2")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// The message, or the beginning of a node's id
    message: String,
    /// The branch; default: the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
}

/// What is done with the pins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinAction {
    Pin,
    Unpin,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or message.
pub(crate) async fn run(arguments: &Arguments, deed: PinAction, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let chat = database::open_conversation(globals, &arguments.conversation, branch).await?;
    let nodes = match resolve_node_ref(&chat, &arguments.message).await? {
        NodeRef::Message(_, nodes) => nodes.iter().map(|node| node.id).collect(),
        NodeRef::Node(node) => vec![node.id],
    };
    let mut changed = Vec::new();
    for node in nodes {
        let done = match deed {
            PinAction::Pin => chat.pin(node).await.map(|()| true)?,
            PinAction::Unpin => chat.unpin(node).await?,
        };
        // Taking back a pin that is not there changes nothing and is not reported.
        changed.extend(done.then(|| node.to_string()));
    }
    let word = match deed {
        PinAction::Pin => "pinned",
        PinAction::Unpin => "unpinned",
    };
    print_changed(word, &changed, globals)?;
    Ok(Exit::Done)
}

/// Prints the ids of the nodes that were pinned or unpinned.
fn print_changed(word: &str, changed: &[String], globals: &Globals) -> Outcome<()> {
    if globals.json {
        return write::print_json(&json!({ word: changed }));
    }
    if globals.quiet {
        return Ok(());
    }
    let short: Vec<&str> = changed.iter().filter_map(|id| id.get(..12)).collect();
    let told = if short.is_empty() {
        "nothing was pinned there\n".to_owned()
    } else {
        format!("{word} {}\n", short.join(" "))
    };
    write::print_sentence(&told)
}
