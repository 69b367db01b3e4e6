//! How a run ended, for people and programs.

use contexture::runs::{Run, RunError, Turn, TurnEnd, WaitingCall, open_calls};
use contexture_api::WaitingCallDocument;
use serde_json::{Value, json};

use crate::chat::agent_options::AgentArguments;
use crate::chat::interrupt::DriveResult;
use crate::chat::pending_calls::next_commands;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::short_id;
use crate::output::shell_command;
use crate::output::write;

/// Tells how a run ended.
///
/// # Errors
/// The run's, or the output cannot be written.
pub(crate) async fn print_run_result(
    driven: DriveResult,
    run: &Run,
    talk: &AgentArguments,
    globals: &Globals,
) -> Outcome<Exit> {
    let id = run.id().to_string();
    let chat = run.conversation();
    let turn = match driven {
        DriveResult::Finished(turn) => turn.map_err(|error| run_failure(error, &id))?,
        DriveResult::Interrupted => return Err(interrupted_failure(&id, talk, globals)),
    };
    let waiting = match &turn.end {
        TurnEnd::Waiting { calls } => {
            Some(open_calls(chat.engine(), chat.owner(), chat.id(), calls).await?)
        }
        _ => None,
    };
    if globals.json {
        write::print_json(&run_document(run, &turn, waiting.as_deref()))?;
    }
    let Some(calls) = waiting else {
        return Ok(Exit::Done);
    };
    if !globals.json && !globals.quiet {
        write::print_stderr(&next_commands(&id, &calls, &talk.to_arguments(globals)));
    }
    // Not done and no error: somebody has to decide.
    Ok(Exit::Findings)
}

/// The failure of a run, with the id that a program needs to go on with what was kept.
fn run_failure(error: RunError, id: &str) -> Failure {
    let failure = Failure::from(error);
    match &failure.details {
        None => failure.with_details(json!({ "run": id })),
        // Details of the error itself go before the id.
        Some(_) => failure,
    }
}

/// The failure of a run that was left, with the command that goes on with it.
fn interrupted_failure(id: &str, talk: &AgentArguments, globals: &Globals) -> Failure {
    let mut words = ["contexture", "resume", short_id(id)]
        .map(str::to_owned)
        .to_vec();
    // Options are not stored with a run, so the command to be typed repeats them.
    words.extend(talk.to_arguments(globals));
    let message = format!("the run {} was left where it stood", short_id(id));
    Failure::new(Exit::Interrupted, "left", message)
        .with_details(json!({ "run": id }))
        .with_hint(format!(
            "`{}` goes on with it",
            shell_command::join_for_shell(&words)
        ))
}

/// The end of a run as a JSON document.
fn run_document(run: &Run, turn: &Turn, waiting: Option<&[WaitingCall]>) -> Value {
    let (end, reason) = match &turn.end {
        TurnEnd::Completed => ("completed", None),
        TurnEnd::Stopped { reason } => ("stopped", Some(reason)),
        TurnEnd::Waiting { .. } => ("waiting", None),
    };
    let calls: Option<Vec<WaitingCallDocument>> =
        waiting.map(|calls| calls.iter().map(Into::into).collect());
    json!({
        "run": run.id().to_string(),
        "conversation": run.conversation().id().as_str(),
        "branch": turn.branch.as_str(),
        "end": end,
        "reason": reason,
        "waiting": calls,
        "text": turn.text,
        "spent": turn.usage,
    })
}
