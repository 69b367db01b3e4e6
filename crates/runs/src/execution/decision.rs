//! Decisions of people about calls: stored as nodes of the branch of the run that made the call.
//!
//! The node's id derives from the call and from what was known of it before, so the first decision holds: of two at once the
//! store accepts one. A tool that was cut off may be decided about once more, for its next attempt.
//!
//! Not here: what a decision means to a call (`crate::steps`), and asking an approver.

use contexture_engine::{Conversation, Engine, EngineError, parse_node_item, state_node};
use contexture_ir::{
    BranchName, ConversationId, Extension, Item, NodeId, Origin, Owner, Raw, RunId,
};
use contexture_store::{
    AppendPoint, AppendRequest, Error as StoreError, NewItem, Node, PathEnd, StateRequest,
};
use serde::{Deserialize, Serialize};

use super::resume_state::StartedTool;
use crate::agent::{ApprovalDecision, Decision, StoredDecision};
use crate::error::RunError;
use crate::record::{RunEntry, approval_node_id, find_node, output_node_id, started_key};

/// Kind of the extension item that holds a decision.
const APPROVAL_KIND: &str = "ctx:approval";

#[derive(Serialize, Deserialize)]
struct ApprovalRecord {
    #[serde(rename = "type")]
    kind: String,
    call: String,
    #[serde(flatten)]
    decision: ApprovalDecision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

/// Reads the decision that a node holds, with the call it is about.
pub(crate) fn decision_of_node(
    node: &Node,
) -> Result<Option<(NodeId, StoredDecision)>, EngineError> {
    let Item::Extension(extension) = parse_node_item(node)? else {
        return Ok(None);
    };
    if extension.kind != APPROVAL_KIND {
        return Ok(None);
    }
    let Ok(approval) = extension.raw.parse_as::<ApprovalRecord>() else {
        return Ok(None);
    };
    let decided = StoredDecision {
        decision: approval.decision,
        by: approval.by,
        at_ms: node.created_ms,
    };
    Ok(approval.call.parse().ok().map(|call| (call, decided)))
}

/// Stores a person's decision about an open call of the run or of a child run. Resuming the run applies it.
///
/// The first decision holds. The same one again is fine, whoever makes it, and the stored one is returned.
///
/// # Errors
/// [`RunError::AlreadyDecided`] if another decision was made before; [`RunError::NotWaiting`] if there is no such call, it
/// has its output, or its run has ended; [`RunError::ItemMismatch`] for [`ApprovalDecision::Later`]; an error of the store.
pub async fn store_decision(
    chat: &Conversation,
    run: RunId,
    call: NodeId,
    decision: impl Into<Decision>,
) -> Result<StoredDecision, RunError> {
    let Decision { decision, by } = decision.into();
    if decision == ApprovalDecision::Later {
        return Err(RunError::ItemMismatch {
            subject: format!("the decision about call {call}"),
            expected: "to allow or to deny it".to_owned(),
            found: "later, which decides nothing".to_owned(),
        });
    }
    let (engine, owner, id) = (chat.engine(), chat.owner(), chat.id());
    let place = decision_place(engine, owner, id, call).await?;
    let Some(place) = place else {
        return Err(RunError::NotWaiting { call, run });
    };
    let approval = ApprovalRecord {
        kind: APPROVAL_KIND.to_owned(),
        call: call.to_string(),
        decision: decision.clone(),
        by,
    };
    let item = Item::Extension(Extension {
        kind: APPROVAL_KIND.to_owned(),
        id: None,
        raw: Raw::from_value(&approval).map_err(EngineError::from)?,
    });
    let now = engine.now_ms();
    let like = state_node(place.decision, now)?;
    let new = NewItem {
        run: Some(place.run),
        origin: Origin::User,
        audience: like.audience,
        ..NewItem::new(place.decision, &item, item.to_json(), now)
    };
    let at = AppendPoint::Tip {
        branch: place.branch,
    };
    let request = AppendRequest::new(at, vec![new], now);
    match engine.store().append_items(owner, id, request).await {
        // Somebody was faster, or this one was made before.
        Ok(_) | Err(StoreError::IdConflict { .. }) => {}
        Err(error) => return Err(EngineError::from(error).into()),
    }
    let stored = find_node(engine, owner, id, place.decision).await?;
    let stored = stored.map(|node| decision_of_node(&node)).transpose()?;
    match stored.flatten() {
        Some((_, stored)) if stored.decision == decision => Ok(stored),
        Some((_, decided)) => Err(RunError::AlreadyDecided { call, decided }),
        None => Err(RunError::NotWaiting { call, run }),
    }
}

/// Where the decision about a call is stored, or is to be.
struct DecisionPlace {
    /// The run that made the call, which may be a child of the one that waits.
    run: RunId,
    branch: BranchName,
    decision: NodeId,
}

/// Finds the place of the decision about an open call; `None` if there is no such call, it has its output, or its run
/// has ended.
async fn decision_place(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    call: NodeId,
) -> Result<Option<DecisionPlace>, EngineError> {
    let called = find_node(engine, owner, conversation, call).await?;
    let Some(run) = called.and_then(|called| called.run) else {
        return Ok(None);
    };
    let output = output_node_id(run, call);
    if find_node(engine, owner, conversation, output)
        .await?
        .is_some()
    {
        return Ok(None);
    }
    // A child reads decisions from its own branch, so the decision goes to the run that made the call.
    let Some(entry) = RunEntry::load_of(engine, owner, conversation, run).await? else {
        return Ok(None);
    };
    // Nothing carries out the calls of a run that has ended, so there is nothing to decide about them.
    if !entry.status.is_open() {
        return Ok(None);
    }
    let branch = BranchName::new(entry.branch)?;
    let key = started_key(run, call)?;
    let request = StateRequest {
        prefix: key.to_string(),
        ..StateRequest::all_entries(PathEnd::Branch(branch.clone()))
    };
    let state = engine
        .store()
        .read_state(owner, conversation, request)
        .await?;
    let started = state.loaded_value(&key);
    let started = started.and_then(|bytes| serde_json::from_slice::<StartedTool>(bytes).ok());
    let before = started.and_then(|started| started.decided);
    Ok(Some(DecisionPlace {
        run,
        branch,
        decision: approval_node_id(run, call, before.as_deref()),
    }))
}

/// Loads the decision about an open call, if somebody made one.
pub(crate) async fn load_decision(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    call: NodeId,
) -> Result<Option<StoredDecision>, EngineError> {
    let Some(place) = decision_place(engine, owner, conversation, call).await? else {
        return Ok(None);
    };
    let node = find_node(engine, owner, conversation, place.decision).await?;
    let decided = node.map(|node| decision_of_node(&node)).transpose()?;
    Ok(decided.flatten().map(|(_, decided)| decided))
}
