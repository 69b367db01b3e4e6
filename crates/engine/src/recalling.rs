//! What layers say in a call.

use std::sync::Arc;

use contexture_catalogue::ModelSpec;
use contexture_compile::{CompileRequest, Contribution, Pass, PathItem};
use contexture_ir::{Item, Part, Role};
use contexture_layers::{Outcome, Projection, Recall};

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::inputs::Given;
use crate::layer_session::LayerSession;

/// What layers say in a call, beside what they made of the request.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) contributions: Vec<Contribution>,
    pub(crate) passes: Vec<Arc<dyn Pass>>,
    pub(crate) outcomes: Vec<Outcome>,
}

impl Conversation {
    /// Asks the layers for their words. Their tools stand behind those of the request.
    pub(crate) async fn recall(
        &self,
        session: &LayerSession,
        given: &Given<'_>,
        request: &mut CompileRequest,
        model: &ModelSpec,
    ) -> Result<Said, EngineError> {
        let Some(spec) = session.layers().specs().next() else {
            return Ok(Said::default());
        };
        let query = query(&given.items);
        let call = Recall {
            context: &session.context,
            path: &given.items,
            query: &query,
            capabilities: &model.capabilities,
            window: request.window,
            spec,
        };
        let projection = Projection {
            policy: request.history.clone(),
            passes: Vec::new(),
        };
        let mut last = std::mem::take(&mut *self.recalled());
        let asked = session
            .layers
            .gather(&session.states, call, projection, &mut last);
        let gathered = asked.await;
        *self.recalled() = last;
        let gathered = gathered?;
        request.tools.extend(gathered.tools);
        request.history = gathered.projection.policy;
        Ok(Said {
            contributions: gathered.contributions,
            passes: gathered.projection.passes,
            outcomes: gathered.outcomes,
        })
    }
}

/// What the person said last.
fn query(path: &[PathItem]) -> String {
    let said = path.iter().rev().find_map(|item| match &*item.item {
        Item::Message(message) if message.role == Role::User => Some(message),
        _ => None,
    });
    let parts = said.iter().flat_map(|message| &message.content);
    let texts = parts.filter_map(|part| match part {
        Part::InputText(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
