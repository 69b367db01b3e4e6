//! `contexture runs`: what has been asked of models, and how it ended.

use clap::Args;
use contexture::runs::{RunEntry, RunStatus, WaitingCall, list_runs, waiting_calls};
use contexture_api::{RunDocument, RunsDocument};
use owo_colors::OwoColorize as _;

use crate::chat::waiting_text;
use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{one_line, short_id};
use crate::output::relative_time::{now_ms, relative_time};
use crate::output::table::Column;
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
        write::print_json(&RunsDocument { runs, next: None })?;
        return Ok(Exit::Done);
    }
    let now = now_ms();
    let table: Vec<_> = rows.iter().map(|row| run_row(row, now)).collect();
    write::print_table(&COLUMNS, &table)?;
    if globals.quiet {
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        write::print_note("no runs; `contexture run FILE` makes one\n");
    }
    if rows.iter().any(|row| !row.waiting.is_empty()) {
        write::print_note(
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
    let calls: Vec<String> = row.waiting.iter().map(waiting_text).collect();
    match (calls.as_slice(), &row.run.reason, &row.run.usage) {
        // What waits for somebody goes before why it ended and what it took.
        ([_, ..], ..) => format!("for {}", calls.join(", ")),
        (_, Some(why), _) => one_line(why),
        (_, None, Some(spent)) => spent.to_string(),
        (_, None, None) => String::new(),
    }
}

/// How it ended, its id, where it is, its agent, its age and its state.
fn run_row(row: &RunRow, now: i64) -> Vec<String> {
    let run = &row.run;
    vec![
        run.status.as_str().to_owned(),
        short_id(&run.run).to_owned(),
        format!("{} {}", conversation_id(run), run.branch),
        run.agent.clone(),
        relative_time(run.started_ms, now),
        describe_state(row),
    ]
}

/// How the list is laid out.
const COLUMNS: [Column; 6] = [
    Column::word("").with_rank(4).with_paint(paint_status),
    Column::id("").with_paint(|id| id.magenta().to_string()),
    Column::words("", 10).with_rank(2),
    Column::words("", 6),
    Column::word("")
        .with_rank(1)
        .with_paint(|age| age.dimmed().to_string()),
    Column::words("", 10).with_rank(3),
];

fn paint_status(status: &str) -> String {
    let is = |word: RunStatus| status.trim_end() == word.as_str();
    if is(RunStatus::Completed) {
        status.green().to_string()
    } else if is(RunStatus::Failed) {
        status.red().to_string()
    } else {
        status.yellow().to_string()
    }
}
