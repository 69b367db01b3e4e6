//! `contexture pin` and `contexture unpin`: what stays in view, whatever is cleared or cut.

use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::place::{Place, find};
use crate::{database, say};

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
pub(crate) enum Deed {
    Pin,
    Unpin,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or message.
pub(crate) async fn run(arguments: &Arguments, deed: Deed, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let chat = database::conversation(globals, &arguments.conversation, branch).await?;
    let nodes = match find(&chat, &arguments.message).await? {
        Place::Message(_, nodes) => nodes.iter().map(|node| node.id).collect(),
        Place::Node(node) => vec![node.id],
    };
    let mut changed = Vec::new();
    for node in nodes {
        let done = match deed {
            Deed::Pin => chat.pin(node).await.map(|()| true)?,
            Deed::Unpin => chat.unpin(node).await?,
        };
        changed.extend(done.then(|| node.to_string()));
    }
    let word = match deed {
        Deed::Pin => "pinned",
        Deed::Unpin => "unpinned",
    };
    if globals.json {
        say::json(&json!({ word: changed }))?;
    } else if !globals.quiet {
        let short: Vec<&str> = changed.iter().filter_map(|id| id.get(..12)).collect();
        let told = if short.is_empty() {
            "nothing was pinned there\n".to_owned()
        } else {
            format!("{word} {}\n", short.join(" "))
        };
        say::styled(&told)?;
    }
    Ok(Exit::Done)
}
