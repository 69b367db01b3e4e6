//! `contexture gc`: space back.

use clap::Args;
use contexture::store::{CollectRequest, list_all};
use serde_json::json;

use crate::database::{self, WhenMissing, require_maintenance};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{count_with_noun, group_thousands};
use crate::output::relative_time::now_ms;
use crate::output::write;

/// Remove blobs that nothing names, and give unused space back to the file system
///
/// A blob goes when it was found unnamed an hour before already. Others may go on writing.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture gc
  contexture gc --json")]
pub(crate) struct Arguments {}

/// Runs the command.
///
/// # Errors
/// The database cannot be read or written.
pub(crate) async fn run(_: &Arguments, globals: &Globals) -> Outcome {
    let owner = database::resolve_owner(globals)?;
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let upkeep = require_maintenance(&engine)?;
    let (mut blobs, mut bytes, mut waiting) = (0, 0, 0);
    for id in list_all(&**engine.store(), &owner, None).await? {
        loop {
            // In steps, so that others can write in between.
            let request = CollectRequest::new(now_ms());
            let done = upkeep.collect_blobs(&owner, &id, request).await?;
            blobs += done.blobs.count;
            bytes += done.blobs.bytes;
            if !done.more {
                waiting += done.waiting;
                break;
            }
        }
    }
    // After the blobs: the space they leave is given back to the system here.
    let size = upkeep.compact_storage().await?;
    if globals.json {
        write::print_json(&json!({
            "blobs": blobs, "bytes": bytes, "waiting": waiting,
            "before": size.before, "after": size.after,
        }))?;
    } else if !globals.quiet {
        let gained = size.before.saturating_sub(size.after);
        let mut text = format!(
            "{} removed ({} bytes)",
            count_with_noun(blobs, "blob"),
            group_thousands(bytes)
        );
        if waiting > 0 {
            text.push_str(&format!(", {waiting} may go in an hour"));
        }
        text.push_str(&format!(
            "; the database is {} bytes, {} less\n",
            group_thousands(size.after),
            group_thousands(gained)
        ));
        write::print_sentence(&text)?;
    }
    Ok(Exit::Done)
}
