//! `contexture prune`: conversations that are too old or too many.

use clap::Args;
use contexture::store::{
    ExpiryReason, RetentionPlan, RetentionRule, delete_expired, plan_retention,
};
use serde_json::json;

use crate::database::{self, WhenMissing, require_maintenance};
use crate::options::globals::Globals;
use crate::options::parse_values::{parse_bytes, parse_milliseconds};
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{count_with_noun, group_thousands};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::table::Column;
use crate::output::write;

/// Delete the conversations that were not changed for long, or that take too much room
///
/// Shows what would be deleted; `--yes` deletes it. Conversations go as a whole, those that were changed
/// longest ago first, and nothing brings them back but a backup. A server does the same by itself if its
/// configuration has a section `[[retention]]`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture prune --older-than 90d              # what would go?
  contexture prune --older-than 90d --yes
  contexture prune --keep 2GB --yes              # the newest 2 GB stay
  contexture --owner acme/ada prune --older-than 30d --json | jq .bytes")]
pub(crate) struct Arguments {
    /// Not changed for so long: 12h, 90d, 8w
    #[arg(long, value_name = "TIME", value_parser = parse_milliseconds, required_unless_present = "keep")]
    older_than: Option<u64>,
    /// Keep so much content, as stored, of those changed last: 500MB, 2GB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    keep: Option<u64>,
    /// Yes, delete them
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
///
/// # Errors
/// The database cannot be read or written.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
    let owner = database::resolve_owner(globals)?;
    let maintenance = require_maintenance(&engine)?;
    let rule = RetentionRule {
        updated_since_ms: arguments
            .older_than
            .map(|age| now_ms().saturating_sub(i64::try_from(age).unwrap_or(i64::MAX))),
        max_bytes: arguments.keep,
    };
    let store = &**engine.store();
    let plan = plan_retention(store, maintenance, &owner, rule).await?;
    if arguments.yes {
        let (count, bytes) = delete_expired(store, &owner, &plan).await?;
        print_deleted(count, bytes, &plan, globals)?;
    } else {
        print_plan(&plan, globals)?;
    }
    Ok(Exit::Done)
}

fn print_deleted(count: u64, bytes: u64, plan: &RetentionPlan, globals: &Globals) -> Outcome<()> {
    if globals.json {
        return write::print_json(&json!({
            "deleted": count, "bytes": bytes, "kept": plan.kept, "kept_bytes": plan.kept_bytes,
        }));
    }
    if globals.quiet {
        return Ok(());
    }
    let what = count_with_noun(count, "conversation");
    let bytes = group_thousands(bytes);
    write::print_sentence(&format!("{what} deleted, {bytes} bytes\n"))
}

fn print_plan(plan: &RetentionPlan, globals: &Globals) -> Outcome<()> {
    let bytes: u64 = plan.expired.iter().map(|one| one.bytes).sum();
    if globals.json {
        let expired = plan.expired.iter().map(|one| {
            json!({
                "id": one.id.as_str(), "title": one.title, "updated_ms": one.updated_ms, "bytes": one.bytes,
                "reason": reason_word(one.reason),
            })
        });
        return write::print_json(&json!({
            "would_delete": expired.collect::<Vec<_>>(), "bytes": bytes, "kept": plan.kept,
            "kept_bytes": plan.kept_bytes,
        }));
    }
    let now = now_ms();
    let rows = plan.expired.iter().map(|one| {
        vec![
            group_thousands(one.bytes),
            relative_time(one.updated_ms, now),
            reason_word(one.reason).to_owned(),
            one.id.to_string(),
        ]
    });
    let columns = [
        Column::figure("").with_rank(1),
        Column::figure("").with_rank(2),
        Column::word(""),
        Column::id(""),
    ];
    write::print_table(&columns, &rows.collect::<Vec<_>>())?;
    if !globals.quiet {
        let many = count_with_noun(plan.expired.len() as u64, "conversation");
        let (bytes, kept) = (group_thousands(bytes), group_thousands(plan.kept_bytes));
        let note = match plan.expired.is_empty() {
            true => format!("nothing to delete; {kept} bytes stay\n"),
            false => format!(
                "{many} would be deleted, {bytes} bytes; {kept} bytes stay. --yes deletes\n"
            ),
        };
        write::print_note(&note);
    }
    Ok(())
}

const fn reason_word(reason: ExpiryReason) -> &'static str {
    match reason {
        ExpiryReason::Age => "age",
        ExpiryReason::Size => "size",
    }
}
