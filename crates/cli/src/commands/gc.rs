//! `contexture gc`: space back.

use clap::Args;
use contexture::store::{CollectRequest, list_all};
use serde_json::json;

use crate::ago::now_ms;
use crate::database::{self, Missing, upkeep};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::printable::{counted, grouped};
use crate::say;

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
    let owner = database::owner(globals)?;
    let engine = database::open(globals, Missing::Refuse).await?;
    let upkeep = upkeep(&engine)?;
    let (mut blobs, mut bytes, mut waiting) = (0, 0, 0);
    for id in list_all(&**engine.store(), &owner, None).await? {
        loop {
            let request = CollectRequest::at(now_ms());
            let done = upkeep.collect(&owner, &id, request).await?;
            blobs += done.blobs.count;
            bytes += done.blobs.bytes;
            if !done.more {
                waiting += done.waiting;
                break;
            }
        }
    }
    let size = upkeep.compact().await?;
    if globals.json {
        say::json(&json!({
            "blobs": blobs, "bytes": bytes, "waiting": waiting,
            "before": size.before, "after": size.after,
        }))?;
    } else if !globals.quiet {
        let gained = size.before.saturating_sub(size.after);
        let mut text = format!(
            "{} removed ({} bytes)",
            counted(blobs, "blob"),
            grouped(bytes)
        );
        if waiting > 0 {
            text.push_str(&format!(", {waiting} may go in an hour"));
        }
        text.push_str(&format!(
            "; the database is {} bytes, {} less\n",
            grouped(size.after),
            grouped(gained)
        ));
        say::styled(&text)?;
    }
    Ok(Exit::Done)
}
