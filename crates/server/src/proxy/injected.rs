//! What a policy has said to the model beside what the client says: notes, and a list of skills.
//!
//! They are said by layers of the conversation, as programs of their own have them. Not here: what a layer says
//! (`contexture-layers`), when a request is rewritten (`rewrite`), calls of layers' tools (`own`).

use contexture::compile::{Budget, Placement};
use contexture::engine::EngineError;
use contexture::layers::builtin::Memory;
use contexture::layers::{Layers, Offered, Scope};
use contexture::{CompiledCall, Conversation, Format};

use crate::config::{MemoryConfig, MemoryOf, MemoryPlacement, PolicyConfig};
use crate::proxy::matching::{Read, Stored};
use crate::proxy::own::{Offering, OwnTool};

/// Gives the conversation the layers of a policy, as far as a request allows it.
///
/// # Errors
/// The store's.
pub(crate) async fn inject(
    policy: &PolicyConfig,
    format: Format,
    stored: &Stored,
    read: &Read,
) -> Result<(), EngineError> {
    let chat = &stored.ingested.chat;
    let mut layers = Layers::new();
    if let Some(skills) = &stored.skills {
        let listing = layers.clone().with(skills.clone())?;
        // Without the tools that read them, a list of them is of no use.
        if lets(policy, format, read, &listing) {
            layers = listing;
        }
    }
    if let Some(config) = policy.memory.on()
        && let Some(scope) = whose(config, stored).await?
    {
        let memory = memory(config, scope);
        let keeping = Layers::new().with(memory.clone())?;
        let offered = match config.tools && lets(policy, format, read, &keeping) {
            true => Offered::Model,
            false => Offered::Host,
        };
        layers = layers.with(memory.offered_to(offered))?;
    }
    chat.set_layers(layers);
    Ok(())
}

/// Whether models may be offered the tools of layers: by the policy, and as far as a request lets them.
fn lets(policy: &PolicyConfig, format: Format, read: &Read, layers: &Layers) -> bool {
    let free = |name: &str| {
        let tool = OwnTool::Layer(name.to_owned());
        let offering = Offering::of(&tool, format, read);
        policy.tools.allows(name) && offering == Offering::Free
    };
    let tools = layers.tools();
    let mut tools = tools.iter();
    tools.all(|tool| free(tool.name()))
}

/// Whether layers of the conversation say or offer something in a call.
pub(crate) fn is_in(call: &CompiledCall, chat: &Conversation) -> bool {
    let layers = chat.layers();
    let is_layers = |source: &str| layers.specs().any(|spec| spec.id.as_str() == source);
    let mut segments = call.report.segments.iter();
    !layers.tools().is_empty()
        || segments.any(|segment| segment.verdict.is_sent() && is_layers(&segment.source))
}

/// Whether what a policy says belongs to end users.
pub(crate) fn is_by_user(policy: &PolicyConfig) -> bool {
    let memory = policy.memory.on();
    memory.is_some_and(|memory| memory.of == MemoryOf::User)
}

fn memory(config: &MemoryConfig, scope: Scope) -> Memory {
    let memory = Memory::new().scoped(scope);
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
