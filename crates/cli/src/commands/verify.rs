//! `contexture verify`: is what is stored what was written?

use clap::Args;
use contexture::catalogue::Money;
use contexture::store::{
    CallSum, CallsFinding, Error as StoreError, verify_calls, verify_conversation,
};
use contexture_api::format_timestamp;
use serde_json::{Value, json};

use crate::database::{self, require_maintenance};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::count_with_noun;
use crate::output::relative_time::now_ms;
use crate::output::write;

/// Check that what is stored is what was written
///
/// Every item is compared with its hash, every place, counter, name, state value and blob with what
/// it must be, the sums of the record of calls with its calls, and the database file with itself; a server's files where its
/// extension amcheck is installed. What is damaged is listed, and the rest stays readable. Changes nothing.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture verify                # all conversations, the record of calls, and the file
  contexture verify support-42")]
pub(crate) struct Arguments {
    /// Only this conversation; default: all of the owner's, the record of calls, and the database file
    conversation: Option<String>,
}

/// What was checked and what is damaged.
#[derive(Debug, Default)]
struct VerifyReport {
    conversations: u64,
    /// Rows that were compared with what they must be.
    checked: u64,
    findings: Vec<String>,
    /// Why the database's own files were not checked.
    unchecked: Option<String>,
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
    let mut report = VerifyReport {
        conversations: ids.len() as u64,
        ..VerifyReport::default()
    };
    // The file is checked as a whole, which is too much for one conversation.
    if arguments.conversation.is_none() {
        match upkeep.verify_medium().await {
            Ok(lines) => report.findings.extend(
                lines
                    .into_iter()
                    .map(|line| format!("the database: {line}")),
            ),
            // A database server checks its own files; that this was left out is told with the result.
            Err(error @ StoreError::NotOffered { .. }) => {
                report.unchecked = Some(error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    if let Some(calls) = engine.store().calls().filter(|_| named.is_none()) {
        let verified = verify_calls(calls, &owner, now_ms()).await?;
        report.checked += verified.checked;
        report
            .findings
            .extend(verified.findings.iter().map(calls_finding));
    }
    for id in &ids {
        let page = verify_conversation(upkeep, &owner, id).await?;
        report.checked += page.checked;
        let findings = page.findings.iter().map(ToString::to_string);
        report.findings.extend(findings);
    }
    if globals.json {
        write::print_json(&report.to_json())?;
    } else {
        report.print_text(globals)?;
    }
    Ok(match report.findings.is_empty() {
        true => Exit::Done,
        false => Exit::Findings,
    })
}

fn calls_finding(finding: &CallsFinding) -> String {
    let CallsFinding { calls, sums, .. } = finding;
    let hour = match finding.hour_ms {
        Some(hour) => format!("in the hour of {}", format_timestamp(hour)),
        None => "in hours without any".to_owned(),
    };
    let cost = |sum: &CallSum| Money::from_pico_dollars(sum.pico_dollars);
    format!(
        "the record of calls: {hour} there are {} for {}, and their sum has {} for {}",
        count_with_noun(calls.calls, "call"),
        cost(calls),
        sums.calls,
        cost(sums)
    )
}

impl VerifyReport {
    fn to_json(&self) -> Value {
        json!({
            "conversations": self.conversations, "checked": self.checked, "findings": self.findings,
            "unchecked": self.unchecked,
        })
    }

    /// Prints the findings, then what was checked.
    fn print_text(&self, globals: &Globals) -> Outcome<()> {
        for finding in &self.findings {
            write::print_sentence(&format!("{finding}\n"))?;
        }
        if globals.quiet {
            return Ok(());
        }
        let what = count_with_noun(self.conversations, "conversation");
        let found = match self.findings.len() as u64 {
            0 => "nothing is damaged".to_owned(),
            count => count_with_noun(count, "finding"),
        };
        let rows = count_with_noun(self.checked, "row");
        if let Some(why) = &self.unchecked {
            write::print_note(&format!(
                "the database's own files were not checked: {why}\n"
            ));
        }
        write::print_sentence(&format!("{what}, {rows} checked: {found}\n"))
    }
}
