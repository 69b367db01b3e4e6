//! Refs: branches and checkpoints, the names that point into the tree.

use std::fmt;

use contexture_ir::{BranchName, CheckpointName, NodeId};

/// A named pointer that moves with each append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Its name, unique within the conversation.
    pub name: BranchName,
    /// The node it points to; `None`: it is empty.
    pub head: Option<NodeId>,
    /// Nodes on its path.
    pub nodes: u64,
    /// Messages on its path.
    pub messages: u64,
    /// Turns on its path.
    pub turns: u64,
    /// Whether it is the active branch.
    pub active: bool,
    /// The newest claim; 0 if it was never claimed.
    pub fence: Fence,
    /// Depth of the newest compaction on its path; 0 without one.
    pub compacted: u64,
    /// Milliseconds since the Unix epoch, as the creator said.
    pub created_ms: i64,
}

/// A named pointer that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its name, unique within the conversation.
    pub name: CheckpointName,
    /// The node it points to.
    pub node: NodeId,
    /// When it was last set.
    pub at_ms: i64,
}

/// All names of a conversation at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    /// In order of creation.
    pub branches: Vec<Branch>,
    /// In order of name.
    pub checkpoints: Vec<Checkpoint>,
}

impl Refs {
    /// The branch of that name.
    #[must_use]
    pub fn find_branch(&self, name: &BranchName) -> Option<&Branch> {
        self.branches.iter().find(|branch| branch.name == *name)
    }

    /// The active branch.
    #[must_use]
    pub fn active_branch(&self) -> Option<&Branch> {
        self.branches.iter().find(|branch| branch.active)
    }
}

/// A writer's claim on a branch: larger is newer. See [`RefChange::Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A branch to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBranch {
    /// The node it starts at; `None`: an empty branch.
    pub base: Option<NodeId>,
    /// What it is called.
    pub label: BranchLabel,
    /// Whether it becomes the active branch.
    pub activate: Activation,
}

/// What a new branch is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchLabel {
    /// This; [`Error::AlreadyExists`](crate::Error::AlreadyExists) if it is taken.
    Named(BranchName),
    /// A free name made from that of the branch it leaves; see
    /// [`rules::automatic_name`](crate::rules::automatic_name).
    After(BranchName),
}

/// Whether a new branch becomes the active one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// The active branch stays.
    #[default]
    Keep,
    /// It becomes active.
    Activate,
}

/// A change of names; see [`Store::change_ref`](crate::Store::change_ref).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefChange {
    /// Make a branch.
    CreateBranch(NewBranch),
    /// Make a branch the active one.
    Activate(BranchName),
    /// Give a branch another name; everything else about it stays.
    RenameBranch {
        /// Its name.
        from: BranchName,
        /// The name it gets; [`Error::AlreadyExists`](crate::Error::AlreadyExists) if it is taken.
        to: BranchName,
    },
    /// Delete a branch's name; its nodes stay. The active branch cannot be deleted.
    DeleteBranch(BranchName),
    /// Become the branch's writer: earlier fences are refused from now on.
    Claim(BranchName),
    /// Make or move a checkpoint.
    SetCheckpoint {
        /// Its name.
        name: CheckpointName,
        /// The node.
        node: NodeId,
    },
    /// Delete a checkpoint's name.
    DeleteCheckpoint(CheckpointName),
}

/// What a change of names left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefChanged {
    /// The branch as it is now; a new fence is in it.
    Branch(Branch),
    /// The checkpoint as it is now.
    Checkpoint(Checkpoint),
    /// The name is gone.
    Deleted,
}
