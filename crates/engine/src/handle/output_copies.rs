//! Where copies of long outputs go, and what became of them.
//!
//! Not here: when they are put (`copying`).

use std::sync::Arc;

use bytes::Bytes;
use contexture_ir::Item;
use contexture_offload::OffloadStore;

/// Where copies go, and of what.
#[derive(Clone, Debug)]
pub(crate) struct OutputCopies {
    pub(crate) store: Arc<dyn OffloadStore>,
    /// Of texts of more bytes.
    pub(crate) over: usize,
}

impl OutputCopies {
    /// An output's text, if it is to be copied.
    pub(crate) fn text_to_copy(&self, item: &Item) -> Option<Bytes> {
        let Item::FunctionCallOutput(_) = item else {
            return None;
        };
        let text = item.text();
        (text.len() > self.over).then(|| Bytes::from(text))
    }
}

/// What became of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Put, or found to be there.
    pub put: u64,
    /// Not put: the place failed.
    pub failed: u64,
    /// Left alone, because they were evicted.
    pub evicted: u64,
}
