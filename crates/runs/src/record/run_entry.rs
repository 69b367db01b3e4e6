//! The record of a run on the tree while it is open, and its entry outside the tree for lists.
//!
//! The tree is authoritative: a run is open exactly as long as its record is state of its branch's head. The entry is
//! written before the first append, whenever the run waits, and after the last append.

use contexture_engine::{Conversation, Engine, EngineError, RunScope};
use contexture_ir::{BranchName, ConversationId, NodeId, Owner, Raw, RunId};
use contexture_store::{Error as StoreError, ExpectedVersion, KeyScope};
use serde::{Deserialize, Serialize};

use crate::limits::{RunBudget, RunUsage};
use crate::record::state_keys::entry_key;
use crate::record::values::put_value;

/// Version of all state that runs store.
pub(crate) const RUN_STATE_VERSION: u32 = 1;

/// The record of an open run, stored as state on its branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// The agent's name.
    pub(crate) agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    #[serde(default)]
    pub(crate) depth: u32,
    #[serde(default)]
    pub(crate) budget: RunBudget,
    #[serde(rename = "began_ms")]
    pub(crate) started_ms: i64,
    /// The head after which the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<String>,
    /// Whether the results of its durable steps are nodes, which they are of every run that begins now.
    #[serde(default)]
    pub(crate) has_step_nodes: bool,
}

impl RunRecord {
    /// Returns the run's identity for its layers.
    pub(crate) const fn run_scope(&self, id: RunId) -> RunScope {
        RunScope {
            id,
            depth: self.depth,
        }
    }
}

/// Status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It was asked for ([`queue_run`](crate::queue_run)), and nobody has taken it up yet.
    Queued,
    /// It is in progress, or was when its process died.
    Running,
    /// It waits for a person's decision.
    Waiting,
    /// It ended normally.
    Completed,
    /// It was aborted.
    Aborted,
    /// It ended with an error.
    Failed,
}

impl RunStatus {
    /// All statuses of a run.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Completed,
        Self::Aborted,
        Self::Failed,
    ];

    /// Returns the name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
        }
    }

    /// Whether the run has not ended.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Waiting)
    }
}

/// A run, as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    /// The run's id, as 32 hexadecimal digits.
    pub run: String,
    /// The agent's name.
    pub agent: String,
    /// Id of its parent, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How many ancestors it has.
    #[serde(default)]
    pub depth: u32,
    /// The branch it works on.
    pub branch: String,
    /// Status of the run.
    pub status: RunStatus,
    /// Start time, in milliseconds since the Unix epoch.
    #[serde(rename = "began_ms")]
    pub started_ms: i64,
    /// End time, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<i64>,
    /// Usage of the run, children included; absent while the run is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "spent")]
    pub usage: Option<RunUsage>,
    /// Text of the last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Final value set by a tool or by the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Raw>,
    /// Reason of an abort or a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "why")]
    pub reason: Option<String>,
    /// The nodes of the calls it waits for, as 32 hexadecimal digits: its own, then those of its child runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "waiting")]
    pub pending_calls: Vec<String>,
    /// The conversation. Not stored; set when the entry is read.
    #[serde(skip)]
    pub conversation: Option<ConversationId>,
}

impl RunEntry {
    pub(crate) fn new(run: RunId, record: &RunRecord, branch: &BranchName) -> Self {
        Self {
            run: run.to_string(),
            agent: record.agent.clone(),
            parent: record.parent.clone(),
            depth: record.depth,
            branch: branch.to_string(),
            status: RunStatus::Running,
            started_ms: record.started_ms,
            ended_ms: None,
            usage: None,
            result: None,
            value: None,
            reason: None,
            pending_calls: Vec::new(),
            conversation: None,
        }
    }

    /// Id of the run.
    #[must_use]
    pub fn id(&self) -> Option<RunId> {
        self.run.parse().ok()
    }

    /// Parses a stored entry; `None` if it is invalid. Lists skip such entries: a newer version may have written them.
    pub(crate) fn parse_stored(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Stores the entry, replacing any other.
    pub(crate) async fn store_entry(
        &self,
        chat: &Conversation,
        run: RunId,
    ) -> Result<(), EngineError> {
        self.put(chat, run, ExpectedVersion::Any).await
    }

    /// Stores the entry of a run that has none. Returns whether it has none.
    pub(crate) async fn store_new_entry(
        &self,
        chat: &Conversation,
        run: RunId,
    ) -> Result<bool, EngineError> {
        match self.put(chat, run, ExpectedVersion::Absent).await {
            Ok(()) => Ok(true),
            Err(EngineError::Store(StoreError::VersionConflict { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn put(
        &self,
        chat: &Conversation,
        run: RunId,
        expect: ExpectedVersion,
    ) -> Result<(), EngineError> {
        // Only strings and numbers, so this cannot fail.
        let value = serde_json::to_vec(self).unwrap_or_default();
        put_value(chat, entry_key(run), Some(value), expect).await
    }

    /// Loads the entry of a run of this conversation, if there is one.
    ///
    /// # Errors
    /// The store's.
    pub async fn load(chat: &Conversation, run: RunId) -> Result<Option<Self>, EngineError> {
        Self::load_of(chat.engine(), chat.owner(), chat.id(), run).await
    }

    /// Loads the entry of a run of a conversation.
    pub(crate) async fn load_of(
        engine: &Engine,
        owner: &Owner,
        conversation: &ConversationId,
        run: RunId,
    ) -> Result<Option<Self>, EngineError> {
        let scope = KeyScope::Conversation(conversation.clone());
        let key = entry_key(run);
        let entry = engine.store().get_entry(owner, &scope, &key);
        let entry = entry.await?;
        let entry = entry.and_then(|entry| Self::parse_stored(&entry.value));
        Ok(entry.map(|entry| Self {
            conversation: Some(conversation.clone()),
            ..entry
        }))
    }
}

/// Formats a head as text.
pub(crate) fn head_to_string(head: Option<NodeId>) -> Option<String> {
    head.map(|head| head.to_string())
}
