//! `contexture runs`: what has been asked of models, and how it ended.

use std::fmt::Write as _;

use clap::Args;
use contexture::runs::{RunEntry, RunStatus, runs};
use owo_colors::OwoColorize as _;
use serde_json::{Value, json};

use crate::ago::{ago, instant, now_ms};
use crate::database::{self, Missing};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::printable::{pad, width};
use crate::say;
use crate::talk::short;

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
    let mut found = match &arguments.conversation {
        Some(id) => {
            let chat = database::conversation(globals, id, None).await?;
            runs(chat.engine(), &owner, Some(&chat)).await?
        }
        None => {
            let engine = database::open(globals, Missing::Refuse).await?;
            runs(&engine, &owner, None).await?
        }
    };
    found.sort_by(|a, b| (b.began_ms, &b.run).cmp(&(a.began_ms, &a.run)));
    if globals.json {
        let rows: Vec<Value> = found.iter().map(document).collect();
        say::json(&json!({ "runs": rows }))?;
        return Ok(Exit::Done);
    }
    say::styled(&table(&found))?;
    if found.is_empty() && !globals.quiet {
        say::aside("no runs; `contexture run FILE` makes one\n");
    }
    Ok(Exit::Done)
}

/// A run for programs.
fn document(run: &RunEntry) -> Value {
    json!({
        "run": run.run,
        "conversation": conversation(run),
        "branch": run.branch,
        "agent": run.agent,
        "parent": run.parent,
        "status": run.status.as_str(),
        "began": instant(run.began_ms),
        "ended": run.ended_ms.map(instant),
        "spent": run.spent,
        "result": run.result,
        "why": run.why,
    })
}

fn conversation(run: &RunEntry) -> &str {
    run.conversation.as_ref().map_or("", |id| id.as_str())
}

fn table(runs: &[RunEntry]) -> String {
    let place = |run: &RunEntry| format!("{} {}", conversation(run), run.branch);
    let places = runs.iter().map(|run| width(&place(run))).max().unwrap_or(0);
    let agents = runs.iter().map(|run| width(&run.agent)).max().unwrap_or(0);
    let now = now_ms();
    let mut out = String::new();
    for run in runs {
        let status = pad(run.status.as_str(), "completed".len());
        let status = match run.status {
            RunStatus::Completed => status.green().to_string(),
            RunStatus::Failed => status.red().to_string(),
            _ => status.yellow().to_string(),
        };
        let told = match (&run.why, &run.spent) {
            (Some(why), _) => crate::printable::one_line(why),
            (None, Some(spent)) => spent.to_string(),
            (None, None) => String::new(),
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
