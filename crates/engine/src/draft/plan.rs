//! What a commit of staged entries would store, and where: the one answer of which `resolve` shows the messages and which
//! `commit` stores.
//!
//! An edited message takes a new id on a branch that is opened before it. Whatever was staged follows it there, messages that
//! were stored behind that place as copies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contexture_ir::{BranchName, Item, MessageId, NodeId};
use contexture_store::{Node, PathEnd};

use super::classify::{
    DraftBase, SaveAction, StagedNode, derived_message_id, item_key, require_equal_items,
};
use super::new_items::PendingNode;
use super::stage::{StagedContent, StagedEntry, merge_equal_ids, replace_last_assistant};
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::refs::load_head_of;

/// What a draft would store.
pub(crate) struct DraftPlan {
    /// The branch the draft was made on.
    pub(crate) branch: BranchName,
    /// Its head when the plan was made.
    pub(crate) head: Option<NodeId>,
    pub(crate) entries: Vec<StagedNode>,
    /// The ids that edited messages had, with those they get.
    pub(crate) edited: BTreeMap<MessageId, MessageId>,
    /// Where the earliest edit opens a branch.
    pub(crate) fork: Option<EditFork>,
}

/// The place of the earliest edited message.
#[derive(Clone, Copy)]
pub(crate) struct EditFork {
    /// The node before the message; `None`: it is the first.
    pub(crate) base: Option<NodeId>,
    /// The depth of its first node.
    depth: u64,
}

impl DraftPlan {
    /// The node that the items go behind; `None`: they begin a path.
    pub(crate) fn parent(&self) -> Option<NodeId> {
        self.fork.map_or(self.head, |fork| fork.base)
    }

    /// Whether nodes stay where they are: on this branch, and before an edit.
    pub(crate) fn keeps(&self, nodes: &[Arc<Node>]) -> bool {
        let last = nodes.last().map(|node| node.depth);
        match self.fork {
            Some(fork) => last.is_some_and(|last| last < fork.depth),
            None => last.is_some(),
        }
    }

    /// Number of items that are not where they belong yet.
    pub(crate) fn item_count(&self) -> usize {
        let counts = self
            .entries
            .iter()
            .map(|entry| entry.items.len() - self.stored_item_count(entry));
        counts.sum()
    }

    /// How many of an entry's items stay where they are.
    pub(crate) fn stored_item_count(&self, entry: &StagedNode) -> usize {
        match entry.action {
            SaveAction::Same if self.keeps(&entry.stored) => entry.items.len(),
            SaveAction::Grown(stored) if self.keeps(&entry.stored) => stored.min(entry.items.len()),
            _ => 0,
        }
    }

    /// The ids of the messages in the order they were staged, each once: of what is stored now as it is stored, of what
    /// was there already as it was.
    pub(crate) fn message_ids(&self, pending: &[PendingNode]) -> Vec<MessageId> {
        let mut listed = BTreeSet::new();
        let ids = self.entries.iter().enumerate().map(|(at, entry)| {
            let new = pending.iter().find(|node| node.entry == at);
            new.and_then(|node| node.new.message_id.clone())
                .unwrap_or_else(|| entry.id.clone())
        });
        ids.filter(|id| listed.insert(id.clone())).collect()
    }
}

/// Compares staged entries with the head of the draft's branch.
pub(crate) async fn plan_draft(
    chat: &Conversation,
    key: &[u8; 16],
    branch: &BranchName,
    mut staged: Vec<StagedEntry>,
) -> Result<DraftPlan, EngineError> {
    // Read once: every message is compared with the branch as it was at this head.
    let head = load_head_of(chat, branch.clone()).await?;
    let at = head.map_or_else(|| PathEnd::Branch(branch.clone()), PathEnd::Node);
    replace_last_assistant(chat, &at, &mut staged).await?;
    let staged = merge_equal_items(merge_equal_ids(staged)?)?;
    let base = DraftBase {
        chat,
        key,
        head,
        at,
    };
    let mut entries = Vec::with_capacity(staged.len());
    for entry in staged {
        entries.extend(base.classify(entry).await?);
    }
    let edited = assign_new_ids(key, &mut entries)?;
    // A known item of a message that is edited is replaced with it: a copy would bring the old message back.
    entries.retain(|entry| entry.action != SaveAction::Same || !edited.contains_key(&entry.id));
    Ok(DraftPlan {
        branch: branch.clone(),
        head,
        fork: earliest_edit(&entries),
        entries,
        edited,
    })
}

/// Leaves one item of each id.
///
/// # Errors
/// [`EngineError::ItemConflict`] if another says something else.
fn merge_equal_items(staged: Vec<StagedEntry>) -> Result<Vec<StagedEntry>, EngineError> {
    let mut merged: Vec<StagedEntry> = Vec::with_capacity(staged.len());
    let mut known: BTreeMap<String, Item> = BTreeMap::new();
    for entry in staged {
        if let StagedContent::Item(item) = &entry.content
            && let Some(id) = item_key(item)
        {
            if let Some(first) = known.get(id) {
                require_equal_items(id, item, first)?;
                continue;
            }
            known.insert(id.to_owned(), item.clone());
        }
        merged.push(entry);
    }
    Ok(merged)
}

/// Gives edited messages new ids; a copy of an unchanged one keeps its id on the new branch.
fn assign_new_ids(
    key: &[u8; 16],
    entries: &mut [StagedNode],
) -> Result<BTreeMap<MessageId, MessageId>, EngineError> {
    let mut edited = BTreeMap::new();
    for entry in entries {
        if entry.action == SaveAction::Changed {
            let id = derived_message_id(key, entry.index);
            let old = std::mem::replace(&mut entry.id, id.clone());
            edited.insert(old, id);
        }
    }
    Ok(edited)
}

fn earliest_edit(entries: &[StagedNode]) -> Option<EditFork> {
    let edited = entries
        .iter()
        .filter(|entry| entry.action == SaveAction::Changed);
    let first = edited.filter_map(|entry| entry.stored.first());
    let first = first.min_by_key(|node| node.depth)?;
    Some(EditFork {
        base: first.parent,
        depth: first.depth,
    })
}
