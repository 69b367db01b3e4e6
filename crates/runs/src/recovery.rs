//! Taking up runs that no process drives: after a crash, after a decision, and those that are queued.
//!
//! An *orphan* is an open run without a living driver. Child runs are taken up by their parents, so only roots are resumed
//! here. A run that waits for a decision is no orphan until all its calls are decided. A queued run is one that nobody has begun.

use std::collections::BTreeMap;

use contexture_engine::{Conversation, Engine, EngineError};
use contexture_ir::{Owner, RunId};
use futures_util::StreamExt as _;
use futures_util::stream;

use crate::agent::{Agent, Turn, TurnEnd};
use crate::error::RunError;
use crate::execution::waiting_calls;
use crate::record::{RunEntry, RunQuery, RunStatus, list_runs_with};
use crate::run::Run;

/// Number of runs that are driven at a time.
const AT_ONCE: usize = 8;

/// A run that was taken up.
#[derive(Debug)]
pub struct Recovered {
    /// The run, as it was listed before.
    pub entry: RunEntry,
    /// What became of it. A failure of one run does not affect the others.
    pub outcome: Result<Turn, RunError>,
}

/// Takes up the runs of an owner that nobody drives, queued ones included, and drives them to their ends, or until they wait: at most 8 at a time.
///
/// `agent_of` gives the agent for a run's [agent name](RunEntry::agent); runs for which it gives none are left alone, and are
/// not in the result. So are runs that another process drives. Whether a process has died is known at once with SQLite, and
/// within 10 s with PostgreSQL; such runs are waited for once.
///
/// ```
/// # use std::sync::Arc;
/// # use contexture_models::ScriptedModel;
/// # use contexture_runs::{Agent, Run, recover_runs};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny."]));
/// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
/// # let engine = contexture_engine::Engine::in_memory();
/// # let chat = engine.conversation("trip").owner("ada").open().await?;
/// # let question = contexture_ir::Item::Message(contexture_ir::Message::text(contexture_ir::Role::User, "How is the weather?"));
/// // The process ends before the model has answered.
/// drop(Run::begin(&chat, &agent, [question]).await?);
///
/// let recovered = recover_runs(&engine, chat.owner(), |name| (name == "guide").then(|| agent.clone())).await?;
/// for run in &recovered {
///     println!("{}: {:?}", run.entry.run, run.outcome.as_ref().map(|turn| &turn.text));
/// }
/// assert_eq!(recovered.len(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The store's, if the runs cannot be listed.
pub async fn recover_runs(
    engine: &Engine,
    owner: &Owner,
    agent_of: impl Fn(&str) -> Option<Agent>,
) -> Result<Vec<Recovered>, EngineError> {
    let open = RunQuery {
        statuses: vec![RunStatus::Queued, RunStatus::Running, RunStatus::Waiting],
        // Children are resumed by their parents, with the agents that these have for them.
        roots_only: true,
        ..RunQuery::default()
    };
    // Each branch has one run at a time, so its runs are taken up one after the other, the oldest first.
    let mut branches: BTreeMap<_, Vec<RunEntry>> = BTreeMap::new();
    let newest_first = list_runs_with(engine, owner, &open).await?.runs;
    for entry in newest_first.into_iter().rev() {
        let branch = (entry.conversation.clone(), entry.branch.clone());
        branches.entry(branch).or_default().push(entry);
    }
    let agent_of = &agent_of;
    let each = branches
        .into_values()
        .map(|runs| recover_branch(engine, owner, runs, agent_of));
    let each: Vec<_> = stream::iter(each).buffered(AT_ONCE).collect().await;
    let mut recovered = each.into_iter().flatten().collect::<Vec<_>>();
    recovered.sort_by_key(|run: &Recovered| run.entry.started_ms);
    Ok(recovered)
}

/// Takes up the open runs of a branch, which are given in the order in which they began or were queued.
async fn recover_branch(
    engine: &Engine,
    owner: &Owner,
    runs: Vec<RunEntry>,
    agent_of: &impl Fn(&str) -> Option<Agent>,
) -> Vec<Recovered> {
    let mut recovered = Vec::new();
    // A queued run would end one that was interrupted before it, so it waits until there is none.
    let mut is_free = true;
    for entry in runs {
        let can_go_on = match is_free || entry.status != RunStatus::Queued {
            true => may_go_on(engine, owner, &entry).await,
            false => Ok(false),
        };
        let outcome = match (can_go_on, agent_of(&entry.agent)) {
            (Ok(true), Some(agent)) => recover_one(engine, owner, &entry, &agent).await,
            (Ok(_), _) => None,
            (Err(error), _) => Some(Err(error.into())),
        };
        is_free &=
            matches!(&outcome, Some(Ok(turn)) if !matches!(turn.end, TurnEnd::Waiting { .. }));
        recovered.extend(outcome.map(|outcome| Recovered { entry, outcome }));
    }
    recovered
}

/// Whether there is something to do for the run: it was interrupted, or everything that it waits for is decided.
async fn may_go_on(engine: &Engine, owner: &Owner, entry: &RunEntry) -> Result<bool, EngineError> {
    match entry.status {
        RunStatus::Queued | RunStatus::Running => Ok(true),
        RunStatus::Waiting => {
            let calls = waiting_calls(engine, owner, entry).await?;
            Ok(calls.iter().all(|call| call.decided.is_some()))
        }
        RunStatus::Completed | RunStatus::Aborted | RunStatus::Failed => Ok(false),
    }
}

/// Drives one run; `None` if another process does.
async fn recover_one(
    engine: &Engine,
    owner: &Owner,
    entry: &RunEntry,
    agent: &Agent,
) -> Option<Result<Turn, RunError>> {
    let (Some(id), Some(conversation)) = (entry.id(), &entry.conversation) else {
        return None;
    };
    let take_up = async || {
        let chat = engine.conversation(conversation.as_str());
        let chat = chat.owner(owner.as_str()).open().await?;
        resume_when_free(&chat, id, agent).await
    };
    match take_up().await {
        Ok(mut run) => Some(run.drive().await),
        Err(RunError::Busy { .. }) => None,
        Err(error) => Some(Err(error)),
    }
}

/// Resumes a run; if its driver may be dead, once more after the time in which that shows.
async fn resume_when_free(chat: &Conversation, id: RunId, agent: &Agent) -> Result<Run, RunError> {
    let busy = match Run::resume(chat, id, agent).await {
        Err(RunError::Busy {
            dead_in: Some(dead_in),
            ..
        }) => dead_in,
        resumed => return resumed,
    };
    tokio::time::sleep(busy).await;
    Run::resume(chat, id, agent).await
}
