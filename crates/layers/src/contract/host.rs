//! What a layer may ask of whoever runs it.

use std::fmt;

use async_trait::async_trait;
use contexture_ir::{ConversationId, NodeId};

use crate::contract::error::LayerError;
use crate::contract::layer_id::LayerId;

/// What a layer may ask of whoever runs it: a search over what the owner has kept, a model.
#[async_trait]
pub trait LayerHost: fmt::Debug + Send + Sync {
    /// Texts of the owner's conversations that have any word of `query`, at most `limit`: best first, by how many words
    /// and how rare ones they have. Words are separated by white space, at most 32 of them.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<HistoryHit>, LayerError>;

    /// What a model answers to a prompt. Its tokens count for the layer that asks, and in its run.
    async fn ask_model(&self, layer: &LayerId, prompt: &str) -> Result<String, LayerError>;
}

/// A text that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryHit {
    /// The conversation it is in.
    pub conversation: ConversationId,
    /// The matching node.
    pub node: NodeId,
    /// Text of the node.
    pub text: String,
    /// When it was said, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// How well it fits; larger is better, comparable within one search.
    pub score: f64,
}

/// A host that has nothing to offer.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyHost;

#[async_trait]
impl LayerHost for EmptyHost {
    async fn search(&self, _: &str, _: usize) -> Result<Vec<HistoryHit>, LayerError> {
        Err(LayerError::Unavailable {
            capability: "search",
            hint: "open the conversation from an engine whose store can search",
        })
    }

    async fn ask_model(&self, _: &LayerId, _: &str) -> Result<String, LayerError> {
        Err(LayerError::Unavailable {
            capability: "a model",
            hint: "give the engine a model for its layers",
        })
    }
}
