//! Claims of branches: one process at a time writes what a run does.
//!
//! The branch's row in the store is the lease. It has no expiry time: it names a process, and it is void once that process is
//! dead (`presence`). Inside one process a list of live claims says whether a branch is worked on, so a claim that was dropped
//! can be taken again at once; for other processes it is released with the next beat, because `Drop` cannot wait.
//!
//! Appends of a handle that carries a claim name its fence: once another process has claimed the branch they are refused, and
//! nothing of them is stored. Appends of other handles, such as a person's message, pass.
//!
//! Not here: what is claimed, and what a refused append means to its writer (`contexture-runs`).

use std::time::Duration;

use contexture_ir::{BranchName, ProcessId};
use contexture_store::{
    Branch, BranchHolder, ClaimOver, EntityKind, Error as StoreError, Fence, RefChange, RefChanged,
};

use crate::claim_fence::HandleFence;
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::presence::{LeftClaim, ProcessState, Seat};
use crate::refs::list_refs;

/// Attempts to claim a branch: each that fails means that another process was faster.
const ATTEMPTS: usize = 3;

/// This process's claim of a branch. It is released when it is dropped; [`BranchClaim::release`] does so at once.
#[derive(Debug)]
pub struct BranchClaim {
    chat: Conversation,
    fence: Fence,
    /// `None` once it is released.
    seat: Option<Seat>,
}

impl BranchClaim {
    /// Returns the handle whose appends to the branch are refused once another process has claimed it. It shares its fragments
    /// and its call context with the handle that was claimed by.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.chat
    }

    /// Whether it is held, as far as this process knows.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.seat.is_some()
    }

    /// Whether no other process has claimed the branch since.
    ///
    /// # Errors
    /// The store's.
    pub async fn is_current(&self) -> Result<bool, EngineError> {
        let refs = list_refs(&self.chat).await?;
        let branch = refs.find_branch(&self.chat.branch());
        Ok(branch.is_some_and(|branch| branch.fence == self.fence))
    }

    /// Releases the branch: others may claim it, and appends of this claim are refused from now on. Does nothing if it was
    /// released or superseded before.
    ///
    /// # Errors
    /// The store's; the claim is then released with the next beat.
    pub async fn release(&mut self) -> Result<(), EngineError> {
        let Some(seat) = self.seat.take() else {
            return Ok(());
        };
        let chat = &self.chat;
        let change = RefChange::Claim {
            branch: chat.branch(),
            over: ClaimOver::Fence(self.fence),
            holder: None,
        };
        let now = chat.engine().now_ms();
        let released = chat
            .store()
            .change_ref(chat.owner(), chat.id(), change, now);
        match released.await {
            // Superseded, or gone with its branch: it is not ours to release.
            Ok(_) | Err(StoreError::StaleFence { .. } | StoreError::NotFound { .. }) => Ok(()),
            Err(error) => {
                self.leave(&seat);
                Err(error.into())
            }
        }
    }

    fn leave(&self, seat: &Seat) {
        seat.presence().leave_claim(LeftClaim {
            owner: self.chat.owner().clone(),
            conversation: self.chat.id().clone(),
            branch: self.chat.branch(),
            fence: self.fence,
            at_ms: self.chat.engine().now_ms(),
        });
    }
}

impl Drop for BranchClaim {
    fn drop(&mut self) {
        if let Some(seat) = self.seat.take() {
            self.leave(&seat);
        }
    }
}

/// What a claim does where another process holds the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takeover {
    /// It takes the branch from a process that is dead.
    Dead,
    /// It takes the branch from any process.
    Any,
}

/// Claims the branch of a handle for this process.
pub(crate) async fn claim_branch(
    chat: &Conversation,
    takeover: Takeover,
) -> Result<BranchClaim, EngineError> {
    let engine = chat.engine();
    let presence = &engine.presence;
    let branch = chat.branch();
    let process = engine.register_process().await?;
    let now = engine.now_ms();
    let key = (chat.owner().clone(), chat.id().clone(), branch.clone());
    let seat = presence.take_seat(key, now);
    let seat = seat.map_err(|since_ms| EngineError::BranchBusy {
        branch: branch.clone(),
        by: process,
        since_ms,
        dead_in: None,
    })?;
    let claimed = claim_over(chat, &branch, (process, takeover), now).await?;
    Ok(BranchClaim {
        chat: chat.with_fence(HandleFence {
            branch,
            fence: claimed.fence,
        }),
        fence: claimed.fence,
        seat: Some(seat),
    })
}

/// Claims the branch, over a claim whose process is dead or whose holder in this process is gone.
async fn claim_over(
    chat: &Conversation,
    branch: &BranchName,
    (process, takeover): (ProcessId, Takeover),
    now_ms: i64,
) -> Result<Branch, EngineError> {
    let claim = |over| RefChange::Claim {
        branch: branch.clone(),
        over,
        holder: Some(process),
    };
    // The common case first: one write, and no read before it.
    let mut over = ClaimOver::Nobody;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let changed = chat
            .store()
            .change_ref(chat.owner(), chat.id(), claim(over), now_ms);
        let (holder, fence) = match changed.await {
            Ok(RefChanged::Branch(branch)) => return Ok(branch),
            Ok(_) => return Err(StoreError::not_found(EntityKind::Branch, branch).into()),
            Err(StoreError::BranchHeld { holder, fence, .. }) => (holder, fence),
            // Another one was faster, or it is not known whether this claim was stored: the branch says who holds it now.
            Err(error @ (StoreError::StaleFence { .. } | StoreError::OutcomeUnknown { .. })) => {
                if attempts >= ATTEMPTS {
                    return Err(error.into());
                }
                over = ClaimOver::Nobody;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if takeover == Takeover::Dead
            && let Some(busy) = held_alive(chat, branch, holder, process).await?
        {
            return Err(busy);
        }
        over = ClaimOver::Fence(fence);
    }
}

/// Returns the error for a claim of a process that may live.
async fn held_alive(
    chat: &Conversation,
    branch: &BranchName,
    holder: BranchHolder,
    process: ProcessId,
) -> Result<Option<EngineError>, EngineError> {
    // No live claim of this process has the branch, which the seat shows: the one that is stored was dropped.
    if holder.process == process {
        return Ok(None);
    }
    let alive_for: Option<Duration> = match chat.engine().process_state(holder.process).await? {
        ProcessState::Alive { dead_in } => Some(dead_in),
        ProcessState::Dead => None,
    };
    Ok(alive_for.map(|dead_in| EngineError::BranchBusy {
        branch: branch.clone(),
        by: holder.process,
        since_ms: holder.since_ms,
        dead_in: Some(dead_in),
    }))
}
