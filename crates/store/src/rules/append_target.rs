//! Decides where an append goes: after a head, on a new branch, or on a sibling of a head that moved.

use contexture_ir::{BranchName, NodeId};

use crate::contract::{
    Activation, AppendPoint, AppendRequest, BranchHolder, BranchLabel, ClaimOver, EntityKind,
    Error, Fence, NewBranch, OnMoved,
};

/// Facts about the branch that an append names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchFacts {
    /// Current head of the branch; `None` if it is empty.
    pub head: Option<NodeId>,
    /// Fence of the newest claim; 0 if it was never claimed.
    pub fence: Fence,
}

/// Branch and position that an append's items go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendTarget {
    /// After the head of the named branch.
    Extend,
    /// On this new branch.
    Open(NewBranch),
    /// On this new branch, because the head had moved.
    Sibling(NewBranch),
}

/// Decides where an append that is no replay goes.
///
/// `branch` describes the branch that the append names; `None` if there is no such branch. It is
/// not used for [`AppendPoint::New`].
pub fn append_target(
    request: &AppendRequest,
    branch: Option<BranchFacts>,
) -> Result<AppendTarget, Error> {
    let (name, expected) = match &request.at {
        // A new branch may start at any node, so no branch is looked up.
        AppendPoint::New(new) => return Ok(AppendTarget::Open(new.clone())),
        AppendPoint::Tip { branch } => (branch, None),
        AppendPoint::Head { branch, head } => (branch, Some(*head)),
    };
    let facts = branch.ok_or_else(|| Error::not_found(EntityKind::Branch, name))?;
    // The fence is checked before the head: a superseded writer must learn that, not retry with a
    // new head.
    if let Some(held) = request.fence {
        check_fence(name, held, facts.fence)?;
    }
    match (expected, request.on_moved) {
        (Some(head), OnMoved::Refuse) => {
            check_head(name, head, facts.head).map(|()| AppendTarget::Extend)
        }
        (Some(head), OnMoved::Sibling) if head != facts.head => {
            Ok(AppendTarget::Sibling(NewBranch {
                // The sibling starts at the head that the caller expected, so its items follow what
                // the caller read.
                base: head,
                label: BranchLabel::After(name.clone()),
                // The writer that lost the race must not take over the conversation.
                activate: Activation::Keep,
            }))
        }
        _ => Ok(AppendTarget::Extend),
    }
}

/// Checks that a claim may supersede the branch's newest one.
///
/// # Errors
///
/// [`Error::StaleFence`] or [`Error::BranchHeld`] if it may not.
pub fn check_claim_over(
    branch: &BranchName,
    over: ClaimOver,
    fence: Fence,
    holder: Option<BranchHolder>,
) -> Result<(), Error> {
    match (over, holder) {
        (ClaimOver::Fence(held), _) => check_fence(branch, held, fence),
        (ClaimOver::Nobody, Some(holder)) => Err(Error::BranchHeld {
            branch: branch.clone(),
            holder,
            fence,
        }),
        (ClaimOver::Nobody, None) | (ClaimOver::Anybody, _) => Ok(()),
    }
}

fn check_fence(branch: &BranchName, held: Fence, current: Fence) -> Result<(), Error> {
    match held == current {
        true => Ok(()),
        false => Err(Error::StaleFence {
            branch: branch.clone(),
            held,
            current,
        }),
    }
}

/// Checks that a branch's head is the expected one.
///
/// # Errors
///
/// [`Error::HeadMoved`] if it is not.
pub fn check_head(
    branch: &BranchName,
    expected: Option<NodeId>,
    actual: Option<NodeId>,
) -> Result<(), Error> {
    match expected == actual {
        true => Ok(()),
        false => Err(Error::HeadMoved {
            branch: branch.clone(),
            expected,
            actual,
        }),
    }
}
