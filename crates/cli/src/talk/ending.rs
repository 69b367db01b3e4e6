//! How a run ended, for people and programs.

use contexture::runs::{Ended, Run, open_calls};
use contexture_server::documents::WaitingCallDocument;
use serde_json::json;

use super::arguments::TalkArguments;
use super::interrupt::Driven;
use super::waiting::what_to_do;
use crate::again;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::printable::short;
use crate::say;

/// Tells how a run ended.
///
/// # Errors
/// The run's, or the output cannot be written.
pub(crate) async fn tell(
    driven: Driven,
    run: &Run,
    talk: &TalkArguments,
    globals: &Globals,
) -> Outcome<Exit> {
    let id = run.id().to_string();
    let chat = run.conversation();
    let turn = match driven {
        Driven::Ended(turn) => turn.map_err(|error| {
            let failure = Failure::from(error);
            match &failure.details {
                None => failure.details(json!({ "run": id })),
                Some(_) => failure,
            }
        })?,
        Driven::Left => {
            let mut words = ["contexture", "resume", short(&id)]
                .map(str::to_owned)
                .to_vec();
            words.extend(talk.words(globals));
            let message = format!("the run {} was left where it stood", short(&id));
            return Err(Failure::new(Exit::Interrupted, "left", message)
                .details(json!({ "run": id }))
                .hint(format!("`{}` goes on with it", again::line(&words))));
        }
    };
    let (end, reason) = match &turn.end {
        Ended::Completed => ("completed", None),
        Ended::Stopped { reason } => ("stopped", Some(reason)),
        Ended::Waiting { .. } => ("waiting", None),
    };
    let waiting = match &turn.end {
        Ended::Waiting { calls } => {
            Some(open_calls(chat.engine(), chat.owner(), chat.id(), calls).await?)
        }
        _ => None,
    };
    if globals.json {
        let calls: Option<Vec<WaitingCallDocument>> = waiting
            .as_ref()
            .map(|calls| calls.iter().map(Into::into).collect());
        say::json(&json!({
            "run": id,
            "conversation": chat.id().as_str(),
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
        say::aside(&what_to_do(&id, &calls, &talk.words(globals)));
    }
    Ok(Exit::Findings)
}
