//! What a run that is taken up knows of the calls it left: which were begun, and what people decided.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_engine::{Conversation, EngineError, parse_node_item, state_node};
use contexture_ir::{BranchName, Extension, Item, NodeId, Origin, Raw, RunId};
use contexture_store::{AppendPoint, AppendRequest, NewItem, Node, NodeQuery, NodeState};
use contexture_tools::ToolId;
use serde::{Deserialize, Serialize};

use crate::agent::ApprovalDecision;
use crate::record::{RunEntry, node_id, started_key};

/// The item of a decision.
const APPROVAL_KIND: &str = "ctx:approval";

/// What is known of calls without an output.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResumeState {
    /// Those whose tool was begun.
    started_tools: BTreeMap<NodeId, StartedTool>,
    /// What people decided last, and the node that says so.
    decisions: BTreeMap<NodeId, (NodeId, ApprovalDecision)>,
}

/// That the tool of a call was begun, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StartedTool {
    tool: String,
    /// The last decision then: it was about this time, and about no other.
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
    /// As the nodes of a run and its state say.
    pub(crate) fn from_path(
        run: RunId,
        nodes: &[Arc<Node>],
        state: &NodeState,
        calls: impl Iterator<Item = NodeId>,
    ) -> Result<Self, EngineError> {
        let mut left = Self::default();
        for call in calls {
            let key = started_key(run, call)?;
            if let Some(bytes) = state.loaded_value(&key) {
                let started =
                    serde_json::from_slice(bytes).map_err(|error| EngineError::StoredState {
                        key: key.to_string(),
                        why: error.to_string(),
                    })?;
                left.started_tools.insert(call, started);
            }
        }
        for node in nodes {
            // The last word on a call counts.
            if let Item::Extension(extension) = parse_node_item(node)?
                && extension.kind == APPROVAL_KIND
                && let Ok(approval) = extension.raw.parse_as::<ApprovalRecord>()
                && let Ok(call) = approval.call.parse()
            {
                left.decisions.insert(call, (node.id, approval.decision));
            }
        }
        Ok(left)
    }

    /// What is stored when a call's tool begins.
    pub(crate) fn start_marker(&self, call: NodeId, tool: &ToolId) -> StartedTool {
        StartedTool {
            tool: tool.to_string(),
            decided: self.decisions.get(&call).map(|(node, _)| node.to_string()),
        }
    }

    /// Whether a call's tool was begun.
    pub(crate) fn has_started_tool(&self, call: NodeId) -> bool {
        self.started_tools.contains_key(&call)
    }

    /// What people decided about a call.
    pub(crate) fn decision(&self, call: NodeId) -> Option<&ApprovalDecision> {
        self.decisions.get(&call).map(|(_, decision)| decision)
    }

    /// What people decided about a call since its tool was begun.
    pub(crate) fn decision_since_start(&self, call: NodeId) -> Option<&ApprovalDecision> {
        let (node, decision) = self.decisions.get(&call)?;
        let before = self.started_tools.get(&call)?.decided.as_deref();
        (before != Some(node.to_string().as_str())).then_some(decision)
    }
}

/// Stores what a person decided about a call that waits: of the run, or of one below it. Resuming the run takes it up.
///
/// # Errors
/// The store's `NotFound` where there is no such call, or its other errors.
pub async fn store_decision(
    chat: &Conversation,
    run: RunId,
    call: NodeId,
    decision: ApprovalDecision,
) -> Result<(), EngineError> {
    let store = chat.engine().store();
    let found = store.find_nodes(chat.owner(), chat.id(), NodeQuery::Id(call));
    let of = found.await?.first().and_then(|node| node.run);
    // It stands where the run reads it whose call it is.
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
