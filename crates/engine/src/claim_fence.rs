//! The fence of a claimed branch, as handles carry it.
//!
//! Not here: claiming (`claim`).

use contexture_ir::BranchName;
use contexture_store::{AppendPoint, AppendRequest, Fence};

/// The fence that a handle's appends to one branch name.
#[derive(Clone, Debug)]
pub(crate) struct HandleFence {
    pub(crate) branch: BranchName,
    pub(crate) fence: Fence,
}

impl HandleFence {
    /// Adds the fence to an append to its branch. A branch that is about to be made has no writer yet.
    pub(crate) fn apply(&self, request: &mut AppendRequest) {
        let branch = match &request.at {
            AppendPoint::Tip { branch } | AppendPoint::Head { branch, .. } => branch,
            AppendPoint::New(_) => return,
        };
        if *branch == self.branch && request.fence.is_none() {
            request.fence = Some(self.fence);
        }
    }
}
