//! Keys of copies.
//!
//! Owner and conversation are represented by digests: of fixed length, valid in every file system and object store,
//! distinct even if names differ only by case, dots or slashes, and revealing nothing about the names.

use std::fmt;

use contexture_ir::{ContentHash, ConversationId, NodeId, Owner};

/// Key of a copy: its owner, its conversation, and the hash of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CopyKey {
    owner: NodeId,
    conversation: NodeId,
    content: ContentHash,
}

/// Which copies an operation covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyScope {
    /// All copies of one owner; created by [`CopyScope::owner`].
    All,
    /// One owner's; made by [`CopyScope::owner`].
    Owner(NodeId),
    /// All copies of one conversation; created by [`CopyScope::conversation`].
    Conversation(NodeId, NodeId),
}

fn owner_digest(owner: &Owner) -> NodeId {
    NodeId::derive("contexture offload owner", &[owner.as_str().as_bytes()])
}

fn conversation_digest(conversation: &ConversationId) -> NodeId {
    let parts = [conversation.as_str().as_bytes()];
    NodeId::derive("contexture offload conversation", &parts)
}

impl CopyKey {
    /// Creates the key of the copy of the output whose stored bytes have the hash `content`.
    #[must_use]
    pub fn new(owner: &Owner, conversation: &ConversationId, content: ContentHash) -> Self {
        Self {
            owner: owner_digest(owner),
            conversation: conversation_digest(conversation),
            content,
        }
    }

    pub(crate) const fn from_digests(
        owner: NodeId,
        conversation: NodeId,
        content: ContentHash,
    ) -> Self {
        Self {
            owner,
            conversation,
            content,
        }
    }

    /// Returns the hash of the output's stored bytes, which is also in its link.
    #[must_use]
    pub const fn content_hash(&self) -> ContentHash {
        self.content
    }

    /// Returns the digests of owner and conversation.
    pub(crate) const fn folder_digests(&self) -> [NodeId; 2] {
        [self.owner, self.conversation]
    }
}

impl fmt::Display for CopyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.owner, self.conversation, self.content)
    }
}

impl CopyScope {
    /// Returns the scope of all copies of an owner.
    #[must_use]
    pub fn owner(owner: &Owner) -> Self {
        Self::Owner(owner_digest(owner))
    }

    /// Returns the scope of all copies of a conversation.
    #[must_use]
    pub fn conversation(owner: &Owner, conversation: &ConversationId) -> Self {
        Self::Conversation(owner_digest(owner), conversation_digest(conversation))
    }

    /// Whether a copy is in this scope.
    #[must_use]
    pub fn contains(&self, key: &CopyKey) -> bool {
        match self {
            Self::All => true,
            Self::Owner(owner) => key.owner == *owner,
            Self::Conversation(owner, conversation) => {
                (key.owner, key.conversation) == (*owner, *conversation)
            }
        }
    }
}
