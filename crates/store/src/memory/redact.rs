//! Redaction in memory.

use std::sync::Arc;

use contexture_ir::{ContentHash, tombstone_json};

use super::tree::NodeTree;
use crate::contract::{BlobId, Error, EventKind, Node, RedactRequest, Redacted, ResponseInputs};

impl NodeTree {
    /// Redacts content; the caller has checked `request` against the limits.
    pub(super) fn redact_content(&mut self, request: &RedactRequest) -> Result<Redacted, Error> {
        let indices = request.nodes.iter().map(|id| self.node_index(*id));
        let indices = indices.collect::<Result<Vec<usize>, Error>>()?;
        self.streams.remove_ended_streams();
        let mut done = Redacted::default();
        let mut changed = Vec::new();
        for index in indices {
            let before = self
                .stored_node(Some(index))
                .map(|stored| stored.node.content_hash);
            if let Some(node) = self.write_tombstone(index, request.at_ms) {
                let after = self
                    .stored_node(Some(index))
                    .map(|stored| stored.node.content_hash);
                changed.extend((before != after).then_some(index));
                done.nodes += 1;
                self.record_event(request.at_ms, EventKind::NodeRedacted { node });
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
        self.remove_inputs(&changed, count > 0);
        if count > 0 {
            self.record_event(request.at_ms, EventKind::BytesRedacted { count });
        }
        Ok(done)
    }

    /// Removes the inputs of the responses whose path has one of these nodes, or of all responses.
    fn remove_inputs(&mut self, nodes: &[usize], all: bool) {
        let mut responses = std::mem::take(&mut self.responses);
        for response in responses.values_mut() {
            let base = response
                .base
                .and_then(|base| self.by_id.get(&base).copied());
            let is_on_base_path = |index: &usize| {
                let depth = self.counters_of(Some(*index)).depth;
                self.ancestor_at_depth(base, depth) == Some(*index)
            };
            if response.inputs.recorded_bytes().is_some()
                && (all || nodes.iter().any(is_on_base_path))
            {
                response.inputs = ResponseInputs::Redacted;
            }
        }
        self.responses = responses;
    }

    /// Replaces a node's content by its tombstone; returns `None` if that was done before.
    fn write_tombstone(&mut self, index: usize, at_ms: i64) -> Option<contexture_ir::NodeId> {
        let stored = self.arena.get_mut(index)?;
        if stored.node.redacted_ms.is_some() {
            return None;
        }
        let json = tombstone_json(&stored.node.json);
        stored.node = Arc::new(Node {
            content_hash: ContentHash::of(json.as_bytes()),
            json: json.into(),
            meaning_hash: None,
            redacted_ms: Some(at_ms),
            ..Node::clone(&stored.node)
        });
        Some(stored.node.id)
    }
}
