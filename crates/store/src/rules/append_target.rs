//! Decides where an append goes: after a head, on a new branch, or on a sibling of a head that moved.

use contexture_ir::NodeId;

use crate::contract::{
    Activation, AppendPoint, AppendRequest, BranchLabel, EntityKind, Error, Fence, NewBranch,
    OnMoved,
};

/// What must be known of the branch an append names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchFacts {
    /// Its head.
    pub head: Option<NodeId>,
    /// Its newest claim.
    pub fence: Fence,
}

/// Where an append lands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendTarget {
    /// After the branch's head.
    Extend,
    /// On this new branch.
    Open(NewBranch),
    /// On this new branch, because the head had moved.
    Sibling(NewBranch),
}

/// Decides where an append that is no repetition lands. `branch`: the branch it names, if there is
/// one; not asked for by [`AppendPoint::New`].
pub fn append_target(
    request: &AppendRequest,
    branch: Option<BranchFacts>,
) -> Result<AppendTarget, Error> {
    let (name, expected) = match &request.at {
        // The base of a new branch is any node, so nothing has to be known of a branch.
        AppendPoint::New(new) => return Ok(AppendTarget::Open(new.clone())),
        AppendPoint::Tip { branch } => (branch, None),
        AppendPoint::Head { branch, head } => (branch, Some(*head)),
    };
    let facts = branch.ok_or_else(|| Error::not_found(EntityKind::Branch, name))?;
    // The claim is checked before the head: a superseded writer must learn that it was superseded,
    // not that it should try again with a new head.
    if let Some(held) = request.fence
        && held != facts.fence
    {
        return Err(Error::StaleFence {
            branch: name.clone(),
            held,
            current: facts.fence,
        });
    }
    match (expected, request.on_moved) {
        (Some(head), OnMoved::Refuse) if head != facts.head => Err(Error::HeadMoved {
            branch: name.clone(),
            expected: head,
            actual: facts.head,
        }),
        (Some(head), OnMoved::Sibling) if head != facts.head => {
            Ok(AppendTarget::Sibling(NewBranch {
                // The sibling starts where the caller believed the head to be, so its items follow
                // what it had read.
                base: head,
                label: BranchLabel::After(name.clone()),
                // Whoever moved the head stays active: the latecomer must not take over the
                // conversation by losing a race.
                activate: Activation::Keep,
            }))
        }
        _ => Ok(AppendTarget::Extend),
    }
}
