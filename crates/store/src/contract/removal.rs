//! Removal: redaction removes the content of single nodes, erasure all data of an owner or a
//! resource.
//!
//! [`Store::redact_content`](crate::Store::redact_content) replaces the bytes of exactly the nodes it
//! is given by their tombstones ([`contexture_ir::tombstone_json`]) and removes state values and
//! blobs. [`Store::erase_step`](crate::Store::erase_step) erases in bounded steps. To show
//! beforehand what would be erased, call
//! [`Store::list_conversations`](crate::Store::list_conversations) and
//! [`KeyValues::list_entries`](crate::KeyValues::list_entries) with the same resource.
//!
//! Not here: finding copies and summaries of redacted content
//! ([`compute_redaction_closure`](crate::compute_redaction_closure)) and the loop over the steps
//! ([`erase_all`](crate::erase_all)).

use contexture_ir::{ContentHash, NodeId};

use crate::contract::BlobId;

/// Content that is to be redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactRequest {
    /// Nodes to redact, each of which must exist.
    pub nodes: Vec<NodeId>,
    /// Hashes of state values to remove, whichever entries have them; unknown ones are skipped.
    pub values: Vec<ContentHash>,
    /// Blobs to remove; unknown ones are skipped.
    pub blobs: Vec<BlobId>,
    /// Time of the redaction, in milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// Counts of what a redaction removed, without what had been redacted before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// Number of nodes that became tombstones.
    pub nodes: u64,
    /// Number of removed state values.
    pub values: u64,
    /// Number of removed blobs.
    pub blobs: u64,
}

/// Scope of an erasure: whose data is erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EraseScope {
    /// Everything that belongs to the owner.
    Owner,
    /// The conversations of this resource of the owner, and the values in the resource's scope.
    Resource(String),
}

/// Result of one step of an erasure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Number of conversations that this step hid from readers.
    pub conversations: u64,
    /// Number of values outside the trees that this step removed.
    pub entries: u64,
    /// Whether another step is needed.
    pub more: bool,
}
