//! Refs: branches and checkpoints, the names that point into the tree.

use std::fmt;

use contexture_ir::{BranchName, CheckpointName, NodeId, ProcessId};

/// A named pointer that moves with each append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Name of the branch, unique within the conversation.
    pub name: BranchName,
    /// Node that the branch points to; `None` if it is empty.
    pub head: Option<NodeId>,
    /// Number of nodes on its path.
    pub nodes: u64,
    /// Number of messages on its path.
    pub messages: u64,
    /// Number of turns on its path.
    pub turns: u64,
    /// Whether this is the active branch.
    pub active: bool,
    /// Fence of the newest claim; 0 if it was never claimed.
    pub fence: Fence,
    /// Process that holds the newest claim; `None` if it was released, made by nobody in particular, or never made.
    pub holder: Option<BranchHolder>,
    /// Depth of the newest compaction on its path; 0 without one.
    pub compacted: u64,
    /// Creation time in milliseconds since the Unix epoch, as given by the creator.
    pub created_ms: i64,
}

/// A named pointer that stays until it is set again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Name of the checkpoint, unique within the conversation.
    pub name: CheckpointName,
    /// Node that the checkpoint points to.
    pub node: NodeId,
    /// Time at which it was last set, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// All branches and checkpoints of a conversation at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    /// Branches, in order of creation.
    pub branches: Vec<Branch>,
    /// Checkpoints, in order of name.
    pub checkpoints: Vec<Checkpoint>,
}

impl Refs {
    /// Returns the branch of that name, if there is one.
    #[must_use]
    pub fn find_branch(&self, name: &BranchName) -> Option<&Branch> {
        self.branches.iter().find(|branch| branch.name == *name)
    }

    /// Returns the active branch, which every stored conversation has.
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

/// Whom a claim on a branch may supersede.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimOver {
    /// Whoever claimed the branch before.
    Anybody,
    /// Nobody: [`Error::BranchHeld`](crate::Error::BranchHeld) if a process holds the branch.
    Nobody,
    /// The claim with this fence; [`Error::StaleFence`](crate::Error::StaleFence) if another one is newer.
    Fence(Fence),
}

/// Process that holds a branch's newest claim. Whether it still lives, [`Processes`](crate::Processes) tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchHolder {
    /// Id of the process.
    pub process: ProcessId,
    /// Time of the claim in milliseconds since the Unix epoch, as given by the claimer.
    pub since_ms: i64,
}

/// A branch to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBranch {
    /// Node that the branch starts at; `None` for an empty branch.
    pub base: Option<NodeId>,
    /// Name of the branch, or the rule for it.
    pub label: BranchLabel,
    /// Whether it becomes the active branch.
    pub activate: Activation,
}

/// Name of a new branch, or the rule for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BranchLabel {
    /// This name; [`Error::AlreadyExists`](crate::Error::AlreadyExists) if it is taken.
    Named(BranchName),
    /// A free name derived from that of the branch it starts from; see
    /// [`rules::automatic_name`](crate::rules::automatic_name).
    After(BranchName),
}

/// Whether a new branch becomes the active one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// The active branch stays as it is.
    #[default]
    Keep,
    /// The new branch becomes the active one.
    Activate,
}

/// A change of a branch or checkpoint; see [`Store::change_ref`](crate::Store::change_ref).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefChange {
    /// Make a branch.
    CreateBranch(NewBranch),
    /// Make a branch the active one.
    Activate(BranchName),
    /// Give a branch another name; everything else about it stays.
    RenameBranch {
        /// Name of the branch now.
        from: BranchName,
        /// New name of the branch; [`Error::AlreadyExists`](crate::Error::AlreadyExists) if it is taken.
        to: BranchName,
    },
    /// Delete a branch's name; its nodes stay. The active branch cannot be deleted.
    DeleteBranch(BranchName),
    /// Move a branch to another node, if its head still is the expected one.
    ///
    /// For taking back what was appended to it last; whoever appended behind that meanwhile keeps the
    /// branch. The nodes that it leaves stay. What is appended next continues from the new head.
    Move {
        /// Name of the branch.
        branch: BranchName,
        /// Head of the branch as the caller knows it; [`Error::HeadMoved`](crate::Error::HeadMoved) if
        /// it is another.
        expect: Option<NodeId>,
        /// New head of the branch; `None` for an empty branch.
        to: Option<NodeId>,
    },
    /// Become the branch's writer: earlier fences are refused from now on.
    ///
    /// A claim without a holder releases the branch: the earlier writer may not write any more, and nobody holds it.
    Claim {
        /// Name of the branch.
        branch: BranchName,
        /// Whom the claim may supersede.
        over: ClaimOver,
        /// Process that holds the claim, for others that ask who writes.
        holder: Option<ProcessId>,
    },
    /// Make a checkpoint; [`Error::AlreadyExists`](crate::Error::AlreadyExists) if one of that name points to another node.
    CreateCheckpoint {
        /// Name of the checkpoint.
        name: CheckpointName,
        /// Node that the checkpoint points to.
        node: NodeId,
    },
    /// Make or move a checkpoint.
    SetCheckpoint {
        /// Name of the checkpoint.
        name: CheckpointName,
        /// Node that the checkpoint points to from now on.
        node: NodeId,
    },
    /// Delete a checkpoint's name.
    DeleteCheckpoint(CheckpointName),
}

/// Result of a change of a branch or checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefChanged {
    /// The branch after the change, with its new fence if it was claimed.
    Branch(Branch),
    /// The checkpoint after the change.
    Checkpoint {
        /// The checkpoint as it is now.
        checkpoint: Checkpoint,
        /// Node that the name pointed to before, if there was such a checkpoint.
        replaced: Option<NodeId>,
    },
    /// The branch or checkpoint was deleted.
    Deleted,
}
