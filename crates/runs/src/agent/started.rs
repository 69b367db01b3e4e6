//! What a run that is taken up knows of the calls it left: which were begun, and what people decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contexture_engine::{Conversation, EngineError, item, state_node};
use contexture_ir::{BranchName, Extension, Item, NodeId, Origin, Raw, RunId};
use contexture_store::{AppendAt, AppendRequest, NewItem, Node, NodeQuery, State};
use serde::{Deserialize, Serialize};

use super::approval::Decision;
use super::entry::RunEntry;
use super::keys::{node_id, started_key};

/// The item of a decision.
const KIND: &str = "ctx:approval";

/// What is known of calls without an output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Left {
    /// Those whose tool was begun.
    pub(crate) begun: BTreeSet<NodeId>,
    /// What people decided.
    pub(crate) decided: BTreeMap<NodeId, Decision>,
}

#[derive(Serialize, Deserialize)]
struct Approval {
    #[serde(rename = "type")]
    kind: String,
    call: String,
    #[serde(flatten)]
    decision: Decision,
}

impl Left {
    /// As the nodes of a run and its state say.
    pub(crate) fn of(
        run: RunId,
        nodes: &[Arc<Node>],
        state: &State,
        calls: impl Iterator<Item = NodeId>,
    ) -> Result<Self, EngineError> {
        let mut left = Self::default();
        for call in calls {
            if state.root.contains_key(&started_key(run, call)?) {
                left.begun.insert(call);
            }
        }
        for node in nodes {
            // The last word on a call counts.
            if let Item::Extension(extension) = item(node)?
                && extension.kind == KIND
                && let Ok(approval) = extension.raw.to::<Approval>()
                && let Ok(call) = approval.call.parse()
            {
                left.decided.insert(call, approval.decision);
            }
        }
        Ok(left)
    }
}

/// Stores what a person decided about a call that waits: of the run, or of one below it. Resuming the run takes it up.
///
/// # Errors
/// The store's `NotFound` where there is no such call, or its other errors.
pub async fn decide(
    chat: &Conversation,
    run: RunId,
    call: NodeId,
    decision: Decision,
) -> Result<(), EngineError> {
    let store = chat.engine().store();
    let found = store.nodes(chat.owner(), chat.id(), NodeQuery::Id(call));
    let of = found.await?.first().and_then(|node| node.run);
    // It stands where the run reads it whose call it is.
    let run = of.unwrap_or(run);
    let chat = match RunEntry::of(chat, run).await? {
        Some(entry) => &chat.on_branch(BranchName::new(entry.branch)?),
        None => chat,
    };
    let approval = Approval {
        kind: KIND.to_owned(),
        call: call.to_string(),
        decision,
    };
    let item = Item::Extension(Extension {
        kind: KIND.to_owned(),
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
    let at = AppendAt::Tip {
        branch: chat.branch(),
    };
    let request = AppendRequest::new(at, vec![new], now);
    store.append(chat.owner(), chat.id(), request).await?;
    Ok(())
}
