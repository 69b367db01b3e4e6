//! What layers add to a call: contributions, tools, passes over the history.

use std::sync::Arc;

use contexture_catalogue::ModelSpec;
use contexture_compile::{CompileRequest, Contribution, Pass, PathItem};
use contexture_ir::{Item, Part, Role};
use contexture_layers::{HookOutcome, Projection, RecallInput};

use super::inputs::TreeInputs;
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::hooks::LayerSession;

/// What layers say in a call, beside what they made of the request.
#[derive(Debug, Default)]
pub(crate) struct LayerContributions {
    pub(crate) contributions: Vec<Contribution>,
    pub(crate) passes: Vec<Arc<dyn Pass>>,
    pub(crate) outcomes: Vec<HookOutcome>,
}

/// Asks the layers for their words. Their tools stand behind those of the request.
pub(crate) async fn recall_layers(
    chat: &Conversation,
    session: &LayerSession,
    given: &TreeInputs<'_>,
    request: &mut CompileRequest,
    model: &ModelSpec,
) -> Result<LayerContributions, EngineError> {
    // Without layers nothing is asked and nothing is cached: the common case costs nothing.
    let Some(spec) = session.layers().specs().next() else {
        return Ok(LayerContributions::default());
    };
    let query = last_user_text(&given.items);
    let call = RecallInput {
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
    // Taken out and put back, so that the lock is not held across an await. A concurrent call of the same
    // handle starts without it.
    let mut last = std::mem::take(&mut *chat.recall_cache());
    let recalling = session
        .layers
        .recall_all(&session.states, call, projection, &mut last);
    let gathered = recalling.await;
    *chat.recall_cache() = last;
    // Only now: the cache must be put back after a failure as well.
    let gathered = gathered?;
    request.tools.extend(gathered.tools);
    request.history = gathered.projection.policy;
    Ok(LayerContributions {
        contributions: gathered.contributions,
        passes: gathered.projection.passes,
        outcomes: gathered.outcomes,
    })
}

/// What the person said last.
fn last_user_text(path: &[PathItem]) -> String {
    let last_message = path.iter().rev().find_map(|item| match &*item.item {
        Item::Message(message) if message.role == Role::User => Some(message),
        _ => None,
    });
    let parts = last_message.iter().flat_map(|message| &message.content);
    let texts = parts.filter_map(|part| match part {
        Part::InputText(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
