//! The place that copies of long outputs go to, and what became of them.
//!
//! Not here: when they are put (`append`).

use std::sync::Arc;

use bytes::Bytes;
use contexture_ir::Item;
use contexture_offload::OffloadStore;

/// The place that copies go to, and which outputs are copied.
#[derive(Clone, Debug)]
pub(crate) struct OutputCopies {
    /// The place, outside the database.
    pub(crate) store: Arc<dyn OffloadStore>,
    /// Only outputs whose text has more bytes than this are copied.
    pub(crate) over: usize,
}

impl OutputCopies {
    /// Returns an output's text if it is long enough to be copied; `None` for all other items.
    pub(crate) fn text_to_copy(&self, item: &Item) -> Option<Bytes> {
        let Item::FunctionCallOutput(_) = item else {
            return None;
        };
        let text = item.text();
        (text.len() > self.over).then(|| Bytes::from(text))
    }
}

/// Counts what became of copies of long outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Copies that were put, or found in place.
    pub put: u64,
    /// Copies that could not be put because the place failed.
    pub failed: u64,
    /// Copies that were left alone because they had been evicted.
    pub evicted: u64,
}
