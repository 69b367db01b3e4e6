//! Requests that got no answer: what they stored is taken back, so that no branch ends with words nobody answered.
//!
//! The nodes stay, on no branch. The same request again has the same nodes, and its branch is put behind them again.

use contexture_ir::{BranchName, NodeId};
use contexture_store::{
    AppendPoint, Appended, EntityKind, Error as StoreError, NewBranch, RefChange, RefChanged,
};

use super::types::{Ingested, MatchKind};
use crate::error::EngineError;
use crate::handle::{Conversation, delete_conversation};
use crate::refs::change_ref;

/// What became of the branch of a request that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Withdrawal {
    /// The request had begun the conversation, which is deleted.
    ConversationDeleted,
    /// The branch ends where it ended before the request; one that the request opened is deleted.
    BranchRestored,
    /// The branch stays: the request added nothing to it, or somebody else went on from there.
    Kept,
}

impl Ingested {
    /// Takes back a request that no model answered: its branch ends where it ended before, and the branch that was active
    /// before is active. A conversation that began with it, and that no client named, is deleted.
    ///
    /// Only for a request of which no answer was recorded. What others appended behind it stays, and the branch with it.
    ///
    /// # Errors
    /// The store's; the branch may then end with the request, which is recognised when it is repeated.
    pub async fn withdraw(&self) -> Result<Withdrawal, EngineError> {
        let chat = &self.chat;
        let mark = self.trail.mark.as_ref();
        if self.matched == MatchKind::New {
            delete_conversation(chat.engine(), chat.owner(), chat.id()).await?;
            // It went with the conversation.
            mark.inspect(|mark| mark.set_ended());
            return Ok(Withdrawal::ConversationDeleted);
        }
        let withdrawal = self.take_back().await?;
        if let Some(mark) = mark {
            mark.remove().await?;
        }
        Ok(withdrawal)
    }

    async fn take_back(&self) -> Result<Withdrawal, EngineError> {
        let chat = &self.chat;
        if self.appended.is_empty() && self.opened_branch.is_none() {
            return Ok(Withdrawal::Kept);
        }
        // Also for a branch that is deleted next: it tells whether somebody else has gone on from there.
        let back = RefChange::Move {
            branch: chat.branch(),
            expect: self.head,
            to: self.trail.base,
        };
        match change_ref(chat, back).await {
            Ok(_) => {}
            Err(EngineError::Store(error)) if is_in_use(&error) => return Ok(Withdrawal::Kept),
            Err(error) => return Err(error),
        }
        if let Some(opened) = &self.opened_branch {
            self.delete_opened_branch(opened).await?;
        }
        Ok(Withdrawal::BranchRestored)
    }

    async fn delete_opened_branch(&self, opened: &BranchName) -> Result<(), EngineError> {
        let chat = &self.chat;
        let record = chat.store().load_conversation(chat.owner(), chat.id());
        // Somebody may have chosen another branch meanwhile, which counts.
        if record.await?.active == *opened {
            change_ref(chat, RefChange::Activate(self.trail.active.clone())).await?;
        }
        change_ref(chat, RefChange::DeleteBranch(opened.clone())).await?;
        Ok(())
    }
}

/// Whether a branch is no longer as the request left it.
const fn is_in_use(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::HeadMoved { .. }
            | StoreError::NotFound {
                what: EntityKind::Branch,
                ..
            }
    )
}

/// Puts the branch behind nodes that were stored before, if a withdrawal has left them on none, or if they are on another.
/// Returns the branch that they are on.
///
/// # Errors
/// The store's; a branch that somebody moved meanwhile is [`StoreError::HeadMoved`].
pub(super) async fn restore_branch(
    chat: &Conversation,
    at: AppendPoint,
    appended: &Appended,
) -> Result<Option<BranchName>, EngineError> {
    let is_on = |branch: &BranchName| appended.branch.as_ref() == Some(branch);
    let to: Option<NodeId> = appended.head;
    let change = match at {
        _ if !appended.replayed => return Ok(appended.branch.clone()),
        AppendPoint::Head { branch, head } if !is_on(&branch) => RefChange::Move {
            branch,
            expect: head,
            to,
        },
        AppendPoint::New(new) if appended.branch.is_none() => {
            RefChange::CreateBranch(NewBranch { base: to, ..new })
        }
        // The same request at the same time has stored them.
        _ => return Ok(appended.branch.clone()),
    };
    match change_ref(chat, change).await? {
        RefChanged::Branch(branch) => Ok(Some(branch.name)),
        _ => Ok(appended.branch.clone()),
    }
}
