//! Staged entries: fragments encoded, "the last assistant message" put in its place, one message of each id.

use std::collections::BTreeMap;

use contexture_ir::{Body, Fragment, Item, UiMessage, UiRole, text_part};
use contexture_store::{PathEnd, ReadRequest};

use crate::error::EngineError;
use crate::handle::{Conversation, load_path};

/// How far back an output looks for the call it answers.
pub(crate) const ANSWER_WINDOW: u64 = 512;

/// One entry of a draft.
#[derive(Clone, Debug)]
pub(crate) struct StagedEntry {
    /// Its place among all that was pushed, from which ids derive. What is left out or merged leaves the others theirs.
    pub(crate) index: usize,
    pub(crate) content: StagedContent,
}

#[derive(Clone, Debug)]
pub(crate) enum StagedContent {
    Message(UiMessage),
    Item(Item),
    LastAssistant(String),
}

impl StagedEntry {
    /// A message fragment as an entry.
    pub(crate) fn from_fragment(index: usize, fragment: &Fragment) -> Result<Self, EngineError> {
        let content = match &fragment.body {
            Body::LastAssistant(text) => StagedContent::LastAssistant(text.clone()),
            _ => StagedContent::Message(encode_message(fragment)?),
        };
        Ok(Self { index, content })
    }

    pub(crate) fn from_item(index: usize, item: &Item) -> Self {
        Self {
            index,
            content: StagedContent::Item(item.clone()),
        }
    }
}

fn encode_message(fragment: &Fragment) -> Result<UiMessage, EngineError> {
    match fragment.encode_message() {
        Some(Ok(message)) => Ok(message),
        Some(Err(source)) => Err(EngineError::Codec {
            name: fragment.name.clone(),
            source,
        }),
        None => Err(EngineError::NotAMessage {
            name: fragment.name.clone(),
        }),
    }
}

/// Puts a staged "last assistant message" in its place: the newest staged assistant message, else the newest one on the
/// path that ends at `at`, else a message of its own.
pub(crate) async fn replace_last_assistant(
    chat: &Conversation,
    at: &PathEnd,
    staged: &mut Vec<StagedEntry>,
) -> Result<(), EngineError> {
    let mut place = 0;
    while let Some(entry) = staged.get(place) {
        let StagedContent::LastAssistant(text) = &entry.content else {
            place += 1;
            continue;
        };
        let parts = vec![text_part(text)];
        // A staged message is newer than any stored one.
        let earlier = staged.iter().take(place).rposition(|entry| {
            matches!(&entry.content, StagedContent::Message(message) if message.role == UiRole::Assistant)
        });
        if let Some(entry) = earlier.and_then(|at| staged.get_mut(at))
            && let StagedContent::Message(message) = &mut entry.content
        {
            message.parts = parts;
            staged.remove(place);
            continue;
        }
        // With the id of the stored message the commit treats it as an edit of that message.
        let id = last_assistant_id(chat, at).await?.unwrap_or_default();
        if let Some(entry) = staged.get_mut(place) {
            entry.content = StagedContent::Message(UiMessage {
                id,
                parts,
                ..UiMessage::text(UiRole::Assistant, "")
            });
        }
        place += 1;
    }
    Ok(())
}

/// Leaves one message of each id: the last that was pushed, in the place of the first. So a message that is pushed again
/// and again while it grows is stored once.
///
/// # Errors
/// [`EngineError::OtherRole`]: one id cannot be the words of two.
pub(crate) fn merge_equal_ids(staged: Vec<StagedEntry>) -> Result<Vec<StagedEntry>, EngineError> {
    let mut merged: Vec<StagedEntry> = Vec::with_capacity(staged.len());
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for entry in staged {
        let message = match entry.content {
            // A message without an id is new by definition.
            StagedContent::Message(message) if !message.id.is_empty() => message,
            content => {
                merged.push(StagedEntry { content, ..entry });
                continue;
            }
        };
        let place = *places.entry(message.id.clone()).or_insert(merged.len());
        match merged.get_mut(place).map(|entry| &mut entry.content) {
            Some(StagedContent::Message(first)) if first.role == message.role => *first = message,
            Some(StagedContent::Message(first)) => {
                return Err(EngineError::OtherRole {
                    message: message.id,
                    role: first.role,
                    other: message.role,
                });
            }
            _ => merged.push(StagedEntry {
                index: entry.index,
                content: StagedContent::Message(message),
            }),
        }
    }
    Ok(merged)
}

/// The id of the newest assistant message on the path to `at`.
async fn last_assistant_id(
    chat: &Conversation,
    at: &PathEnd,
) -> Result<Option<String>, EngineError> {
    let mut at = at.clone();
    loop {
        let path = load_path(chat, ReadRequest::last_nodes(at, ANSWER_WINDOW)).await?;
        let found = path
            .nodes
            .iter()
            .zip(&path.items)
            .rev()
            .find(|(_, one)| one.item.is_model_output());
        if let Some((node, _)) = found {
            return Ok(Some(node.effective_message_id().to_string()));
        }
        match path.nodes.first().and_then(|node| node.parent) {
            Some(parent) => at = PathEnd::Node(parent),
            None => return Ok(None),
        }
    }
}
