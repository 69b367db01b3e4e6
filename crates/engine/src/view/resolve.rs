//! Resolving: the system prompt and the messages, as an AI SDK program takes them.

use contexture_ir::UiMessage;
use contexture_render::{RenderError, Renderer};

use super::messages::{MessageView, fold_messages};
use crate::error::EngineError;
use crate::handle::{Conversation, instructions_at_position};
use crate::state::Instructions;

/// What a model sees, as text and messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The fragments, rendered; preceded by the leading messages of an imported history.
    pub system_prompt: String,
    /// The messages, validated.
    pub messages: Vec<UiMessage>,
}

/// Resolves the branch to the system prompt and the stored messages.
pub(crate) async fn resolve_conversation(
    chat: &Conversation,
    renderer: &dyn Renderer,
) -> Result<Resolved, EngineError> {
    let (head, messages) = fold_messages(chat, MessageView::Model).await?;
    let instructions = instructions_at_position(chat, head).await?;
    Ok(Resolved {
        system_prompt: system_prompt(&instructions, renderer)?,
        messages,
    })
}

/// Loads the stored messages of this branch as this reader sees them.
pub(crate) async fn load_messages(
    chat: &Conversation,
    audience: MessageView,
) -> Result<Vec<UiMessage>, EngineError> {
    Ok(fold_messages(chat, audience).await?.1)
}

/// Leading messages' texts, then the rendered fragments, a blank line between.
pub(crate) fn system_prompt(
    instructions: &Instructions,
    renderer: &dyn Renderer,
) -> Result<String, RenderError> {
    let mut texts: Vec<String> = instructions
        .messages
        .iter()
        .map(|message| contexture_ir::Item::from(message.clone()).text())
        .filter(|text| !text.is_empty())
        .collect();
    let rendered = renderer.render(&instructions.fragments)?;
    if !rendered.is_empty() {
        texts.push(rendered);
    }
    Ok(texts.join("\n\n"))
}
