//! `contexture uncompact`: what a compaction stands for is shown again.

use clap::Args;
use contexture::engine::CoverEntry;
use serde_json::json;

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Take a compaction back: what it stands for is shown again
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture uncompact support-42          # the newest one
  contexture uncompact support-42 a01f")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// The beginning of the compaction's id; default: the newest one in effect
    compaction: Option<String>,
    /// The branch; default: the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, or no such compaction in effect.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let chat = database::open_conversation(globals, &arguments.conversation, branch).await?;
    let in_effect = chat.compactions().await?;
    let named = arguments
        .compaction
        .as_deref()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let entry = find_compaction(&in_effect, &named)?;
    chat.uncompact(entry.compaction).await?;
    let id = entry.compaction.to_string();
    if globals.json {
        write::print_json(&json!({ "uncompacted": id }))?;
    } else if !globals.quiet {
        write::print_sentence(&format!(
            "compaction {} stands for nothing now\n",
            id.get(..12).unwrap_or(&id)
        ))?;
    }
    Ok(Exit::Done)
}

/// The compaction whose id begins so; the newest where nothing is named.
fn find_compaction<'e>(in_effect: &'e [CoverEntry], named: &str) -> Outcome<&'e CoverEntry> {
    let mut found = in_effect
        .iter()
        // The newest first: without a name everything begins with the empty text, and the newest is
        // meant.
        .rev()
        .filter(|entry| entry.compaction.to_string().starts_with(named));
    let Some(entry) = found.next() else {
        let message = match in_effect.len() {
            0 => "no compaction is in effect on this branch".to_owned(),
            _ => format!("no compaction in effect begins with {named:?}"),
        };
        return Err(Failure::new(Exit::Refused, "not_in_effect", message));
    };
    if !named.is_empty() && found.next().is_some() {
        let message = format!("several compactions begin with {named:?}");
        return Err(Failure::new(Exit::Refused, "ambiguous", message));
    }
    Ok(entry)
}
