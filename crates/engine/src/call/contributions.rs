//! What is said beside the history: by stored instructions, by the handle, by one call, by layers.
//!
//! A call gathers it with its tools and its plan (`compile`); a view of the system prompt gathers it alone.

use contexture_catalogue::{Capabilities, Encoding, ModelSpec};
use contexture_compile::{Band, Content, Contribution, GrowingPath, HistoryPolicy, PathItem};
use contexture_render::Renderer;
use contexture_store::{NodeState, PathEnd};

use super::layer_contributions::{RecallReader, recall_layers};
use super::options::CompileOptions;
use crate::error::EngineError;
use crate::handle::{
    Conversation, TargetChoice, instructions_from_state, load_state, read_full_path, resolve_target,
};
use crate::hooks::{SessionPosition, load_session};
use crate::path::StoredPath;
use crate::state::{INSTRUCTIONS_PREFIX, Instructions};

/// Returns what is said beside the history, except by layers.
pub(crate) fn own_contributions(
    chat: &Conversation,
    state: &NodeState,
    options: &CompileOptions<'_>,
    capabilities: &Capabilities,
) -> Result<Vec<Contribution>, EngineError> {
    // Leading messages of the caller replace stored ones for this call only: a proxy sends those of the
    // client's newest request.
    let mut instructions = instructions_from_state(chat, state)?;
    if let Some(messages) = options.instructions {
        instructions.messages = messages.to_vec();
    }
    // The order decides the bytes of the payload: stored instructions, what the handle says, what this call
    // says, and layers last, whose words change most often and would end the cached prefix earliest.
    let mut contributions = leading_contributions(&instructions, &*chat.renderer())?;
    contributions.extend(chat.call_context().build_contributions(capabilities)?);
    contributions.extend_from_slice(options.contributions);
    Ok(contributions)
}

/// What is said before the history, as contributions: an imported history's own messages, then the fragments as text.
fn leading_contributions(
    instructions: &Instructions,
    renderer: &dyn Renderer,
) -> Result<Vec<Contribution>, EngineError> {
    let mut contributions = Vec::new();
    // Imported messages come first and unrendered: they keep their provider's blocks, cache markers included.
    if !instructions.messages.is_empty() {
        let content = Content::Instructions(instructions.messages.clone());
        contributions.push(Contribution::new("instructions", Band::System, content));
    }
    // Fragments follow as one text, so that a change of one of them leaves the messages in the cached prefix.
    let text = renderer.render(&instructions.fragments)?;
    if !text.is_empty() {
        contributions.push(Contribution::system("fragments", text));
    }
    Ok(contributions)
}

/// Gathers what is said beside the history of the path to `at` with `pending` behind it, as for a call of the default target
/// without options of its own. Without a place the path is empty.
pub(crate) async fn contributions_at(
    chat: &Conversation,
    at: Option<PathEnd>,
    pending: Vec<PathItem>,
) -> Result<Vec<Contribution>, EngineError> {
    let model = default_model(chat)?;
    let options = CompileOptions::default();
    // Only layers look at the path and at all of its state; without them neither is read.
    let layered = !chat.layers().is_empty();
    let prefix = if layered { "" } else { INSTRUCTIONS_PREFIX };
    let state = match &at {
        Some(at) => load_state(chat, at.clone(), prefix).await?,
        None => NodeState::default(),
    };
    let mut contributions = own_contributions(chat, &state, &options, &model.capabilities)?;
    if !layered {
        return Ok(contributions);
    }
    let (standing, mut items) = match at {
        Some(at) => {
            let path = read_full_path(chat, at).await?;
            (SessionPosition::from_path(&path), path.items.clone())
        }
        None => (
            SessionPosition::from_path(&StoredPath::default()),
            GrowingPath::default(),
        ),
    };
    items.extend(pending);
    let session = load_session(chat, standing, &state, None).await?;
    let reader = RecallReader {
        capabilities: &model.capabilities,
        window: model.context_window,
        policy: HistoryPolicy::default(),
    };
    let recalled = recall_layers(chat, &session, &items, reader).await?;
    contributions.extend(recalled.contributions);
    Ok(contributions)
}

/// The model of the default target; without one a model of which nothing is known.
fn default_model(chat: &Conversation) -> Result<ModelSpec, EngineError> {
    match resolve_target(chat.engine(), TargetChoice::Default) {
        Ok(target) => {
            let spec = target.model_spec(chat.engine().catalogue())?;
            Ok(spec.into_owned())
        }
        Err(EngineError::NoTarget { .. }) => Ok(ModelSpec::new("", u64::MAX, Encoding::Other)),
        Err(error) => Err(error),
    }
}
