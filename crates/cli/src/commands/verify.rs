//! `contexture verify`: is what is stored what was written?

use clap::Args;
use contexture::store::{Error as StoreError, verify_conversation};
use serde_json::json;

use crate::database::{self, require_maintenance};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::count_with_noun;
use crate::output::write;

/// Check that what is stored is what was written
///
/// Every item is compared with its hash, every place, counter, name, state value and blob with what
/// it must be, and the database file with itself; a server's files where its extension amcheck is
/// installed. What is damaged is listed, and the rest stays readable. Changes nothing.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture verify                # all conversations, and the file
  contexture verify support-42")]
pub(crate) struct Arguments {
    /// Only this conversation; default: all of the owner's, and the database file
    conversation: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// The database or the list of conversations cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let owner = database::resolve_owner(globals)?;
    let named = arguments.conversation.as_deref();
    let (engine, ids) = database::select_conversations(globals, named, None).await?;
    let upkeep = require_maintenance(&engine)?;
    let (mut findings, mut checked, mut unchecked) = (Vec::new(), 0, None);
    // The file is checked as a whole, which is too much for one conversation.
    if arguments.conversation.is_none() {
        match upkeep.verify_medium().await {
            Ok(lines) => findings.extend(
                lines
                    .into_iter()
                    .map(|line| format!("the database: {line}")),
            ),
            // A database server checks its own files; that this was left out is told below.
            Err(error @ StoreError::NotOffered { .. }) => unchecked = Some(error.to_string()),
            Err(error) => return Err(error.into()),
        }
    }
    for id in &ids {
        let page = verify_conversation(upkeep, &owner, id).await?;
        checked += page.checked;
        findings.extend(page.findings.iter().map(ToString::to_string));
    }
    let conversations = ids.len() as u64;
    if globals.json {
        let document = json!({
            "conversations": conversations, "checked": checked, "findings": findings,
            "unchecked": unchecked,
        });
        write::print_json(&document)?;
    } else {
        for finding in &findings {
            write::print_styled(&format!("{finding}\n"))?;
        }
        if !globals.quiet {
            let what = count_with_noun(conversations, "conversation");
            let found = match findings.len() as u64 {
                0 => "nothing is damaged".to_owned(),
                count => count_with_noun(count, "finding"),
            };
            let rows = count_with_noun(checked, "row");
            if let Some(why) = &unchecked {
                write::print_stderr(&format!(
                    "the database's own files were not checked: {why}\n"
                ));
            }
            write::print_styled(&format!("{what}, {rows} checked: {found}\n"))?;
        }
    }
    Ok(match findings.is_empty() {
        true => Exit::Done,
        false => Exit::Findings,
    })
}
