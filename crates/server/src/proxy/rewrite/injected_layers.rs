//! What a policy has said to the model beside what the client says: notes, and a list of skills.
//!
//! They are said by layers of the conversation, as programs of their own have them. Not here: what a layer says
//! (`contexture-layers`), when a request is rewritten (`rewrite`), calls of layers' tools (`own`).

use contexture::compile::{Budget, Placement};
use contexture::engine::EngineError;
use contexture::layers::builtin::Memory;
use contexture::layers::{Layers, OfferedTo, StateScope};
use contexture::{CompiledCall, Conversation, Format};

use crate::config::{MemoryConfig, MemoryPlacement, MemoryScope, PolicyConfig};
use crate::proxy::capture::ingest::{IngestedRequest, ParsedRequest};
use crate::proxy::server_tools::{OfferPermission, ServerTool};

/// Gives the conversation the layers of a policy, as far as a request allows it.
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
        // Without the tools that read them, a list of them is of no use.
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
            false => OfferedTo::Host,
        };
        layers = layers.with_layer(memory.with_tools_for(offered))?;
    }
    chat.set_layers(layers);
    Ok(())
}

/// Whether models may be offered the tools of layers: by the policy, and as far as a request lets them.
fn allows_layer_tools(
    policy: &PolicyConfig,
    format: Format,
    read: &ParsedRequest,
    layers: &Layers,
) -> bool {
    let free = |name: &str| {
        let tool = ServerTool::Layer(name.to_owned());
        let offering = OfferPermission::for_tool(&tool, format, read);
        policy.tools.allows(name) && offering == OfferPermission::Free
    };
    let tools = layers.tool_definitions();
    let mut tools = tools.iter();
    tools.all(|tool| free(tool.name()))
}

/// Whether layers of the conversation say or offer something in a call.
pub(crate) fn has_layer_content(call: &CompiledCall, chat: &Conversation) -> bool {
    let layers = chat.layers();
    let is_layers = |source: &str| layers.specs().any(|spec| spec.id.as_str() == source);
    let mut segments = call.report.segments.iter();
    !layers.tool_definitions().is_empty()
        || segments.any(|segment| segment.verdict.is_in_payload() && is_layers(&segment.source))
}

/// Whether what a policy says belongs to end users.
pub(crate) fn has_user_memory(policy: &PolicyConfig) -> bool {
    let memory = policy.memory.as_option();
    memory.is_some_and(|memory| memory.of == MemoryScope::User)
}

fn memory_layer(config: &MemoryConfig, scope: StateScope) -> Memory {
    let memory = Memory::new().with_scope(scope);
    let memory = memory.with_placement(match config.placement {
        MemoryPlacement::System => Placement::System,
        MemoryPlacement::Tail => Placement::Tail,
    });
    match config.budget_tokens {
        Some(tokens) => memory.with_spec(|spec| spec.budget = Budget::at_most(tokens)),
        None => memory,
    }
}

/// Whose notes are said: those of the end user that the conversation was begun for, the owner's if there is none. No
/// one's, if somebody else asks.
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
        _ => None,
    })
}
