//! Removal: redaction takes the content of single nodes, erasure takes everything of an owner or a resource.
//!
//! [`Store::redact_content`](crate::Store::redact_content) replaces the bytes of exactly the nodes it
//! is given by their tombstones ([`contexture_ir::tombstone_json`]) and removes state values and
//! blobs. [`Store::erase_step`](crate::Store::erase_step) answers a privacy request in bounded steps;
//! what such a request can ask to see first is
//! [`Store::list_conversations`](crate::Store::list_conversations) and
//! [`KeyValues::list_entries`](crate::KeyValues::list_entries) with the same resource.
//!
//! Not here: finding what belongs together
//! ([`compute_redaction_closure`](crate::compute_redaction_closure)) and the loop
//! ([`erase_all`](crate::erase_all)).

use contexture_ir::{ContentHash, NodeId};

use crate::contract::BlobId;

/// What is to be redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactRequest {
    /// Nodes: each must exist.
    pub nodes: Vec<NodeId>,
    /// State values by hash, whichever entries have them. Unknown ones are passed over.
    pub values: Vec<ContentHash>,
    /// Blobs. Unknown ones are passed over.
    pub blobs: Vec<BlobId>,
    /// Milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// What a redaction removed; what was redacted before is not counted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// Nodes that are tombstones now and were not before.
    pub nodes: u64,
    /// State values.
    pub values: u64,
    /// Blobs.
    pub blobs: u64,
}

/// Whose data is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EraseScope {
    /// Everything of the owner.
    Owner,
    /// The conversations of this resource of the owner, and the values in the resource's scope.
    Resource(String),
}

/// What one step of erasing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Conversations that are gone for readers since this step.
    pub conversations: u64,
    /// Values outside the trees that were removed by this step.
    pub entries: u64,
    /// Whether there is more to do.
    pub more: bool,
}
