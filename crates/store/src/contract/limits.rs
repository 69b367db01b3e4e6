//! Limits: how much one call may carry before it is refused.
//!
//! Exceeding a limit is [`Error::Limit`](crate::Error::Limit), which names it; nothing is truncated
//! silently. Limits on an answer ([`Limits::page_bytes`], [`Limits::list_scan`]) refuse nothing: they
//! end a page, and the page says so. The defaults bound how long one call can occupy the writer.
//! Split a longer import into several appends; with group commit that costs little more than one.

use crate::contract::{SearchLimits, StreamLimits};

/// The limits of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one item. Default 16 MiB.
    pub item_bytes: usize,
    /// Items of one append. Default 4,096.
    pub append_items: usize,
    /// Values outside the tree of one append. Default 1,024.
    pub append_entries: usize,
    /// Bytes of one append: items, blobs, state values, the response record and values outside the
    /// tree together. Default 64 MiB.
    pub append_bytes: usize,
    /// Bytes of a conversation's metadata, as compact JSON. Default 64 KiB.
    pub metadata_bytes: usize,
    /// Keys of a conversation's metadata. Default 256.
    pub metadata_keys: usize,
    /// Bytes of a title or a resource. Default 1 KiB.
    pub title_bytes: usize,
    /// Bytes of one state value. Default 1 MiB.
    pub state_value_bytes: usize,
    /// Keys of one state root. Default 4,096.
    pub state_keys: usize,
    /// Bytes of one blob. Default 64 MiB.
    pub blob_bytes: usize,
    /// Bytes of the record of one response, without its items. Default 16 MiB.
    pub response_bytes: usize,
    /// Bytes of one value outside the tree. Default 1 MiB.
    pub entry_bytes: usize,
    /// Nodes, state values and blobs of one redaction together. Default 4,096.
    pub redact_items: usize,
    /// Bytes of one page of a path (the JSON of its nodes) or of values outside the tree; a page has at least one of them,
    /// however large. Not a limit that refuses: the page ends, and its `next` says where to go on. Default 8 MiB.
    pub page_bytes: usize,
    /// Conversations that one page of a list looks at, where no index says which satisfy its conditions. Then the page ends,
    /// and [`ConversationPage::complete`](crate::ConversationPage::complete) says so. Default 10,000.
    pub list_scan: usize,
    /// Path hashes of one look-up, or stored at once. Default 65,536.
    pub path_hashes: usize,
    /// Calls of one [`record_calls`](crate::Calls::record_calls). Default 1,024.
    pub call_batch: usize,
    /// Bytes of the band of a call. Default 1 KiB.
    pub call_band_bytes: usize,
    /// Bytes of the body of a call, as it is stored. Default 4 MiB.
    pub call_body_bytes: usize,
    /// Groups of one sum of calls. Default 10,000.
    pub call_groups: usize,
    /// Limits on the cost of one search.
    pub search: SearchLimits,
    /// Limits on the size and number of streams.
    pub streams: StreamLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            item_bytes: 16 << 20,
            append_items: 4096,
            append_entries: 1024,
            append_bytes: 64 << 20,
            metadata_bytes: 64 << 10,
            metadata_keys: 256,
            title_bytes: 1 << 10,
            state_value_bytes: 1 << 20,
            state_keys: 4096,
            blob_bytes: 64 << 20,
            response_bytes: 16 << 20,
            entry_bytes: 1 << 20,
            redact_items: 4096,
            page_bytes: 8 << 20,
            list_scan: 10_000,
            path_hashes: 65_536,
            call_batch: 1024,
            call_band_bytes: 1 << 10,
            call_body_bytes: 4 << 20,
            call_groups: 10_000,
            search: SearchLimits::default(),
            streams: StreamLimits::default(),
        }
    }
}
