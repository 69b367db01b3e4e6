//! Builders of the fragments that carry messages.
//!
//! A message made here from a text has an empty id: whoever stores it assigns one, and
//! [`Fragment::with_id`] sets it beforehand.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::fragment::tree::{Body, Codec, CodecError, Fragment, FragmentData};
use crate::raw::Raw;
use crate::ui_message::{UiMessage, UiRole};

/// What a message is made of: its text, or all of it.
#[derive(Clone, Debug)]
pub enum MessageInput {
    /// A user's text.
    Text(String),
    /// A whole message.
    Message(UiMessage),
}

impl From<&str> for MessageInput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for MessageInput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<UiMessage> for MessageInput {
    fn from(message: UiMessage) -> Self {
        Self::Message(message)
    }
}

impl Codec for UiMessage {
    fn encode(&self) -> Result<UiMessage, CodecError> {
        Ok(self.clone())
    }

    /// The message as it is written in JSON; its text alone where that cannot be data.
    fn decode(&self) -> FragmentData {
        serde_json::to_value(self)
            // An application's message may hold numbers or nesting that data cannot; its text is better than
            // nothing.
            .ok()
            .and_then(|value| FragmentData::try_from(value).ok())
            .unwrap_or_else(|| FragmentData::Text(self.joined_text()))
    }
}

/// Builds a message of the person. A whole message becomes the person's, whatever its role was.
#[must_use]
pub fn user(content: impl Into<MessageInput>) -> Fragment {
    let message = match content.into() {
        MessageInput::Text(text) => UiMessage::text(UiRole::User, &text),
        MessageInput::Message(message) => UiMessage {
            role: UiRole::User,
            ..message
        },
    };
    message_fragment("user", message)
}

/// Builds a message of the model. Of reasoning parts that repeat one `providerMetadata.openai.itemId` the first
/// stays: the others are the same item, and the provider refuses it twice.
#[must_use]
pub fn assistant(message: UiMessage) -> Fragment {
    let mut seen = BTreeSet::new();
    let mut message = message;
    message
        .parts
        // `insert` is false for an id that was there already; parts that are no OpenAI reasoning always stay.
        .retain(|part| reasoning_item(part).is_none_or(|id| seen.insert(id)));
    message_fragment("assistant", message)
}

/// Builds a message of the model from a text.
#[must_use]
pub fn assistant_text(text: impl AsRef<str>) -> Fragment {
    message_fragment(
        "assistant",
        UiMessage::text(UiRole::Assistant, text.as_ref()),
    )
}

/// Builds a message of any role, which becomes the fragment's name; a text is the person's.
#[must_use]
pub fn message(content: impl Into<MessageInput>) -> Fragment {
    let message = match content.into() {
        MessageInput::Text(text) => UiMessage::text(UiRole::User, &text),
        MessageInput::Message(message) => message,
    };
    message_fragment(message.role.as_str(), message)
}

/// Turns a fragment into one that carries a message: itself if it carries one already, else a message of its
/// data, a text as it is and other data as JSON.
#[must_use]
pub fn to_message_fragment(fragment: Fragment) -> Fragment {
    match &fragment.body {
        Body::Data(FragmentData::Text(text)) => message(text.as_str()),
        Body::Data(data) => match data.to_json() {
            Ok(value) => message(value.to_string()),
            // There is no text to make a message of; the fragment stays as it is.
            Err(_) => fragment,
        },
        _ => fragment,
    }
}

/// Builds a text that replaces the newest assistant message: a pending one in place, a stored one on a new
/// branch. Where there is none, the text is appended.
#[must_use]
pub fn last_assistant_message(text: impl Into<String>) -> Fragment {
    Fragment::from_body("assistant", Body::LastAssistant(text.into()))
}

fn message_fragment(name: &str, message: UiMessage) -> Fragment {
    // An empty id means "to be assigned": a fragment must not carry it as if it were one.
    let id = Some(message.id.clone()).filter(|id| !id.is_empty());
    Fragment {
        id,
        ..Fragment::from_body(name, Body::Message(Arc::new(message)))
    }
}

/// The OpenAI item that a reasoning part is a piece of.
fn reasoning_item(part: &Raw) -> Option<String> {
    let part: Value = part.parse_as().ok()?;
    if part.get("type")? != "reasoning" {
        return None;
    }
    Some(
        part.pointer("/providerMetadata/openai/itemId")?
            .as_str()?
            .to_owned(),
    )
}
