//! The end node: how a run ended, stored on its branch.
//!
//! Entries of lists and parent runs are corrected from it after a crash. Not here: ending a run (`crate::steps`).

use std::sync::Arc;

use contexture_engine::{Conversation, EngineError, parse_node_item, state_node};
use contexture_ir::{Extension, Item, Raw, RunId};
use contexture_store::{NewItem, Node};
use serde::{Deserialize, Serialize};

use crate::limits::RunUsage;
use crate::record::run_entry::{RunEntry, RunStatus};
use crate::record::state_keys::end_node_id;
use crate::record::state_keys::find_node;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredRunEnd {
    pub(crate) status: RunStatus,
    pub(crate) ended_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "spent")]
    pub(crate) usage: Option<RunUsage>,
    /// Text of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<String>,
    /// Final value that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Raw>,
    /// Reason of an abort or a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "why")]
    pub(crate) reason: Option<String>,
}

/// JSON of the end node's item: a state node's item with the end added.
#[derive(Serialize, Deserialize)]
struct FinishRecord {
    #[serde(rename = "type")]
    kind: String,
    run: StoredRunEnd,
}

impl StoredRunEnd {
    /// Returns the end of a run that has an entry but was never appended.
    pub(crate) fn aborted_before_start(now_ms: i64, reason: &str) -> Self {
        Self {
            status: RunStatus::Aborted,
            ended_ms: now_ms,
            usage: None,
            result: None,
            value: None,
            reason: Some(reason.to_owned()),
        }
    }

    /// Builds the node that ends a run.
    pub(crate) fn to_end_node(&self, run: RunId) -> Result<NewItem, EngineError> {
        // Built as a state node, so that readers that do not know runs ignore it.
        let like = state_node(end_node_id(run), self.ended_ms)?;
        let Item::Extension(plain) = Item::parse(&like.json)? else {
            return Ok(like);
        };
        let ending = FinishRecord {
            kind: plain.kind.clone(),
            run: self.clone(),
        };
        let item = Item::Extension(Extension {
            raw: Raw::from_value(&ending)?,
            ..plain
        });
        Ok(NewItem {
            origin: like.origin,
            audience: like.audience,
            ..NewItem::new(like.id, &item, item.to_json(), self.ended_ms)
        })
    }

    /// Loads how a run ended, with its end node; `None` if it has not ended.
    pub(crate) async fn load(
        chat: &Conversation,
        run: RunId,
    ) -> Result<Option<(Arc<Node>, Self)>, EngineError> {
        let found = find_node(chat.engine(), chat.owner(), chat.id(), end_node_id(run));
        let Some(node) = found.await? else {
            return Ok(None);
        };
        let Item::Extension(item) = parse_node_item(&node)? else {
            return Ok(None);
        };
        let ending = item.raw.parse_as::<FinishRecord>();
        Ok(ending.ok().map(|ending| (node, ending.run)))
    }

    /// Returns the run's entry with this end.
    pub(crate) fn apply_to_entry(self, entry: RunEntry) -> RunEntry {
        RunEntry {
            status: self.status,
            ended_ms: Some(self.ended_ms),
            usage: self.usage,
            result: self.result,
            value: self.value,
            reason: self.reason,
            ..entry
        }
    }
}
