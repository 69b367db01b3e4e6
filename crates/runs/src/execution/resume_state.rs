//! State of open calls in a resumed run: which tools were started, and what people decided.
//!
//! An approval is for one attempt. If the tool was started and interrupted, an approval from before that attempt must
//! not let it run again; a start marker therefore records the decision that was known when the tool started.
//!
//! Not here: whether such a tool runs again, waits for a person or is reported as unknown (`steps/decide_call.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_engine::{Conversation, EngineError, parse_node_item, state_node};
use contexture_ir::{BranchName, Extension, Item, NodeId, Origin, Raw, RunId};
use contexture_store::{AppendPoint, AppendRequest, NewItem, Node, NodeQuery, NodeState};
use contexture_tools::ToolId;
use serde::{Deserialize, Serialize};

use crate::agent::ApprovalDecision;
use crate::record::{RunEntry, node_id, started_key};

/// Kind of the extension item that holds a decision.
const APPROVAL_KIND: &str = "ctx:approval";

/// What is stored about calls without an output.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResumeState {
    /// Calls whose tool was started.
    started_tools: BTreeMap<NodeId, StartedTool>,
    /// The last decision about each call, with its node.
    decisions: BTreeMap<NodeId, (NodeId, ApprovalDecision)>,
}

/// A start marker: the tool of a call was started. Stored as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StartedTool {
    tool: String,
    /// Node of the decision that was known when the tool started; it allows that attempt and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ApprovalRecord {
    #[serde(rename = "type")]
    kind: String,
    call: String,
    #[serde(flatten)]
    decision: ApprovalDecision,
}

impl ResumeState {
    /// Reads markers and decisions from a run's state and nodes.
    pub(crate) fn from_path(
        run: RunId,
        nodes: &[Arc<Node>],
        state: &NodeState,
        calls: impl Iterator<Item = NodeId>,
    ) -> Result<Self, EngineError> {
        let mut resume = Self::default();
        for call in calls {
            let key = started_key(run, call)?;
            if let Some(bytes) = state.loaded_value(&key) {
                let started =
                    serde_json::from_slice(bytes).map_err(|error| EngineError::StoredState {
                        key: key.to_string(),
                        reason: error.to_string(),
                    })?;
                resume.started_tools.insert(call, started);
            }
        }
        for node in nodes {
            // Oldest first, so a later decision about the same call replaces an earlier one.
            if let Item::Extension(extension) = parse_node_item(node)?
                && extension.kind == APPROVAL_KIND
                && let Ok(approval) = extension.raw.parse_as::<ApprovalRecord>()
                && let Ok(call) = approval.call.parse()
            {
                resume.decisions.insert(call, (node.id, approval.decision));
            }
        }
        Ok(resume)
    }

    /// Builds the marker to store before a call's tool begins.
    pub(crate) fn start_marker(&self, call: NodeId, tool: &ToolId) -> StartedTool {
        StartedTool {
            tool: tool.to_string(),
            decided: self.decisions.get(&call).map(|(node, _)| node.to_string()),
        }
    }

    /// Whether an earlier process started the call's tool.
    pub(crate) fn has_started_tool(&self, call: NodeId) -> bool {
        self.started_tools.contains_key(&call)
    }

    /// The last decision about a call.
    pub(crate) fn decision(&self, call: NodeId) -> Option<&ApprovalDecision> {
        self.decisions.get(&call).map(|(_, decision)| decision)
    }

    /// The last decision about a call, if it was made after its tool was started.
    pub(crate) fn decision_since_start(&self, call: NodeId) -> Option<&ApprovalDecision> {
        let (node, decision) = self.decisions.get(&call)?;
        let before = self.started_tools.get(&call)?.decided.as_deref();
        (before != Some(node.to_string().as_str())).then_some(decision)
    }
}

/// Stores a person's decision about a waiting call of the run or of a child run. Resuming the run applies it.
///
/// # Errors
/// The store's `NotFound` if there is no such call, or any other error of the store.
pub async fn store_decision(
    chat: &Conversation,
    run: RunId,
    call: NodeId,
    decision: ApprovalDecision,
) -> Result<(), EngineError> {
    let store = chat.engine().store();
    let found = store.find_nodes(chat.owner(), chat.id(), NodeQuery::Id(call));
    let of = found.await?.first().and_then(|node| node.run);
    // A child reads decisions from its own branch, so the decision goes to the run that made the call, not to the run
    // that was named.
    let run = of.unwrap_or(run);
    let chat = match RunEntry::load(chat, run).await? {
        Some(entry) => &chat.for_branch(BranchName::new(entry.branch)?),
        None => chat,
    };
    let approval = ApprovalRecord {
        kind: APPROVAL_KIND.to_owned(),
        call: call.to_string(),
        decision,
    };
    let item = Item::Extension(Extension {
        kind: APPROVAL_KIND.to_owned(),
        id: None,
        raw: Raw::from_value(&approval)?,
    });
    let now = chat.engine().now_ms();
    let head = chat
        .head()
        .await?
        .map_or_else(String::new, |head| head.to_string());
    // The head makes the id unique: the same call may be decided again later, for another attempt.
    let id = node_id(run, "approval", format!("{call}/{head}").as_bytes());
    let like = state_node(id, now)?;
    let new = NewItem {
        run: Some(run),
        origin: Origin::User,
        audience: like.audience,
        ..NewItem::new(id, &item, item.to_json(), now)
    };
    let at = AppendPoint::Tip {
        branch: chat.branch(),
    };
    let request = AppendRequest::new(at, vec![new], now);
    store.append_items(chat.owner(), chat.id(), request).await?;
    Ok(())
}
