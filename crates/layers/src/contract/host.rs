//! Services that a layer may use.

use std::fmt;

use async_trait::async_trait;
use contexture_ir::{ConversationId, NodeId};

use crate::contract::error::LayerError;
use crate::contract::layer_id::LayerId;

/// Services that a layer may use: a search over the owner's conversations, and a model.
#[async_trait]
pub trait LayerHost: fmt::Debug + Send + Sync {
    /// Searches the owner's conversations for texts with any word of `query`, at most `limit`: best first, by how many
    /// words they contain and how rare these are. Words are separated by white space; the first 32 are used.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<HistoryHit>, LayerError>;

    /// Asks a model. Its tokens count for the layer that asks, and for its run.
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
    /// When it was stored, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// Score of the match; larger is better, comparable within one search.
    pub score: f64,
    /// When a newer statement of the same person replaced what the text states, in milliseconds since the Unix epoch:
    /// until then it was so. `None` if nothing did.
    pub replaced_ms: Option<i64>,
}

/// A host without any services.
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
