//! Storing a draft in one append.

use std::collections::BTreeMap;

use contexture_ir::{BranchName, Item, MessageId, NodeId};
use contexture_store::{
    Activation, AppendPoint, Appended, BranchLabel, Error as StoreError, NewBranch, NewItem,
};

use super::ExpectedHead;
use super::classify::SaveAction;
use super::new_items::build_new_items;
use super::plan::{DraftPlan, plan_draft};
use super::stage::StagedEntry;
use crate::error::EngineError;
use crate::handle::{Conversation, fragment_change};
use crate::hooks::{append_items, open_session_for_append};

/// Result of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The head of the branch now; `None` only if it is empty and nothing was stored.
    pub head: Option<NodeId>,
    /// The branch the messages are on.
    pub branch: BranchName,
    /// Whether that branch was opened by this commit, because a stored message was edited.
    pub opened_branch: bool,
    /// The ids of the messages in the order they were staged, new ids for edited ones; each id once.
    pub messages: Vec<MessageId>,
    /// The ids of messages that were edited, each with the id that the edited message has.
    pub edited: BTreeMap<MessageId, MessageId>,
    /// The nodes stored, in order.
    pub nodes: Vec<NodeId>,
}

/// Stores what is staged behind the head of `branch`, or on a branch of its own if it edits a message.
pub(crate) async fn store_staged(
    chat: &Conversation,
    key: &[u8; 16],
    branch: &BranchName,
    staged: Vec<StagedEntry>,
    expected: ExpectedHead,
) -> Result<Committed, EngineError> {
    let mut plan = plan_draft(chat, key, branch, staged).await?;
    if let (Some(_), ExpectedHead::Only(expected)) = (plan.fork, expected)
        && expected != plan.head
    {
        // An edit leaves the branch alone, so no append would notice.
        return Err(head_moved_error(branch.clone(), expected, plan.head));
    }
    let limit = chat.store().limits().append_items;
    let items = plan.item_count();
    if items > limit {
        return Err(EngineError::DraftTooLong { items, limit });
    }
    let at = append_position(&plan, expected);
    let mut session = match chat.layers().is_empty() {
        true => None,
        false => Some(open_session_for_append(chat, &at).await?),
    };
    if let Some(session) = &mut session {
        for entry in plan
            .entries
            .iter_mut()
            // Layers see new messages only. A grown or edited one was shown to them when it was first stored.
            .filter(|entry| entry.action == SaveAction::New)
        {
            let said = std::mem::take(&mut entry.items);
            entry.items = session.on_append(said).await?;
        }
    }
    let pending = build_new_items(chat, key, &plan).await?;
    let mut committed = Committed {
        head: plan.head,
        branch: branch.clone(),
        opened_branch: false,
        messages: plan.message_ids(&pending),
        edited: plan.edited.clone(),
        nodes: Vec::new(),
    };
    // Everything was stored already: saving a whole history again must not append anything.
    if pending.is_empty() {
        return Ok(committed);
    }
    let fragments = fragment_change(chat, branch, plan.parent()).await?;
    let changes = fragments.iter().map(|one| one.change.clone()).collect();
    // The store takes JSON and layers take items; both are of the same, redacted content.
    let (items, said): (Vec<NewItem>, Vec<Item>) = pending
        .into_iter()
        .map(|node| (node.new, node.item))
        .unzip();
    let appended = append_items(chat, at, items, &said, changes, session.as_mut());
    committed.apply_append(appended.await?, plan.fork.is_some());
    if let Some(fragments) = fragments {
        fragments.mark_stored(chat);
    }
    // A handle that was moved elsewhere meanwhile stays there.
    if committed.opened_branch && chat.branch() == *branch {
        chat.set_branch(committed.branch.clone());
    }
    Ok(committed)
}

impl Committed {
    fn apply_append(&mut self, appended: Appended, opened: bool) {
        self.head = appended.head;
        self.nodes = appended.nodes;
        self.opened_branch = opened;
        if let Some(branch) = appended.branch {
            self.branch = branch;
        }
    }
}

/// Where the items go.
fn append_position(plan: &DraftPlan, expected: ExpectedHead) -> AppendPoint {
    let branch = plan.branch.clone();
    match (plan.fork, expected) {
        // Before the first node of the edited message, so that the original stays whole on its branch.
        (Some(fork), _) => AppendPoint::New(NewBranch {
            base: fork.base,
            label: BranchLabel::After(branch),
            activate: Activation::Activate,
        }),
        (None, ExpectedHead::Only(head)) => AppendPoint::Head { branch, head },
        (None, ExpectedHead::Tip) => AppendPoint::Tip { branch },
    }
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
