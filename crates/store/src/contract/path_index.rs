//! The path index: finds the nodes of an owner whose path has a given hash.
//!
//! A derived index from hashes of histories to nodes. Marks are stored with the append that stores their
//! nodes, or later; they go with their conversation. Not here: what is hashed, which of several places
//! is meant.

use async_trait::async_trait;
use contexture_ir::{BranchName, ConversationId, NodeId, Owner, PathHash};

use crate::contract::Error;

/// A hash and the node it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathMark {
    /// Of the rule by which the hash was made. Others' hashes are never found.
    pub version: u32,
    /// The hash. Several nodes may have it, and a node may have several.
    pub hash: PathHash,
    /// The node, of the same conversation.
    pub node: NodeId,
}

/// Which places to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathQuery {
    /// The version of the hashes.
    pub version: u32,
    /// The hashes, best first.
    pub hashes: Vec<PathHash>,
    /// In this conversation; `None`: in all of the owner.
    pub conversation: Option<ConversationId>,
    /// At most so many places of each hash.
    pub each: usize,
}

/// A place that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMatch {
    /// Its hash.
    pub hash: PathHash,
    /// The conversation.
    pub conversation: ConversationId,
    /// The node.
    pub node: NodeId,
    /// Its depth.
    pub depth: u64,
    /// The branches whose head it is, in order of creation.
    pub heads: Vec<BranchName>,
}

/// The index of a store that has one.
#[async_trait]
pub trait PathIndex: Send + Sync {
    /// The places of some hashes, at one instant, in the order of the hashes; places of one hash: heads
    /// of branches first, then by the conversation's last update, the newest first, then by the
    /// conversation's id and by depth. Nothing found is no error, an unknown conversation neither.
    ///
    /// # Errors
    /// [`Error::Limit`] `path_hashes` for too many of them.
    async fn find_path_hashes(
        &self,
        owner: &Owner,
        query: PathQuery,
    ) -> Result<Vec<PathMatch>, Error>;

    /// Adds marks to a conversation; those that are there stay. Those of other versions than `version`
    /// are removed.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a node that is not there, [`Error::Limit`] `path_hashes`; nothing is
    /// changed then.
    async fn put_paths(
        &self,
        owner: &Owner,
        id: &ConversationId,
        version: u32,
        marks: Vec<PathMark>,
    ) -> Result<(), Error>;
}
