//! The AI SDK's UI message: what user interfaces hold, and what `resolve` returns.
//!
//! A view, never stored: parts stay JSON text, so a part of an unknown type survives. Not here: reading and
//! checking parts, and folding items into messages (`contexture-wire`).

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::error::Error;
use crate::raw::{Extra, Fields, Raw, quote_json};

/// Who a UI message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UiRole {
    /// Instructions to the model.
    System,
    /// The person who uses the interface.
    User,
    /// The model's side.
    Assistant,
}

impl UiRole {
    /// All roles of messages.
    pub const ALL: [Self; 3] = [Self::System, Self::User, Self::Assistant];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// Reads the word on the wire.
    #[must_use]
    pub fn from_wire(word: &str) -> Option<Self> {
        Some(match word {
            "system" => Self::System,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            _ => return None,
        })
    }
}

/// One message of the AI SDK, with its parts as JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UiMessage {
    /// The client's id. Empty: one is assigned when the message is stored.
    pub id: String,
    /// Who it is from.
    pub role: UiRole,
    /// Whatever the application attached.
    pub metadata: Option<Raw>,
    /// The parts, JSON objects with a `type`.
    pub parts: Vec<Raw>,
    /// Fields that the AI SDK does not know, in order.
    pub extra: Extra,
}

impl UiMessage {
    /// A message of one text part, without an id.
    #[must_use]
    pub fn text(role: UiRole, text: &str) -> Self {
        Self {
            id: String::new(),
            role,
            metadata: None,
            parts: vec![text_part(text)],
            extra: Extra::new(),
        }
    }

    /// Reads a message. Unknown fields stay, of the message and of its parts.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut fields = Fields::parse(text)?;
        let id = fields.take_string(&["id"])?.unwrap_or_default();
        let word = fields.need_string(&["role"])?;
        let role = UiRole::from_wire(&word).ok_or_else(|| {
            Error::unexpected_value("`system`, `user` or `assistant`", &word).at_segment("role")
        })?;
        // `null` stays: the SDK tells it from no metadata.
        let metadata = fields.take_field(&["metadata"])?.map(Raw::from);
        // Parts are required even if empty. A message without them is of an older SDK, and reading it would
        // lose its content.
        let parts = fields
            .take_as::<Vec<Raw>>(&["parts"], "an array of parts")?
            .ok_or(Error::Missing {
                path: String::new(),
                field: "parts",
            })?;
        Ok(Self {
            id,
            role,
            metadata,
            parts,
            extra: fields.into_extra(),
        })
    }

    /// The texts of the text parts, joined.
    #[must_use]
    pub fn joined_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(Raw::fields)
            // Compared as raw text: the word has no escapes, and nothing needs to be allocated for parts that
            // are passed over.
            .filter(|part| part.get(&["type"]).is_some_and(|t| t.get() == "\"text\""))
            .filter_map(|part| serde_json::from_str::<String>(part.get(&["text"])?.get()).ok())
            .collect()
    }
}

/// A text part.
#[must_use]
pub fn text_part(text: &str) -> Raw {
    Raw::parse(format!(r#"{{"type":"text","text":{}}}"#, quote_json(text)))
        .unwrap_or_else(|_| Raw::null())
}

impl Serialize for UiMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("role", self.role.as_str())?;
        // Metadata is left out when absent, since the SDK distinguishes `undefined` from `null`.
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        map.serialize_entry("parts", &self.parts)?;
        self.extra.write_members(&mut map)?;
        map.end()
    }
}
