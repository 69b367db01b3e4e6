//! `contexture runs`: what has been asked of models, and how it ended.

use std::fmt::Write as _;

use clap::Args;
use contexture::runs::{RunEntry, RunStatus, WaitingCall, runs, waiting_calls};
use contexture_server::documents::{RunDocument, RunsDocument};
use owo_colors::OwoColorize as _;

use crate::ago::{ago, now_ms};
use crate::database::{self, Missing};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::printable::{one_line, pad, short, width};
use crate::say;
use crate::talk::waiting_line;

/// List the runs of models, the newest first
///
/// A run that is `running` in no process, because it was cut off, goes on with `contexture resume`; so does
/// one that is `waiting` for a decision.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture runs
  contexture runs --conversation support-42 --json")]
pub(crate) struct Arguments {
    /// Those of this conversation
    #[arg(long, short, value_name = "CONVERSATION")]
    conversation: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, or the database cannot be used.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let owner = database::owner(globals)?;
    let (engine, found) = match &arguments.conversation {
        Some(id) => {
            let chat = database::conversation(globals, id, None).await?;
            let found = runs(chat.engine(), &owner, Some(&chat)).await?;
            (chat.engine().clone(), found)
        }
        None => {
            let engine = database::open(globals, Missing::Refuse).await?;
            let found = runs(&engine, &owner, None).await?;
            (engine, found)
        }
    };
    let mut rows = Vec::with_capacity(found.len());
    for run in found {
        let waiting = waiting_calls(&engine, &owner, &run).await?;
        rows.push(Row { run, waiting });
    }
    if globals.json {
        let document = |row: &Row| RunDocument::new(&row.run, &row.waiting);
        let runs = rows.iter().map(document).collect();
        say::json(&RunsDocument { runs })?;
        return Ok(Exit::Done);
    }
    say::styled(&table(&rows))?;
    if globals.quiet {
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        say::aside("no runs; `contexture run FILE` makes one\n");
    }
    if rows.iter().any(|row| !row.waiting.is_empty()) {
        say::aside(
            "decide with `contexture resume RUN --allow CALL`, or `--deny CALL --reason TEXT`\n",
        );
    }
    Ok(Exit::Done)
}

/// A run, and the calls of it that wait for a decision.
struct Row {
    run: RunEntry,
    waiting: Vec<WaitingCall>,
}

fn conversation(run: &RunEntry) -> &str {
    run.conversation.as_ref().map_or("", |id| id.as_str())
}

fn table(rows: &[Row]) -> String {
    let place = |run: &RunEntry| format!("{} {}", conversation(run), run.branch);
    let places = rows.iter().map(|row| width(&place(&row.run))).max();
    let agents = rows.iter().map(|row| width(&row.run.agent)).max();
    let (places, agents) = (places.unwrap_or(0), agents.unwrap_or(0));
    let now = now_ms();
    let mut out = String::new();
    for Row { run, waiting } in rows {
        let status = pad(run.status.as_str(), "completed".len());
        let status = match run.status {
            RunStatus::Completed => status.green().to_string(),
            RunStatus::Failed => status.red().to_string(),
            _ => status.yellow().to_string(),
        };
        let calls: Vec<String> = waiting.iter().map(waiting_line).collect();
        let told = match (calls.as_slice(), &run.why, &run.spent) {
            ([_, ..], ..) => format!("for {}", calls.join(", ")),
            (_, Some(why), _) => one_line(why),
            (_, None, Some(spent)) => spent.to_string(),
            (_, None, None) => String::new(),
        };
        let line = format!(
            "{status}  {}  {}  {}  {}  {told}",
            short(&run.run).magenta(),
            pad(&place(run), places),
            pad(&run.agent, agents),
            pad(&ago(run.began_ms, now), 6).dimmed(),
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
