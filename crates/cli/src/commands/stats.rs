//! `contexture stats`: what a conversation takes, or each of them.

use clap::Args;
use contexture::store::{StorageAmount, list_all};
use serde_json::{Map, Value, json};

use crate::database::{self, WhenMissing, require_maintenance};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{count_with_noun, group_thousands};
use crate::output::table::Column;
use crate::output::write;

/// Show what a conversation takes in the database, or how much each takes
///
/// Without a conversation all of the owner's are listed, the largest first, as `du` lists folders. Bytes are those of the
/// content as stored, compressed where it is.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture stats | head                         # the largest conversations
  contexture stats support-42
  contexture stats support-42 --json | jq .blobs.bytes")]
pub(crate) struct Arguments {
    /// The conversation; default: all, with one line each
    conversation: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, or the database cannot be read.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    match &arguments.conversation {
        Some(conversation) => print_one(conversation, globals).await,
        None => print_all(globals).await,
    }
}

/// Prints the size of each conversation, largest first, and of all.
async fn print_all(globals: &Globals) -> Outcome {
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let owner = database::resolve_owner(globals)?;
    let maintenance = require_maintenance(&engine)?;
    let mut sizes = Vec::new();
    for id in list_all(&**engine.store(), &owner, None).await? {
        let counted = maintenance.read_statistics(&owner, &id).await?;
        let items: u64 = counted.nodes.values().map(|amount| amount.count).sum();
        sizes.push((counted.total_bytes(), items, id));
    }
    sizes.sort_by(|left, right| right.cmp(left));
    let bytes: u64 = sizes.iter().map(|(bytes, ..)| bytes).sum();
    if globals.json {
        let rows = sizes
            .iter()
            .map(|(bytes, items, id)| json!({ "id": id.as_str(), "items": items, "bytes": bytes }));
        let rows: Vec<Value> = rows.collect();
        write::print_json(&json!({ "conversations": rows, "bytes": bytes }))?;
        return Ok(Exit::Done);
    }
    let size = |bytes: u64| format!("{} bytes", group_thousands(bytes));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (bytes, items, id) in &sizes {
        let items = count_with_noun(*items, "item");
        rows.push(vec![size(*bytes), items, id.to_string()]);
    }
    let many = count_with_noun(sizes.len() as u64, "conversation");
    let columns = [
        Column::figure("").with_rank(1),
        Column::figure(""),
        Column::id(""),
    ];
    write::print_table(&columns, &rows)?;
    write::print_sentence(&format!("{} in {many}\n", size(bytes)))?;
    Ok(Exit::Done)
}

async fn print_one(conversation: &str, globals: &Globals) -> Outcome {
    let chat = database::open_conversation(globals, conversation, None).await?;
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
        let there = rows.iter().filter(|(_, amount)| amount.count > 0);
        let there = there.map(|(name, amount)| {
            let bytes = match amount.bytes {
                // Not measured, or nothing there: a zero would say more than is known.
                0 => String::new(),
                bytes => format!("{} bytes", group_thousands(bytes)),
            };
            vec![(*name).to_owned(), group_thousands(amount.count), bytes]
        });
        let columns = [Column::word(""), Column::figure(""), Column::figure("")];
        write::print_table(&columns, &there.collect::<Vec<_>>())?;
    }
    Ok(Exit::Done)
}
