//! Redaction in memory.

use std::sync::Arc;

use contexture_ir::{ContentHash, redacted_json};

use super::tree::Tree;
use crate::blob::BlobId;
use crate::error::Error;
use crate::event::EventKind;
use crate::node::Node;
use crate::redact::{RedactRequest, Redacted};

impl Tree {
    /// `request` is within the limits already.
    pub(super) fn redact(&mut self, request: &RedactRequest) -> Result<Redacted, Error> {
        let indices = request.nodes.iter().map(|id| self.index(*id));
        let indices = indices.collect::<Result<Vec<usize>, Error>>()?;
        self.streams.remove_ended();
        let mut done = Redacted::default();
        for index in indices {
            if let Some(node) = self.bury(index, request.at_ms) {
                done.nodes += 1;
                self.event(request.at_ms, EventKind::NodeRedacted { node });
            }
        }
        for value in &request.values {
            done.values += u64::from(self.values.remove(value).is_some());
        }
        for blob in &request.blobs {
            done.blobs += u64::from(self.blobs.remove(blob).is_some());
            let owner = &self.record.owner;
            self.values
                .retain(|_, value| BlobId::of(owner, value) != *blob);
        }
        let count = done.values + done.blobs;
        if count > 0 {
            self.event(request.at_ms, EventKind::BytesRedacted { count });
        }
        Ok(done)
    }

    /// Replaces a node's content; `None` if that was done before.
    fn bury(&mut self, index: usize, at_ms: i64) -> Option<contexture_ir::NodeId> {
        let placed = self.arena.get_mut(index)?;
        if placed.node.redacted_ms.is_some() {
            return None;
        }
        let json = redacted_json(&placed.node.json);
        placed.node = Arc::new(Node {
            content_hash: ContentHash::of(json.as_bytes()),
            json: json.into(),
            meaning_hash: None,
            redacted_ms: Some(at_ms),
            ..Node::clone(&placed.node)
        });
        Some(placed.node.id)
    }
}
