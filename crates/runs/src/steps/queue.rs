//! Runs that are asked for where their agent is not: they are stored with their input, and whoever has the agent begins them.
//!
//! The input is an entry beside the tree until the run begins. Its nodes' ids derive from the run, so a process that dies while it
//! begins a run leaves nothing twice. Not here: looking for such runs (`crate::recovery`).

use contexture_engine::{BranchClaim, Conversation, EngineError};
use contexture_ir::{Item, Raw, RunId};
use contexture_store::ExpectedVersion;

use crate::agent::Agent;
use crate::error::RunError;
use crate::execution::{LiveRun, json_bytes};
use crate::record::{RunEntry, RunStatus, load_value, put_value, queued_input_key};
use crate::steps::begin::{Interrupted, begin_claimed};

/// Asks for a run of the agent of this name on the handle's branch. It begins once a program that has the agent takes it up, by
/// [`recover_runs`](crate::recover_runs) or [`Run::resume`](crate::Run::resume); until then it is listed as
/// [`RunStatus::Queued`]. Runs that are queued on one branch begin one after the other, the oldest first.
///
/// The same `run` again changes nothing and returns its entry, so a caller that does not know whether it was stored can repeat the
/// call.
///
/// ```
/// # use std::sync::Arc;
/// # use contexture_models::ScriptedModel;
/// use contexture_ir::{Item, Message, Role};
/// use contexture_runs::{Agent, RunStatus, queue_run, recover_runs};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny."]));
/// # let engine = contexture_engine::Engine::in_memory();
/// # let chat = engine.conversation("trip").owner("ada").open().await?;
/// // A web server that has no agents:
/// let question = Item::Message(Message::text(Role::User, "How is the weather?"));
/// let entry = queue_run(&chat, engine.new_run_id(), "guide", [question]).await?;
/// assert_eq!(entry.status, RunStatus::Queued);
///
/// // A worker that has this one, every second or so:
/// let guide = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
/// let ended = recover_runs(&engine, chat.owner(), |name| (name == "guide").then(|| guide.clone())).await?;
/// assert_eq!(ended[0].outcome.as_ref().map(|turn| turn.text.as_str()).ok(), Some("Sunny."));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The store's.
pub async fn queue_run(
    chat: &Conversation,
    run: RunId,
    agent: &str,
    input: impl IntoIterator<Item = Item>,
) -> Result<RunEntry, RunError> {
    if let Some(entry) = RunEntry::load(chat, run).await? {
        return Ok(entry);
    }
    let input: Vec<Raw> = input
        .into_iter()
        .map(|item| Raw::parse(item.to_json()))
        .collect::<Result<_, _>>()
        .map_err(EngineError::from)?;
    // The input first: a run that is listed can begin.
    put_input(chat, run, Some(json_bytes(&input))).await?;
    let entry = RunEntry {
        run: run.to_string(),
        agent: agent.to_owned(),
        parent: None,
        depth: 0,
        branch: chat.branch().to_string(),
        status: RunStatus::Queued,
        started_ms: chat.engine().now_ms(),
        ended_ms: None,
        usage: None,
        result: None,
        value: None,
        reason: None,
        pending_calls: Vec::new(),
        conversation: Some(chat.id().clone()),
    };
    if entry.store_new_entry(chat, run).await? {
        return Ok(entry);
    }
    // The same call was made at the same time, and the run may have begun or ended since.
    let stored = RunEntry::load(chat, run).await?.unwrap_or(entry);
    if stored.status != RunStatus::Queued {
        clear_input(chat, run).await;
    }
    Ok(stored)
}

/// Begins a queued run whose branch is claimed; `None` if the run has no input, so that it was not queued.
///
/// # Errors
/// As [`Run::begin`](crate::Run::begin).
pub(crate) async fn begin_queued(
    claim: &BranchClaim,
    id: RunId,
    agent: &Agent,
) -> Result<Option<LiveRun>, RunError> {
    let chat = claim.conversation();
    let Some(input) = load_input(chat, id).await? else {
        return Ok(None);
    };
    let run = begin_claimed(claim, agent, (id, input), Interrupted::GoesFirst).await?;
    clear_input(chat, id).await;
    Ok(Some(run))
}

/// Removes the input of a run that has begun, or never will. If that fails, an entry that nobody reads stays.
pub(crate) async fn clear_input(chat: &Conversation, run: RunId) {
    if let Err(error) = put_input(chat, run, None).await {
        tracing::warn!(%run, %error, "the input of a queued run stays stored beside the tree");
    }
}

async fn load_input(chat: &Conversation, run: RunId) -> Result<Option<Vec<Item>>, RunError> {
    let key = queued_input_key(run);
    let Some(value) = load_value(chat, &key).await? else {
        return Ok(None);
    };
    let invalid = |reason: String| EngineError::StoredState {
        key: key.clone(),
        reason,
    };
    let items: Vec<Raw> =
        serde_json::from_slice(&value).map_err(|error| invalid(error.to_string()))?;
    let items = items.iter().map(|item| Item::parse(item.get()));
    let items = items.collect::<Result<_, _>>();
    Ok(Some(items.map_err(|error| invalid(error.to_string()))?))
}

async fn put_input(
    chat: &Conversation,
    run: RunId,
    value: Option<Vec<u8>>,
) -> Result<(), EngineError> {
    put_value(chat, queued_input_key(run), value, ExpectedVersion::Any).await
}
