//! What the engine offers layers: search in the owner's history, and a model if one was set for them.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_layers::{EmptyHost, HistoryHit, LayerError, LayerHost, LayerId};
use contexture_store::{SearchRequest, SearchScope};

use crate::handle::{Conversation, Engine, SideCaller, SideUsageTracker};
use crate::search::search_owner;

/// An engine, asked for one owner.
#[derive(Clone, Debug)]
pub(crate) struct EngineHost {
    engine: Engine,
    owner: Owner,
    conversation: ConversationId,
    tracker: Option<Arc<dyn SideUsageTracker>>,
}

impl EngineHost {
    pub(crate) fn new(chat: &Conversation, tracker: Option<Arc<dyn SideUsageTracker>>) -> Self {
        Self {
            engine: chat.engine().clone(),
            owner: chat.owner().clone(),
            conversation: chat.id().clone(),
            tracker,
        }
    }
}

#[async_trait]
impl LayerHost for EngineHost {
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<HistoryHit>, LayerError> {
        let request = SearchRequest {
            limit,
            ..SearchRequest::new(query, SearchScope::Owner)
        };
        let page = search_owner(&self.engine, &self.owner, request).await;
        let hits = page.map_err(LayerError::from_message)?.hits;
        let found = hits.into_iter().map(|hit| HistoryHit {
            conversation: hit.conversation,
            node: hit.node,
            text: hit.snippet.text,
            at_ms: hit.created_ms,
            score: f64::from(hit.score),
            replaced_ms: hit.replaced.map(|newer| newer.created_ms),
        });
        Ok(found.collect())
    }

    async fn ask_model(&self, layer: &LayerId, prompt: &str) -> Result<String, LayerError> {
        match self.engine.layer_model() {
            Some(model) => {
                let caller = SideCaller {
                    engine: &self.engine,
                    owner: &self.owner,
                    conversation: &self.conversation,
                    names: None,
                };
                let (answer, usage) = model.complete_prompt(prompt, caller).await?;
                // Counted after the answer and before it is used: it was paid for even if the layer then fails.
                if let Some(tracker) = &self.tracker {
                    tracker.record_call(layer.as_str(), model.target.model(), &usage);
                }
                Ok(answer)
            }
            None => EmptyHost.ask_model(layer, prompt).await,
        }
    }
}
