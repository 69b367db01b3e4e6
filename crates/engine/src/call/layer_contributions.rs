//! What layers add to a call: contributions, tools, passes over the history.

use std::sync::Arc;

use contexture_catalogue::Capabilities;
use contexture_compile::{Contribution, HistoryPolicy, Pass, PathItem};
use contexture_ir::{Item, Part, Role, ToolDefinition};
use contexture_layers::{HookOutcome, Projection, RecallInput};

use crate::error::EngineError;
use crate::handle::Conversation;
use crate::hooks::LayerSession;

/// Whom layers speak to.
#[derive(Debug)]
pub(crate) struct RecallReader<'a> {
    pub(crate) capabilities: &'a Capabilities,
    pub(crate) window: u64,
    /// How the model is shown the history before layers change it.
    pub(crate) policy: HistoryPolicy,
}

/// What layers add to a call.
#[derive(Debug, Default)]
pub(crate) struct LayerContributions {
    pub(crate) contributions: Vec<Contribution>,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) policy: HistoryPolicy,
    pub(crate) passes: Vec<Arc<dyn Pass>>,
    pub(crate) outcomes: Vec<HookOutcome>,
}

/// Asks the layers what they add to a call over this path.
pub(crate) async fn recall_layers(
    chat: &Conversation,
    session: &LayerSession,
    path: &[PathItem],
    reader: RecallReader<'_>,
) -> Result<LayerContributions, EngineError> {
    // Without layers nothing is asked and nothing is cached: the common case costs nothing.
    let Some(spec) = session.layers().specs().next() else {
        return Ok(LayerContributions {
            policy: reader.policy,
            ..LayerContributions::default()
        });
    };
    let query = last_user_text(path);
    let renderer = chat.renderer();
    let call = RecallInput {
        context: &session.context,
        path,
        query: &query,
        capabilities: reader.capabilities,
        window: reader.window,
        renderer: &renderer,
        spec,
    };
    let projection = Projection {
        policy: reader.policy,
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
    Ok(LayerContributions {
        contributions: gathered.contributions,
        tools: gathered.tools,
        policy: gathered.projection.policy,
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
