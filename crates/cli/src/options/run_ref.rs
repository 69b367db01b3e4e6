//! A run that is named by its id or the beginning of it.

use contexture::ir::{ConversationId, RunId};
use contexture::runs::{RunEntry, list_runs};
use contexture::{Engine, Owner};
use serde_json::json;

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::short_id;

/// The fewest digits of a run's id.
const FEWEST: usize = 4;

/// A run that was found, and where.
pub(crate) struct FoundRun {
    pub(crate) id: RunId,
    pub(crate) conversation: ConversationId,
    pub(crate) entry: RunEntry,
}

/// Returns the run of this name.
///
/// # Errors
/// No run or more than one has an id that begins so, or the store's.
pub(crate) async fn find_run(engine: &Engine, owner: &Owner, name: &str) -> Outcome<FoundRun> {
    let entry = choose_run(list_runs(engine, owner, None).await?, name)?;
    match (entry.id(), entry.conversation.clone()) {
        (Some(id), Some(conversation)) => Ok(FoundRun {
            id,
            conversation,
            entry,
        }),
        _ => {
            let message = format!("the entry of run {:?} cannot be read", entry.run);
            Err(Failure::new(Exit::Database, "damaged", message))
        }
    }
}

fn choose_run(runs: Vec<RunEntry>, name: &str) -> Outcome<RunEntry> {
    // Ids are shown in lower case.
    let small = name.to_ascii_lowercase();
    if small.len() < FEWEST {
        let message = format!("{name:?} is too short for an id: give at least {FEWEST} digits");
        return Err(Failure::usage(message).with_hint("`contexture runs` lists the runs"));
    }
    let mut found: Vec<RunEntry> = runs
        .into_iter()
        .filter(|run| run.run.starts_with(&small))
        .collect();
    match found.len() {
        0 => Err(
            Failure::new(Exit::NotFound, "not_found", format!("no run {name:?}"))
                .with_hint("`contexture runs` lists those of this owner"),
        ),
        1 => Ok(found.remove(0)),
        _ => {
            let names: Vec<&str> = found.iter().map(|run| short_id(&run.run)).collect();
            let message = format!("more than one run begins with {name:?}");
            Err(Failure::new(Exit::Conflict, "ambiguous", message)
                .with_details(json!({ "candidates": names }))
                .with_hint("give more of the id"))
        }
    }
}
