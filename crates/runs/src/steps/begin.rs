//! The beginning of a run: its branch is claimed, what is unfinished there is dealt with, its input is stored.
//!
//! A branch is worked on by one run at a time. Not here: resuming a run (`resume`), and child runs (`sub_agent`).

use contexture_engine::{BranchClaim, Conversation, EngineError, run_prefix};
use contexture_ir::{Item, RunId};
use contexture_store::{NodeState, PathEnd, StateChange, StateRequest};

use crate::agent::{Agent, UnfinishedRun};
use crate::error::RunError;
use crate::execution::{LiveRun, SideUsageLog, waiting_calls};
use crate::record::{
    RUN_STATE_VERSION, RUNS_PREFIX, RunEntry, RunRecord, head_to_string, open_run_of_key, state_key,
};
use crate::steps::abandon::abandon_claimed;
use crate::tasks::Abort;

/// Starts a run. See [`Run::begin`](crate::Run::begin).
///
/// # Errors
/// [`RunError::Busy`], [`RunError::Unfinished`], [`RunError::Agent`], [`RunError::Engine`].
pub(crate) async fn begin(
    chat: &Conversation,
    agent: &Agent,
    input: Vec<Item>,
) -> Result<LiveRun, RunError> {
    let mut claim = claim_branch(chat).await?;
    let id = chat.engine().new_run_id();
    match begin_claimed(&claim, agent, (id, input), Interrupted::Abandon).await {
        Ok(mut run) => {
            run.claim = Some(claim);
            Ok(run)
        }
        Err(error) => {
            release(&mut claim).await;
            Err(error.or_superseded())
        }
    }
}

/// What becomes of a run that was interrupted on the branch where another begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// It is abandoned: the person went on without it.
    Abandon,
    /// It goes on first, and no other begins: nobody has seen yet that it was interrupted.
    GoesFirst,
}

/// Starts the run of this id on a branch that is claimed. The claim stays with the caller.
///
/// # Errors
/// [`RunError::Unfinished`], [`RunError::Agent`], [`RunError::Engine`].
pub(crate) async fn begin_claimed(
    claim: &BranchClaim,
    agent: &Agent,
    (id, input): (RunId, Vec<Item>),
    interrupted: Interrupted,
) -> Result<LiveRun, RunError> {
    let copied = settle_open_runs(claim, agent, id, interrupted).await?;
    let chat = agent.view_of(claim.conversation());
    let record = RunRecord {
        agent: agent.name.clone(),
        parent: None,
        depth: 0,
        budget: agent.budget,
        started_ms: chat.engine().now_ms(),
        base: head_to_string(chat.head().await?),
        has_step_nodes: true,
    };
    let session = chat.layer_session(Some(record.run_scope(id))).await?;
    let mut run = LiveRun::new(
        chat,
        agent.clone(),
        id,
        record,
        session,
        Abort::new(),
        SideUsageLog::new(),
    )?;
    run.store_input(input, copied).await?;
    Ok(run)
}

/// Claims the branch of a run for this process.
///
/// # Errors
/// [`RunError::Busy`] while another driver has it; the store's.
pub(crate) async fn claim_branch(chat: &Conversation) -> Result<BranchClaim, RunError> {
    chat.claim_branch().await.map_err(busy_error)
}

/// Claims the branch of a child of `run`: whoever drives the parent drives the child, so an earlier driver of the parent, which may
/// live, is superseded in the child too.
///
/// # Errors
/// [`RunError::Busy`] while the child is driven in this process; [`RunError::Superseded`] if it is this driver of the parent that
/// is late; the store's.
pub(crate) async fn claim_child_branch(
    run: &LiveRun,
    chat: &Conversation,
) -> Result<BranchClaim, RunError> {
    match claim_branch(chat).await {
        Err(RunError::Busy {
            dead_in: Some(_), ..
        }) => {
            run.check_current().await?;
            chat.take_branch().await.map_err(busy_error)
        }
        claimed => claimed,
    }
}

fn busy_error(error: EngineError) -> RunError {
    match error {
        EngineError::BranchBusy {
            branch,
            by,
            since_ms,
            dead_in,
        } => RunError::Busy {
            branch,
            by,
            since_ms,
            dead_in,
        },
        error => error.into(),
    }
}

/// Releases a claim. A failure only delays the next driver: the claim is released with the next beat of this process.
pub(crate) async fn release(claim: &mut BranchClaim) {
    if let Err(error) = claim.release().await {
        tracing::warn!(%error, "a run's branch is released later");
    }
}

/// Deals with runs that are open on the branch, which nobody drives now: its claim is held.
///
/// One that waits for a decision is left alone, and the new run is refused, unless the agent says otherwise. One that was
/// interrupted is abandoned: the person went on without it, and its tools must not run behind what they said since.
///
/// Where the branch begins in the midst of a run of another branch, as one of a restored checkpoint does, that run's state is on it.
/// Returns the changes that give the program's own state of it to the run `begins`, and remove the rest.
async fn settle_open_runs(
    claim: &BranchClaim,
    agent: &Agent,
    begins: RunId,
    interrupted: Interrupted,
) -> Result<Vec<StateChange>, RunError> {
    let chat = claim.conversation();
    let state = runs_state_of_branch(chat).await?;
    let mut changes = Vec::new();
    // A child's branch carries its parent's state too: the innermost run is the one that the program was in.
    let mut taken_over: Option<(u32, RunId)> = None;
    for id in state.root.keys().filter_map(open_run_of_key) {
        let Some(entry) = RunEntry::load(chat, id).await? else {
            continue;
        };
        if entry.branch != chat.branch().as_str() {
            changes.extend(remove_state(&state, id));
            // Another agent has a state of its own.
            if agent.check_name(&entry.agent).is_ok() {
                taken_over = taken_over.max(Some((entry.depth, id)));
            }
            continue;
        }
        if !entry.status.is_open() {
            continue;
        }
        let calls = waiting_calls(chat.engine(), chat.owner(), &entry).await?;
        let refuses = agent.unfinished_run == UnfinishedRun::Refuse;
        if interrupted == Interrupted::GoesFirst || (refuses && !calls.is_empty()) {
            return Err(RunError::Unfinished {
                run: id,
                agent: entry.agent,
                calls,
            });
        }
        abandon_claimed(claim, entry, "another turn began").await?;
    }
    if let Some((_, of)) = taken_over
        && let Some(value) = state.loaded_value(&state_key(of)?)
    {
        let key = state_key(begins)?;
        changes.push(StateChange::put_entry(
            key,
            RUN_STATE_VERSION,
            value.to_vec(),
        ));
    }
    Ok(changes)
}

/// Removes all that the branch carries of a run.
fn remove_state(state: &NodeState, of: RunId) -> Vec<StateChange> {
    let prefix = run_prefix(of);
    let keys = state.root.keys();
    let keys = keys.filter(|key| key.as_str().starts_with(&prefix));
    keys.cloned().map(StateChange::remove_entry).collect()
}

/// The state of runs at the branch's head.
async fn runs_state_of_branch(chat: &Conversation) -> Result<NodeState, RunError> {
    let request = StateRequest {
        // The states of the branch's layers may be large.
        prefix: RUNS_PREFIX.to_owned(),
        ..StateRequest::all_entries(PathEnd::Branch(chat.branch()))
    };
    let store = chat.engine().store();
    let state = store.read_state(chat.owner(), chat.id(), request).await;
    Ok(state.map_err(EngineError::from)?)
}
