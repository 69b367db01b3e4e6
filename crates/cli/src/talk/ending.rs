//! How a run ended, for people and programs.

use contexture::runs::{Ended, Run};
use serde_json::json;

use super::interrupt::Driven;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::say;

/// Digits of an id that are shown.
const SHOWN: usize = 12;

/// Tells how a run ended.
///
/// # Errors
/// The run's, or the output cannot be written.
pub(crate) fn tell(driven: Driven, run: &Run, globals: &Globals) -> Outcome<Exit> {
    let id = run.id().to_string();
    let turn = match driven {
        Driven::Ended(turn) => turn.map_err(|error| {
            let failure = Failure::from(error);
            match &failure.details {
                None => failure.details(json!({ "run": id })),
                Some(_) => failure,
            }
        })?,
        Driven::Left => {
            let message = format!("the run {} was left where it stood", short(&id));
            return Err(Failure::new(Exit::Interrupted, "left", message)
                .details(json!({ "run": id }))
                .hint(format!(
                    "`contexture resume {}` goes on with it",
                    short(&id)
                )));
        }
    };
    let (end, reason, waiting) = match &turn.end {
        Ended::Completed => ("completed", None, None),
        Ended::Stopped { reason } => ("stopped", Some(reason), None),
        Ended::Waiting { calls } => ("waiting", None, Some(calls)),
    };
    if globals.json {
        let calls = waiting.map(|calls| calls.iter().map(ToString::to_string));
        let calls: Option<Vec<String>> = calls.map(Iterator::collect);
        say::json(&json!({
            "run": id,
            "conversation": run.conversation().id().as_str(),
            "branch": turn.branch.as_str(),
            "end": end,
            "reason": reason,
            "waiting": calls,
            "text": turn.text,
            "spent": turn.spent,
        }))?;
    }
    let Some(calls) = waiting else {
        return Ok(Exit::Done);
    };
    if !globals.json && !globals.quiet {
        for call in calls {
            let (id, call) = (short(&id), call.to_string());
            let call = short(&call);
            say::aside(&format!(
                "waits for your word: contexture resume {id} --allow {call}, or --deny {call}\n"
            ));
        }
    }
    Ok(Exit::Findings)
}

/// Enough of an id to name it.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHOWN).unwrap_or(id)
}
