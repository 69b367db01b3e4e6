//! Native messages while they are made.

use contexture_ir::Extra;

use crate::json::{Object, array};

/// One native message being made.
pub(super) struct Group {
    pub(super) role: &'static str,
    pub(super) results: Vec<Block>,
    pub(super) rest: Vec<Block>,
    pub(super) fields: Extra,
    pub(super) string: bool,
}

/// One block; `plain` is its quoted text if it is nothing but text.
pub(super) struct Block {
    pub(super) json: String,
    pub(super) plain: Option<String>,
}

impl Block {
    pub(super) fn new(json: String) -> Self {
        Self { json, plain: None }
    }
}

impl Group {
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
    pub(super) fn blocks(&self) -> usize {
        self.results.len() + self.rest.len()
    }

    /// The message, unless nothing stands in it.
    pub(super) fn finish(self) -> Option<String> {
        let blocks: Vec<Block> = self.results.into_iter().chain(self.rest).collect();
        let content = match blocks.as_slice() {
            [] => return None,
            [
                Block {
                    plain: Some(text), ..
                },
            ] if self.string => text.clone(),
            _ => array(blocks.into_iter().map(|block| block.json)),
        };
        let mut object = Object::new();
        object
            .string("role", self.role)
            .raw("content", &content)
            .carried(&self.fields);
        Some(object.finish())
    }
}
