//! `contexture runs`: what has been asked of models, and how it ended.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use contexture::runs::{
    RunCursor, RunEntry, RunQuery, RunStatus, WaitingCall, list_runs_with, waiting_calls,
};
use contexture_api::operations::{encode_run_cursor, parse_run_cursor};
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
  contexture runs --conversation support-42 --json
  contexture runs --status waiting -n 20")]
pub(crate) struct Arguments {
    /// Those of this conversation
    #[arg(long, short, value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// Those with this status; may be repeated
    #[arg(long = "status", value_name = "STATUS", value_parser = run_status())]
    statuses: Vec<RunStatus>,
    /// Those of agents of this name
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// At most so many. Default: all
    #[arg(long, short = 'n', value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// The next page: what the page before gave as `next`
    #[arg(long, value_name = "CURSOR", value_parser = parse_cursor)]
    after: Option<RunCursor>,
}

fn parse_cursor(text: &str) -> Result<RunCursor, String> {
    parse_run_cursor(text).ok_or_else(|| "expected `next` of the page before, as it is".to_owned())
}

/// A status by its name.
fn run_status() -> impl TypedValueParser<Value = RunStatus> {
    let names = PossibleValuesParser::new(RunStatus::ALL.map(RunStatus::as_str));
    names.try_map(|name| {
        let named = |status: &RunStatus| status.as_str() == name;
        RunStatus::ALL
            .into_iter()
            .find(named)
            .ok_or("no such status")
    })
}

impl Arguments {
    /// Whether runs may be missing from the list.
    fn is_filtered(&self) -> bool {
        self.conversation.is_some()
            || !self.statuses.is_empty()
            || self.agent.is_some()
            || self.after.is_some()
    }
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, or the database cannot be used.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let (rows, next) = load_rows(arguments, globals).await?;
    let next = next.as_ref().map(encode_run_cursor);
    if globals.json {
        let document = |row: &RunRow| RunDocument::new(&row.run, &row.waiting);
        let runs = rows.iter().map(document).collect();
        write::print_json(&RunsDocument { runs, next })?;
        return Ok(Exit::Done);
    }
    let now = now_ms();
    let table: Vec<_> = rows.iter().map(|row| run_row(row, now)).collect();
    write::print_table(&COLUMNS, &table)?;
    if globals.quiet {
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        write::print_note(match arguments.is_filtered() {
            true => "no such runs\n",
            false => "no runs; `contexture run FILE` makes one\n",
        });
    }
    if let Some(next) = next {
        write::print_note(&format!("more with `--after {next}`\n"));
    }
    if rows.iter().any(|row| !row.waiting.is_empty()) {
        write::print_note(
            "decide with `contexture resume RUN --allow CALL`, or `--deny CALL --reason TEXT`\n",
        );
    }
    Ok(Exit::Done)
}

/// Loads the runs of the conversation, or of all of the owner's.
async fn load_rows(
    arguments: &Arguments,
    globals: &Globals,
) -> Outcome<(Vec<RunRow>, Option<RunCursor>)> {
    let owner = database::resolve_owner(globals)?;
    let (engine, conversation) = match &arguments.conversation {
        Some(id) => {
            let chat = database::open_conversation(globals, id, None).await?;
            (chat.engine().clone(), Some(chat.id().clone()))
        }
        None => (
            database::open_engine(globals, WhenMissing::Refuse).await?,
            None,
        ),
    };
    let query = RunQuery {
        conversation,
        statuses: arguments.statuses.clone(),
        agent: arguments.agent.clone(),
        roots_only: false,
        // More than memory holds is all of them.
        limit: arguments
            .limit
            .map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        after: arguments.after.clone(),
    };
    let page = list_runs_with(&engine, &owner, &query).await?;
    let mut rows = Vec::with_capacity(page.runs.len());
    for run in page.runs {
        let waiting = waiting_calls(&engine, &owner, &run).await?;
        rows.push(RunRow { run, waiting });
    }
    Ok((rows, page.next))
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
