//! Redaction: content that has to go although nodes never change.
//!
//! [`Store::redact_content`](crate::Store::redact_content) replaces the bytes of exactly the nodes it is given by
//! their tombstones ([`contexture_ir::tombstone_json`]) and removes state values and blobs. Not here:
//! finding what belongs together, [`compute_redaction_closure`](crate::compute_redaction_closure).

use contexture_ir::{ContentHash, NodeId};

use crate::blob::BlobId;

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
