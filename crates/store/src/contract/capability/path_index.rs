//! The path index: finds the nodes of an owner whose path has a given hash.
//!
//! A derived index from hashes of paths to nodes. Marks are stored with the append that stores their
//! nodes, or later; they are deleted with their conversation.
//!
//! Not here: what is hashed, and which of several matches is the right one.

use async_trait::async_trait;
use contexture_ir::{BranchName, ConversationId, NodeId, Owner, PathHash};

use crate::contract::Error;

/// Entry of the path index: the hash of a path and the node it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathMark {
    /// Version of the rule that made the hash. A query finds only hashes of its own version.
    pub version: u32,
    /// Hash of the path. Several nodes may have it, and a node may have several.
    pub hash: PathHash,
    /// Node at the end of the path, in the same conversation.
    pub node: NodeId,
}

/// Hashes to look up in the path index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathQuery {
    /// Version of the rule that made the hashes.
    pub version: u32,
    /// Hashes to look up, best first.
    pub hashes: Vec<PathHash>,
    /// Only matches in this conversation; `None` for all of the owner's conversations.
    pub conversation: Option<ConversationId>,
    /// Largest number of matches of each hash.
    pub each: usize,
}

/// A node whose path has one of the hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMatch {
    /// Hash that matched, one of the query's.
    pub hash: PathHash,
    /// Conversation that the node is in.
    pub conversation: ConversationId,
    /// Id of the node.
    pub node: NodeId,
    /// Depth of the node, which is the length of its path.
    pub depth: u64,
    /// Branches whose head is the node, in order of creation.
    pub heads: Vec<BranchName>,
}

/// Path index of a store that has one.
#[async_trait]
pub trait PathIndex: Send + Sync {
    /// Finds the nodes of some hashes, read at one instant.
    ///
    /// Matches come in the order of the hashes. Those of one hash are ordered by: heads of branches
    /// first; most recently updated conversation first; conversation id; depth. No match is no error,
    /// and neither is an unknown conversation.
    ///
    /// # Errors
    /// [`Error::Limit`] `path_hashes` for too many hashes.
    async fn find_path_hashes(
        &self,
        owner: &Owner,
        query: PathQuery,
    ) -> Result<Vec<PathMatch>, Error>;

    /// Adds marks to a conversation and removes those of other versions than `version`.
    ///
    /// Stored marks of `version` stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown node, [`Error::Limit`] `path_hashes` for too many marks;
    /// nothing is changed then.
    async fn put_paths(
        &self,
        owner: &Owner,
        id: &ConversationId,
        version: u32,
        marks: Vec<PathMark>,
    ) -> Result<(), Error>;
}
