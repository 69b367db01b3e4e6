//! Injected layers: notes and a list of skills that a policy adds to what the client sends.
//!
//! They are ordinary layers of the conversation, the same that programs use. Not here: what a layer contributes
//! (`contexture-layers`), when a request is rewritten (`plan`), calls of layers' tools (`server_tools`).

use contexture::engine::EngineError;
use contexture::layers::{Layers, OfferedTo, StateScope};
use contexture::{CompiledCall, Conversation, Format};
use contexture_api::operations::memory_layer;
use contexture_api::policy::{MemoryConfig, MemoryScope, PolicyConfig};

use crate::proxy::capture::ingest::{IngestedRequest, ParsedRequest};
use crate::proxy::server_tools::{OfferPermission, ServerTool};

/// Sets the layers of a policy on the conversation, as far as the request allows.
///
/// # Errors
/// The store's.
pub(crate) async fn inject_layers(
    policy: &PolicyConfig,
    format: Format,
    stored: &IngestedRequest,
    read: &ParsedRequest,
) -> Result<(), EngineError> {
    let chat = &stored.ingested.chat;
    let mut layers = Layers::new();
    if let Some(skills) = &stored.skills {
        let listing = layers.clone().with_layer(skills.clone())?;
        // Without the tools that read them, listed skills would only cost tokens.
        if allows_layer_tools(policy, format, read, &listing) {
            layers = listing;
        }
    }
    if let Some(config) = policy.memory.as_option()
        && let Some(scope) = memory_scope(config, stored).await?
    {
        let memory = memory_layer(config, scope);
        let keeping = Layers::new().with_layer(memory.clone())?;
        let offered = match config.tools && allows_layer_tools(policy, format, read, &keeping) {
            true => OfferedTo::Model,
            // The notes are still shown; the model just cannot change them.
            false => OfferedTo::Host,
        };
        layers = layers.with_layer(memory.with_tools_for(offered))?;
    }
    chat.set_layers(layers);
    Ok(())
}

/// Whether the policy and the request both allow the tools of layers.
fn allows_layer_tools(
    policy: &PolicyConfig,
    format: Format,
    read: &ParsedRequest,
    layers: &Layers,
) -> bool {
    let is_free = |name: &str| {
        let tool = ServerTool::Layer(name.to_owned());
        let offering = OfferPermission::for_tool(&tool, format, read);
        policy.tools.allows(name) && offering == OfferPermission::Free
    };
    let tools = layers.tool_definitions();
    let mut tools = tools.iter();
    tools.all(|tool| is_free(tool.name()))
}

/// Whether layers of the conversation contribute text or tools to a call.
pub(crate) fn has_layer_content(call: &CompiledCall, chat: &Conversation) -> bool {
    let layers = chat.layers();
    let is_layers = |source: &str| layers.specs().any(|spec| spec.id.as_str() == source);
    let mut segments = call.report.segments.iter();
    // Tools count as content even if no text was added: the request offers them.
    !layers.tool_definitions().is_empty()
        || segments.any(|segment| segment.verdict.is_in_payload() && is_layers(&segment.source))
}

/// Whether the notes of a policy belong to end users.
pub(crate) fn has_user_memory(policy: &PolicyConfig) -> bool {
    let memory = policy.memory.as_option();
    memory.is_some_and(|memory| memory.of == MemoryScope::User)
}

/// Returns whose notes are injected: those of the end user that the conversation began for, the owner's if there is none.
async fn memory_scope(
    config: &MemoryConfig,
    stored: &IngestedRequest,
) -> Result<Option<StateScope>, EngineError> {
    if config.of == MemoryScope::Owner {
        return Ok(Some(StateScope::Global));
    }
    let resource = stored.ingested.chat.info().await?.resource;
    Ok(match (resource, &stored.user) {
        (None, None) => Some(StateScope::Global),
        (Some(_), None) => Some(StateScope::Resource),
        (resource, user) if resource == *user => Some(StateScope::Resource),
        // Another end user continues the conversation: nobody's notes, rather than one person's shown to another.
        _ => None,
    })
}
