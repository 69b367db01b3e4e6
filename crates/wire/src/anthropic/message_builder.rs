//! Native messages while they are made.

use crate::model::json::{ObjectWriter, json_array};
use contexture_ir::Extra;

/// One native message being made.
pub(super) struct MessageBuilder {
    pub(super) role: &'static str,
    pub(super) results: Vec<EncodedBlock>,
    pub(super) rest: Vec<EncodedBlock>,
    pub(super) fields: Extra,
    pub(super) string: bool,
}

/// One block; `plain` is its quoted text if it is nothing but text.
pub(super) struct EncodedBlock {
    pub(super) json: String,
    pub(super) plain: Option<String>,
}

impl EncodedBlock {
    pub(super) fn new(json: String) -> Self {
        Self { json, plain: None }
    }
}

impl MessageBuilder {
    pub(super) fn new(role: &'static str) -> Self {
        Self {
            role,
            results: Vec::new(),
            rest: Vec::new(),
            fields: Extra::new(),
            string: false,
        }
    }

    /// How many content blocks it will have.
    pub(super) fn block_count(&self) -> usize {
        self.results.len() + self.rest.len()
    }

    /// The message, unless nothing stands in it.
    pub(super) fn finish(self) -> Option<String> {
        let blocks: Vec<EncodedBlock> = self.results.into_iter().chain(self.rest).collect();
        let content = match blocks.as_slice() {
            [] => return None,
            [
                EncodedBlock {
                    plain: Some(text), ..
                },
            ] if self.string => text.clone(),
            _ => json_array(blocks.into_iter().map(|block| block.json)),
        };
        let mut object = ObjectWriter::new();
        object
            .string("role", self.role)
            .raw("content", &content)
            .extra_fields(&self.fields);
        Some(object.finish())
    }
}
