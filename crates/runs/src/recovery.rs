//! Taking up runs that no process drives: after a crash, after a decision, and those that are queued.
//!
//! An *orphan* is an open run without a living driver. Child runs are taken up by their parents, so only roots are resumed
//! here. A run that waits for a decision is no orphan until all its calls are decided. A queued run is one that nobody has begun.

use std::collections::BTreeMap;
use std::time::Duration;

use contexture_engine::{Engine, EngineError};
use contexture_ir::Owner;
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

/// Takes up the runs of an owner that nobody drives, queued ones included, and drives them to their ends, or until they wait: at
/// most 8 at a time.
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
        statuses: RunStatus::ALL
            .into_iter()
            .filter(|status| status.is_open())
            .collect(),
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
    let mut branches: Vec<Vec<RunEntry>> = branches.into_values().collect();
    // Who has waited longest is next.
    branches.sort_by_key(|runs| runs.first().map(|entry| entry.started_ms));
    let mut recovered = Vec::new();
    let busy = recover_branches(engine, owner, (branches, &agent_of), &mut recovered).await;
    // Whether their drivers live is known after a while. All that could be taken up at once has been by then.
    if let Some(dead_in) = busy.iter().map(|branch| branch.dead_in).max() {
        tokio::time::sleep(dead_in).await;
        let branches = busy.into_iter().map(|branch| branch.runs).collect();
        recover_branches(engine, owner, (branches, &agent_of), &mut recovered).await;
    }
    recovered.sort_by_key(|run: &Recovered| run.entry.started_ms);
    Ok(recovered)
}

/// A branch that another process drives, which may be dead.
struct BusyBranch {
    /// Time in which that shows.
    dead_in: Duration,
    /// The runs that are not taken up.
    runs: Vec<RunEntry>,
}

/// Takes up the runs of branches, some at a time. Returns the branches whose drivers may be dead.
async fn recover_branches(
    engine: &Engine,
    owner: &Owner,
    (branches, agent_of): (Vec<Vec<RunEntry>>, &impl Fn(&str) -> Option<Agent>),
    recovered: &mut Vec<Recovered>,
) -> Vec<BusyBranch> {
    let each = branches
        .into_iter()
        .map(|runs| recover_branch(engine, owner, runs, agent_of));
    let each: Vec<_> = stream::iter(each).buffer_unordered(AT_ONCE).collect().await;
    let mut busy = Vec::new();
    for (taken_up, left) in each {
        recovered.extend(taken_up);
        busy.extend(left);
    }
    busy
}

/// What became of a run that was to be taken up.
enum TakeUp {
    Driven(Result<Turn, RunError>),
    /// Another process drives it. If that may be dead, this is the time in which it shows.
    Busy(Option<Duration>),
    /// Another process has ended it since it was listed.
    Gone,
}

/// Takes up the open runs of a branch, which are given in the order in which they began or were queued. Returns what became of
/// them, and what is left if another process may have died with the branch.
async fn recover_branch(
    engine: &Engine,
    owner: &Owner,
    runs: Vec<RunEntry>,
    agent_of: &impl Fn(&str) -> Option<Agent>,
) -> (Vec<Recovered>, Option<BusyBranch>) {
    let mut recovered = Vec::new();
    // A queued run begins behind no run that is still open.
    let mut is_free = true;
    let mut runs = runs.into_iter();
    while let Some(entry) = runs.next() {
        if entry.status == RunStatus::Queued && !is_free {
            continue;
        }
        let Some(agent) = agent_of(&entry.agent) else {
            is_free = false;
            continue;
        };
        let outcome = match may_go_on(engine, owner, &entry).await {
            Ok(true) => match take_up(engine, owner, &entry, &agent).await {
                TakeUp::Driven(outcome) => outcome,
                TakeUp::Gone => continue,
                TakeUp::Busy(Some(dead_in)) => {
                    let runs = std::iter::once(entry).chain(runs).collect();
                    return (recovered, Some(BusyBranch { dead_in, runs }));
                }
                TakeUp::Busy(None) => {
                    is_free = false;
                    continue;
                }
            },
            Ok(false) => {
                is_free = false;
                continue;
            }
            Err(error) => Err(error.into()),
        };
        is_free &= matches!(&outcome, Ok(turn) if !matches!(turn.end, TurnEnd::Waiting { .. }));
        recovered.push(Recovered { entry, outcome });
    }
    (recovered, None)
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

/// Takes up one run and drives it.
async fn take_up(engine: &Engine, owner: &Owner, entry: &RunEntry, agent: &Agent) -> TakeUp {
    let (Some(id), Some(conversation)) = (entry.id(), &entry.conversation) else {
        return TakeUp::Gone;
    };
    let chat = engine.conversation(conversation.as_str());
    let chat = match chat.owner(owner.as_str()).open().await {
        Ok(chat) => chat,
        Err(error) => return TakeUp::Driven(Err(error.into())),
    };
    match Run::resume(&chat, id, agent).await {
        Ok(mut run) => TakeUp::Driven(run.drive().await),
        Err(RunError::Busy { dead_in, .. }) => TakeUp::Busy(dead_in),
        // It may have ended since it was listed: other workers take up runs too.
        Err(error @ RunError::ItemMismatch { .. }) => match RunEntry::load(&chat, id).await {
            Ok(Some(now)) if !now.status.is_open() => TakeUp::Gone,
            _ => TakeUp::Driven(Err(error)),
        },
        Err(error) => TakeUp::Driven(Err(error)),
    }
}
