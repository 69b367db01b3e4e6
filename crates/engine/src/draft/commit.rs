//! Storing a draft in one append.
//!
//! An edited message takes a new id on a branch that is opened before it. Whatever was staged after it follows it there,
//! messages that were stored already as copies.

use contexture_ir::{BranchName, Item, MessageId, NodeId};
use contexture_store::{
    Activation, AppendPoint, Appended, BranchLabel, Error as StoreError, NewBranch,
};

use super::ExpectedHead;
use super::classify::{SaveAction, StagedNode, classify_staged, derived_message_id};
use super::new_items::build_new_items;
use super::stage::StagedItem;
use crate::error::EngineError;
use crate::handle::{Conversation, fragment_change};
use crate::hooks::{append_items, open_session_for_append};
use crate::refs::load_head;

/// Result of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The head of the branch now; `None` only if it is empty and nothing was stored.
    pub head: Option<NodeId>,
    /// The branch the messages are on.
    pub branch: BranchName,
    /// Whether that branch was opened by this commit, because a stored message was edited.
    pub opened_branch: bool,
    /// The ids of the messages in the order they were staged, new ids for edited ones.
    pub messages: Vec<MessageId>,
    /// The nodes stored, in order.
    pub nodes: Vec<NodeId>,
}

pub(crate) async fn store_staged(
    chat: &Conversation,
    key: &[u8; 16],
    staged: Vec<StagedItem>,
    basis: ExpectedHead,
) -> Result<Committed, EngineError> {
    // Read once: every message is compared with the branch as it was at this head.
    let head = load_head(chat).await?;
    let mut entries = Vec::new();
    for (index, staged) in staged.into_iter().enumerate() {
        entries.push(classify_staged(chat, key, index, staged, head).await?);
    }
    let edited = entries
        .iter()
        .position(|entry| entry.action == SaveAction::Changed);
    if let (Some(_), ExpectedHead::Only(expected)) = (edited, basis)
        && expected != head
    {
        // An edit leaves the branch alone, so no append would notice.
        return Err(head_moved_error(chat.branch(), expected, head));
    }
    // Before the items are built, which carry these ids.
    let messages = assign_message_ids(key, &mut entries, edited);
    let at = append_position(chat, &entries, edited, basis);
    let mut session = match chat.layers().is_empty() {
        true => None,
        false => Some(open_session_for_append(chat, &at).await?),
    };
    if let Some(session) = &mut session {
        for entry in entries
            .iter_mut()
            // Layers see new messages only. A grown or edited one was shown to them when it was first stored.
            .filter(|entry| entry.action == SaveAction::New)
        {
            let said = std::mem::take(&mut entry.items);
            entry.items = session.on_append(said).await?;
        }
    }
    let items = build_new_items(chat, key, &entries, edited).await?;
    // Everything was stored already: saving a whole history again must not append anything.
    if items.is_empty() {
        let branch = chat.branch();
        return Ok(Committed {
            head,
            branch,
            opened_branch: false,
            messages,
            nodes: Vec::new(),
        });
    }
    let changes = fragment_change(chat)?.into_iter().collect();
    // The store takes JSON and layers take items; both are of the same, redacted content.
    let (items, said): (_, Vec<Item>) = items.into_iter().unzip();
    let appended = append_items(chat, at, items, &said, changes, session.as_mut());
    let appended = appended.await?;
    finish_commit(chat, appended, messages, edited.is_some())
}

fn finish_commit(
    chat: &Conversation,
    appended: Appended,
    messages: Vec<MessageId>,
    opened: bool,
) -> Result<Committed, EngineError> {
    let branch = appended.branch.unwrap_or_else(|| chat.branch());
    if opened {
        chat.set_branch(branch.clone());
    }
    Ok(Committed {
        head: appended.head,
        branch,
        opened_branch: opened,
        messages,
        nodes: appended.nodes,
    })
}

/// Where the items go.
pub(crate) fn append_position(
    chat: &Conversation,
    entries: &[StagedNode],
    edited: Option<usize>,
    basis: ExpectedHead,
) -> AppendPoint {
    let branch = chat.branch();
    if let Some(entry) = edited.and_then(|index| entries.get(index)) {
        // Before the first node of the edited message, so that the original stays whole on its branch.
        let base = entry.stored.first().and_then(|node| node.parent);
        let (label, activate) = (BranchLabel::After(branch), Activation::Activate);
        return AppendPoint::New(NewBranch {
            base,
            label,
            activate,
        });
    }
    match basis {
        ExpectedHead::Only(head) => AppendPoint::Head { branch, head },
        ExpectedHead::Tip => AppendPoint::Tip { branch },
    }
}

/// Gives edited messages new ids and lists all ids in order.
fn assign_message_ids(
    key: &[u8; 16],
    entries: &mut [StagedNode],
    edited: Option<usize>,
) -> Vec<MessageId> {
    for (index, entry) in entries.iter_mut().enumerate() {
        let moved = edited.is_some_and(|edited| index >= edited);
        // Only edited messages: a copy of an unchanged one keeps its id on the new branch.
        if moved
            && entry.action == SaveAction::Changed
            && let Ok(id) = derived_message_id(key, index)
        {
            entry.id = id;
        }
    }
    entries.iter().map(|entry| entry.id.clone()).collect()
}

fn head_moved_error(
    branch: BranchName,
    expected: Option<NodeId>,
    actual: Option<NodeId>,
) -> EngineError {
    let moved = StoreError::HeadMoved {
        branch,
        expected,
        actual,
    };
    moved.into()
}
