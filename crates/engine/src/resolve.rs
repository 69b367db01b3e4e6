//! Resolving: the system prompt and the messages, as an AI SDK program takes them.

use std::collections::BTreeMap;

use contexture_ir::UiMessage;
use contexture_render::{RenderError, Renderer};
use contexture_wire::ui::validate;

use crate::conversation::Conversation;
use crate::draft::Draft;
use crate::error::EngineError;
use crate::instructions::Instructions;
use crate::messages::MessageView;
use crate::save::StagedItem;

/// What a model sees, as text and messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The fragments, rendered; preceded by the leading messages of an imported history.
    pub system_prompt: String,
    /// The messages, validated.
    pub messages: Vec<UiMessage>,
}

impl Conversation {
    /// The system prompt and the stored messages.
    ///
    /// # Errors
    /// The renderer's, or the store's.
    pub async fn resolve(&self, renderer: &dyn Renderer) -> Result<Resolved, EngineError> {
        let (head, messages) = self.fold_messages(MessageView::Model).await?;
        let instructions = self.instructions_at_position(head).await?;
        Ok(Resolved {
            system_prompt: system_prompt(&instructions, renderer)?,
            messages,
        })
    }

    /// The stored messages of this branch.
    pub async fn messages(&self, audience: MessageView) -> Result<Vec<UiMessage>, EngineError> {
        Ok(self.fold_messages(audience).await?.1)
    }
}

impl Draft {
    /// The system prompt and the messages, as they would be after a commit. A staged message with the
    /// id of a stored one stands in its place, one without parts is left out. Ids are assigned at
    /// commit: until then a new message's id is empty.
    ///
    /// # Errors
    /// As [`Conversation::resolve`], and for what is staged as [`Draft::commit`].
    pub async fn resolve(&self, renderer: &dyn Renderer) -> Result<Resolved, EngineError> {
        let chat = self.chat();
        let (head, mut messages) = chat.fold_messages(MessageView::Model).await?;
        let instructions = chat.instructions_at_position(head).await?;
        let mut staged = self.staged_items(|_| true)?;
        chat.replace_last_assistant(&mut staged).await?;
        merge_staged_messages(&mut messages, staged)?;
        let system_prompt = system_prompt(&instructions, renderer)?;
        Ok(Resolved {
            system_prompt,
            messages,
        })
    }
}

/// Puts staged messages in the place of those with their id, or behind all others. What is stored is
/// valid by construction; what is staged is checked here.
fn merge_staged_messages(
    messages: &mut Vec<UiMessage>,
    staged: Vec<StagedItem>,
) -> Result<(), EngineError> {
    let places = messages.iter().enumerate();
    let mut places: BTreeMap<String, usize> = places
        .map(|(place, message)| (message.id.clone(), place))
        .collect();
    for staged in staged {
        let StagedItem::Message(message) = staged else {
            continue;
        };
        if message.parts.is_empty() {
            continue;
        }
        let checked = validate(std::slice::from_ref(&message))?;
        let known = places.get(&message.id).filter(|_| !message.id.is_empty());
        match known.and_then(|place| messages.get_mut(*place)) {
            Some(known) => *known = message,
            None => {
                places.insert(message.id, messages.len());
                messages.extend(checked);
            }
        }
    }
    Ok(())
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
