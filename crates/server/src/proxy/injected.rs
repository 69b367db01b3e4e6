//! What a policy has said to the model beside what the client says: notes.
//!
//! They are said by layers of the conversation, as programs of their own have them. Not here: what a layer says
//! (`contexture-layers`), when a request is rewritten (`rewrite`).

use contexture::CompiledCall;
use contexture::Conversation;
use contexture::compile::{Budget, Placement};
use contexture::engine::EngineError;
use contexture::layers::builtin::Memory;
use contexture::layers::{Layers, Offered, Scope};

use crate::config::{MemoryConfig, MemoryOf, MemoryPlacement, PolicyConfig};
use crate::proxy::matching::Stored;

/// Gives the conversation the layers of a policy.
///
/// # Errors
/// The store's.
pub(crate) async fn inject(policy: &PolicyConfig, stored: &Stored) -> Result<(), EngineError> {
    let chat = &stored.ingested.chat;
    let mut layers = Layers::new();
    if let Some(config) = policy.memory.on()
        && let Some(scope) = whose(config, stored).await?
    {
        layers = layers.with(memory(config, scope))?;
    }
    chat.set_layers(layers);
    Ok(())
}

/// Whether layers of the conversation say something in a call.
pub(crate) fn is_in(call: &CompiledCall, chat: &Conversation) -> bool {
    let layers = chat.layers();
    let is_layers = |source: &str| layers.specs().any(|spec| spec.id.as_str() == source);
    let mut segments = call.report.segments.iter();
    segments.any(|segment| segment.verdict.is_sent() && is_layers(&segment.source))
}

/// Whether what a policy says belongs to end users.
pub(crate) fn is_by_user(policy: &PolicyConfig) -> bool {
    let memory = policy.memory.on();
    memory.is_some_and(|memory| memory.of == MemoryOf::User)
}

fn memory(config: &MemoryConfig, scope: Scope) -> Memory {
    let memory = Memory::new().scoped(scope).offered_to(Offered::Host);
    let memory = memory.placed(match config.placement {
        MemoryPlacement::System => Placement::System,
        MemoryPlacement::Tail => Placement::Tail,
    });
    match config.budget_tokens {
        Some(tokens) => memory.configured(|spec| spec.budget = Budget::at_most(tokens)),
        None => memory,
    }
}

/// Whose notes are said: those of the end user that the conversation was begun for, the owner's if there is none. No
/// one's, if somebody else asks.
async fn whose(config: &MemoryConfig, stored: &Stored) -> Result<Option<Scope>, EngineError> {
    if config.of == MemoryOf::Owner {
        return Ok(Some(Scope::Global));
    }
    let resource = stored.ingested.chat.record_of().await?.resource;
    Ok(match (resource, &stored.user) {
        (None, None) => Some(Scope::Global),
        (Some(_), None) => Some(Scope::Resource),
        (resource, user) if resource == *user => Some(Scope::Resource),
        _ => None,
    })
}
