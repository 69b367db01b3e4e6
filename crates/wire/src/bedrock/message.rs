//! Native messages while they are made.

use contexture_ir::Extra;

use super::block::append_cache_point;
use crate::model::json::{ObjectWriter, json_array};

/// One native message being made.
pub(super) struct NativeMessage {
    pub(super) role: &'static str,
    pub(super) results: Vec<String>,
    pub(super) rest: Vec<String>,
    pub(super) fields: Extra,
}

impl NativeMessage {
    pub(super) fn new(role: &'static str) -> Self {
        Self {
            role,
            results: Vec::new(),
            rest: Vec::new(),
            fields: Extra::new(),
        }
    }

    /// How many content blocks it will have.
    pub(super) fn block_count(&self) -> usize {
        self.results.len() + self.rest.len()
    }

    /// The message, unless nothing stands in it.
    pub(super) fn finish(self) -> Option<String> {
        if self.block_count() == 0 {
            return None;
        }
        let content = json_array(self.results.into_iter().chain(self.rest));
        let mut object = ObjectWriter::new();
        object
            .string("role", self.role)
            .raw("content", &content)
            .extra_fields(&self.fields);
        Some(object.finish())
    }
}

/// Adds a block, and the cache point that its item carries as a block of its own.
pub(super) fn push_block(blocks: &mut Vec<String>, block: String, wire: &Extra) {
    blocks.push(block);
    append_cache_point(blocks, wire);
}
