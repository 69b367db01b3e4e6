//! `contexture runs`: what has been asked of models, and how it ended.

use std::fmt::Write as _;

use clap::Args;
use contexture::runs::{RunEntry, RunStatus, WaitingCall, list_runs, waiting_calls};
use contexture_api::{RunDocument, RunsDocument};
use owo_colors::OwoColorize as _;

use crate::chat::waiting_line;
use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{display_width, one_line, pad_right, short_id};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::write;

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
    let rows = load_rows(arguments, globals).await?;
    if globals.json {
        let document = |row: &RunRow| RunDocument::new(&row.run, &row.waiting);
        let runs = rows.iter().map(document).collect();
        write::print_json(&RunsDocument { runs })?;
        return Ok(Exit::Done);
    }
    write::print_styled(&run_table(&rows))?;
    if globals.quiet {
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        write::print_stderr("no runs; `contexture run FILE` makes one\n");
    }
    if rows.iter().any(|row| !row.waiting.is_empty()) {
        write::print_stderr(
            "decide with `contexture resume RUN --allow CALL`, or `--deny CALL --reason TEXT`\n",
        );
    }
    Ok(Exit::Done)
}

/// Loads the runs of the conversation, or of all of the owner's.
async fn load_rows(arguments: &Arguments, globals: &Globals) -> Outcome<Vec<RunRow>> {
    let owner = database::resolve_owner(globals)?;
    let (engine, found) = match &arguments.conversation {
        Some(id) => {
            let chat = database::open_conversation(globals, id, None).await?;
            let found = list_runs(chat.engine(), &owner, Some(&chat)).await?;
            (chat.engine().clone(), found)
        }
        None => {
            let engine = database::open_engine(globals, WhenMissing::Refuse).await?;
            let found = list_runs(&engine, &owner, None).await?;
            (engine, found)
        }
    };
    let mut rows = Vec::with_capacity(found.len());
    for run in found {
        let waiting = waiting_calls(&engine, &owner, &run).await?;
        rows.push(RunRow { run, waiting });
    }
    Ok(rows)
}

/// A run, and the calls of it that wait for a decision.
struct RunRow {
    run: RunEntry,
    waiting: Vec<WaitingCall>,
}

fn conversation_id(run: &RunEntry) -> &str {
    run.conversation.as_ref().map_or("", |id| id.as_str())
}

/// What a run waits for, else why it ended, else what it took.
fn describe_state(row: &RunRow) -> String {
    let calls: Vec<String> = row.waiting.iter().map(waiting_line).collect();
    match (calls.as_slice(), &row.run.reason, &row.run.usage) {
        // What waits for somebody goes before why it ended and what it took.
        ([_, ..], ..) => format!("for {}", calls.join(", ")),
        (_, Some(why), _) => one_line(why),
        (_, None, Some(spent)) => spent.to_string(),
        (_, None, None) => String::new(),
    }
}

fn run_table(rows: &[RunRow]) -> String {
    let place = |run: &RunEntry| format!("{} {}", conversation_id(run), run.branch);
    let places = rows.iter().map(|row| display_width(&place(&row.run))).max();
    let agents = rows.iter().map(|row| display_width(&row.run.agent)).max();
    let (places, agents) = (places.unwrap_or(0), agents.unwrap_or(0));
    let now = now_ms();
    let mut out = String::new();
    for row in rows {
        let run = &row.run;
        let status = pad_right(run.status.as_str(), "completed".len());
        let status = match run.status {
            RunStatus::Completed => status.green().to_string(),
            RunStatus::Failed => status.red().to_string(),
            _ => status.yellow().to_string(),
        };
        let line = format!(
            "{status}  {}  {}  {}  {}  {}",
            short_id(&run.run).magenta(),
            pad_right(&place(run), places),
            pad_right(&run.agent, agents),
            pad_right(&relative_time(run.started_ms, now), 6).dimmed(),
            describe_state(row),
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
