//! The state of one import, shared by its parts.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use contexture_ir::{BranchName, ConversationId, NodeId, Owner};
use contexture_sessions::Session;

use super::dedup::Alignment;
use super::options::DivergedSession;
use crate::error::EngineError;
use crate::handle::Engine;

/// One import under way.
pub(super) struct ImportJob<'a> {
    pub(super) engine: &'a Engine,
    pub(super) session: &'a Session,
    /// The session before secrets were taken out.
    pub(super) unredacted: &'a Session,
    pub(super) owner: &'a Owner,
    pub(super) id: ConversationId,
    /// Whether somebody said which conversation it is.
    pub(super) named: bool,
    /// What it is about, if somebody said.
    pub(super) resource: Option<&'a str>,
    /// Counts the items that are stored.
    pub(super) stored_items: &'a AtomicU64,
    /// What the ids of new nodes derive from.
    pub(super) key: [u8; 16],
    /// The time of what the log gives none: that of the first node that has one, else now.
    pub(super) created_ms: i64,
    /// Whether the conversation was there before.
    pub(super) existed: bool,
    /// If it came from elsewhere: for each head, what of its path is there.
    pub(super) alignments: Vec<Alignment>,
    /// The nodes that are there under ids of their own; `None`: what stands before all nodes.
    pub(super) nodes: BTreeMap<usize, Option<NodeId>>,
    /// The branches, the active one first.
    pub(super) branches: Vec<(BranchName, Option<NodeId>)>,
    pub(super) diverged: Option<DivergedSession>,
}

impl ImportJob<'_> {
    /// A node of the session.
    pub(super) fn node_id(&self, index: usize) -> Option<NodeId> {
        let elsewhere = self.nodes.get(&index).copied();
        elsewhere.unwrap_or_else(|| Some(self.derived_node_id(&self.key, index)))
    }

    /// The id that a node of the session has where nothing like it was there before.
    pub(super) fn derived_node_id(&self, key: &[u8; 16], index: usize) -> NodeId {
        match self.session.info.node_keys.get(index) {
            Some(own) => NodeId::derive("imported node", &[key, own.as_bytes()]),
            None => NodeId::of_operation(key, index),
        }
    }

    pub(super) fn conversation_exists_error(&self) -> EngineError {
        EngineError::ConversationExists {
            conversation: self.id.clone(),
        }
    }
}
