//! `contexture stats`: what a conversation takes.

use std::fmt::Write as _;

use clap::Args;
use contexture::store::StorageAmount;
use serde_json::{Map, Value, json};

use crate::database::{self, require_maintenance};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{group_thousands, pad_left, pad_right};
use crate::output::write;

/// Show what a conversation takes in the database
///
/// Bytes are those of the content as stored, compressed where it is.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture stats support-42
  contexture stats support-42 --json | jq .blobs.bytes")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, or the database cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let chat = database::open_conversation(globals, &arguments.conversation, None).await?;
    let owner = database::resolve_owner(globals)?;
    let counted = require_maintenance(chat.engine())?
        .read_statistics(&owner, chat.id())
        .await?;
    let mut rows: Vec<(&str, StorageAmount)> = counted
        .nodes
        .iter()
        .map(|(kind, amount)| (kind.as_str(), *amount))
        .collect();
    rows.extend([
        ("state", counted.roots),
        ("values of state", counted.values),
        ("blobs", counted.blobs),
        ("values beside", counted.entries),
    ]);
    // The store counts these and does not measure them.
    let plain = |count: u64| StorageAmount { count, bytes: 0 };
    rows.extend([
        ("names", plain(counted.names)),
        ("events", plain(counted.events)),
        ("segments", plain(counted.segments)),
    ]);
    if globals.json {
        let rows = rows.iter().map(|(name, amount)| {
            let amount = json!({ "count": amount.count, "bytes": amount.bytes });
            (name.replace(' ', "_"), amount)
        });
        write::print_json(&Value::Object(rows.collect::<Map<_, _>>()))?;
    } else {
        let mut out = String::new();
        for (name, amount) in rows.iter().filter(|(_, amount)| amount.count > 0) {
            let count = pad_left(&group_thousands(amount.count), 10);
            let bytes = match amount.bytes {
                // Not measured, or nothing there: a zero would say more than is known.
                0 => String::new(),
                bytes => format!("{} bytes", pad_left(&group_thousands(bytes), 14)),
            };
            let _ = writeln!(out, "{}{count}{bytes}", pad_right(name, 18));
        }
        write::print_styled(&out)?;
    }
    Ok(Exit::Done)
}
