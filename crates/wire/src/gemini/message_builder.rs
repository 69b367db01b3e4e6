//! Native contents while they are made.

use contexture_ir::Extra;

use crate::model::json::ObjectWriter;
use crate::model::paired_item::Side;

/// One native content being made; two if function responses need one of their own.
pub(super) struct ContentBuilder {
    pub(super) side: Side,
    pub(super) results: Vec<String>,
    pub(super) rest: Vec<String>,
    pub(super) fields: Extra,
    /// Whether responses and the rest came in one content.
    pub(super) joined: bool,
    pub(super) role: Option<String>,
    /// Whether there was no list of parts at all.
    pub(super) bare: bool,
}

impl ContentBuilder {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            results: Vec::new(),
            rest: Vec::new(),
            fields: Extra::new(),
            joined: false,
            role: None,
            bare: false,
        }
    }

    /// The contents, none if nothing stands in them.
    pub(super) fn finish(mut self) -> Vec<String> {
        let results = std::mem::take(&mut self.results);
        if self.joined {
            let rest = std::mem::replace(&mut self.rest, results);
            self.rest.extend(rest);
            return vec![self.content_json(&self.rest)];
        }
        [results, std::mem::take(&mut self.rest)]
            .iter()
            .filter(|parts| !parts.is_empty())
            .map(|parts| self.content_json(parts))
            .collect()
    }

    /// The content even if it is empty, as a response may have it.
    pub(super) fn finish_single(mut self) -> Option<String> {
        let mut parts = std::mem::take(&mut self.results);
        parts.append(&mut self.rest);
        Some(self.content_json(&parts))
    }

    fn content_json(&self, parts: &[String]) -> String {
        let mut object = ObjectWriter::new();
        match (self.role.as_deref(), self.side) {
            (Some("absent"), _) => {}
            (Some(role), _) => {
                object.string("role", role);
            }
            (None, Side::User) => {
                object.string("role", "user");
            }
            (None, Side::Model) => {
                object.string("role", "model");
            }
        }
        if !(self.bare && parts.is_empty()) {
            object.array("parts", parts);
        }
        object.extra_fields(&self.fields);
        object.finish()
    }
}
