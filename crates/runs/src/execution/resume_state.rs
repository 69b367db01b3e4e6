//! State of open calls in a resumed run: which tools were started, and what people decided.
//!
//! An approval is for one attempt. If the tool was started and interrupted, an approval from before that attempt must
//! not let it run again; a start marker therefore records the decision that was known when the tool started.
//!
//! Not here: whether such a tool runs again, waits for a person or is reported as unknown (`steps/decide_call.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_engine::EngineError;
use contexture_ir::{NodeId, RunId};
use contexture_store::{Node, NodeState};
use contexture_tools::ToolId;
use serde::{Deserialize, Serialize};

use super::decision::decision_of_node;
use crate::agent::ApprovalDecision;
use crate::record::started_key;

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
    pub(super) decided: Option<String>,
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
            // Oldest first, so the decision about a later attempt replaces that about an earlier one.
            if let Some((call, decided)) = decision_of_node(node)? {
                resume.decisions.insert(call, (node.id, decided.decision));
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
