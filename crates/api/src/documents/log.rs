//! A conversation's tree, message by message.

use std::collections::BTreeSet;

use contexture::EngineError;
use contexture::engine::CoverEntry;
use contexture::engine::tree::{ConversationTree, EntrySummary, TreeEntries, TreeEntry, TreeRow};
use contexture::ir::{ConversationId, ResponseId};
use contexture::store::{CallRecord, CallSum};
use contexture::tokens::{Encoding, TokenCounter, counter_for};
use serde::Serialize;
use utoipa::ToSchema;

use crate::documents::branch::BranchDocument;
use crate::documents::calls::UsageSumDocument;
use crate::documents::compaction::CoverDocument;
use crate::schema::TreeRoleSchema;
use crate::time::format_timestamp;

/// A conversation's tree: its messages, newest first, children before parents, and the names in it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogDocument {
    /// Id of the conversation.
    pub conversation: String,
    /// All branches, in order of creation.
    pub branches: Vec<BranchDocument>,
    /// Messages of the tree; one with a branch in its middle appears as two entries.
    pub entries: Vec<LogEntryDocument>,
    /// The compactions in effect on the active branch, oldest first.
    pub compactions: Vec<CoverDocument>,
    /// Number of messages that were left out because of the limit.
    pub hidden: usize,
    /// Number of left-out messages at which branches end.
    pub hidden_heads: usize,
    /// Value of `after` for the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A message in the tree of a conversation, or a part of one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogEntryDocument {
    /// Id of its newest node.
    pub id: String,
    /// Id of the message.
    pub message: String,
    /// Id of the newest node of the message before it; `null` for the first.
    pub parent: Option<String>,
    /// Role of the message.
    #[schema(value_type = TreeRoleSchema)]
    pub role: &'static str,
    /// Summary in one line: the beginning of its text, else the functions it calls, else the beginning of their output.
    pub text: String,
    /// Number of items in the message.
    pub items: usize,
    /// Number of function calls in the message.
    pub calls: u64,
    /// Tokens of its text, counted in `o200k_base`.
    pub tokens: u64,
    /// Time at which its newest node was stored (RFC 3339), as the writer gave it.
    pub created: String,
    /// Names of the branches that end here, the active one first.
    pub branches: Vec<String>,
    /// Names of the checkpoints that point here.
    pub checkpoints: Vec<String>,
    /// Whether the active branch ends here.
    pub active: bool,
    /// Whether something of the message is pinned on the active branch.
    pub pinned: bool,
    /// What the calls that gave it used and cost. Absent where that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageSumDocument>,
    /// The answers that it consists of.
    #[serde(skip)]
    responses: BTreeSet<ResponseId>,
}

impl LogDocument {
    /// Creates the document from the rows of a tree.
    ///
    /// # Errors
    /// A node is damaged.
    pub fn new(
        conversation: &ConversationId,
        tree: &ConversationTree,
        entries: &TreeEntries,
        rows: &[TreeRow],
        covers: &[CoverEntry],
    ) -> Result<Self, EngineError> {
        // One encoding for all entries: branches may have been written for different models, and
        // their figures are compared.
        let counter = counter_for(Encoding::O200kBase);
        let mut log = Self {
            conversation: conversation.to_string(),
            branches: tree.refs.branches.iter().map(Into::into).collect(),
            entries: Vec::new(),
            compactions: covers.iter().map(Into::into).collect(),
            hidden: 0,
            hidden_heads: 0,
            // A cursor is bound to the owner and the list, so the handler adds it.
            next: None,
        };
        for row in rows {
            log.add_row(row, entries, counter)?;
        }
        Ok(log)
    }

    /// Adds to each message what the calls that gave it used and cost, of these calls.
    pub fn add_usage(&mut self, calls: &[CallRecord]) {
        for entry in &mut self.entries {
            let is_own = |call: &&CallRecord| {
                let response = call.response.as_ref();
                response.is_some_and(|response| entry.responses.contains(response))
            };
            let mut sum = CallSum::default();
            for call in calls.iter().filter(is_own) {
                sum.add_sum(&CallSum::of_call(call.outcome, &call.details));
            }
            entry.usage = Some((&sum).into());
        }
    }

    fn add_row(
        &mut self,
        row: &TreeRow,
        entries: &TreeEntries,
        counter: &dyn TokenCounter,
    ) -> Result<(), EngineError> {
        match row {
            TreeRow::Entry { entry, .. } => {
                let entry = entries.0.get(*entry);
                let shown =
                    entry.map(|entry| LogEntryDocument::from_entry(entry, entries, counter));
                self.entries.extend(shown.transpose()?.flatten());
            }
            TreeRow::Hidden { entries, heads } => {
                self.hidden += entries;
                self.hidden_heads += heads;
            }
            // Marks of the drawn tree: a program follows `parent` instead.
            TreeRow::Join { .. }
            | TreeRow::Elided { .. }
            | TreeRow::Covered { .. }
            | TreeRow::Gap => {}
        }
        Ok(())
    }
}

impl LogEntryDocument {
    fn from_entry(
        entry: &TreeEntry,
        entries: &TreeEntries,
        counter: &dyn TokenCounter,
    ) -> Result<Option<Self>, EngineError> {
        // Without a node the entry has no id by which a reader could refer to it.
        let Some(node) = entry.head() else {
            return Ok(None);
        };
        let said = EntrySummary::from_entry(entry, counter)?;
        let parent = entry
            .parent
            .and_then(|parent| entries.0.get(parent)?.head());
        Ok(Some(Self {
            id: node.id.to_string(),
            message: node.effective_message_id().into_owned(),
            parent: parent.map(|parent| parent.id.to_string()),
            role: entry.role(),
            // The summary quotes texts to tell them from names of functions in a terminal.
            text: said.text.trim_matches('"').to_owned(),
            items: entry.nodes.len(),
            calls: entry.call_count(),
            tokens: said.tokens,
            created: format_timestamp(node.created_ms),
            branches: entry.branches.clone(),
            checkpoints: entry.checkpoints.clone(),
            active: entry.active,
            pinned: entry.pinned,
            usage: None,
            responses: entry
                .nodes
                .iter()
                .filter_map(|node| node.response)
                .collect(),
        }))
    }
}
