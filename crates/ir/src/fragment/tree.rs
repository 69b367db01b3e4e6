//! The tree: fragments, their data, and messages that an application defines.
//!
//! The types refer to each other, so they stand together. Not here: conversions (`convert`, `json`) and
//! builders (`rule_builders`, `example_builders`, `message_builders`).

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Number;

use crate::raw::Raw;
use crate::ui_message::UiMessage;

/// The deepest tree that is parsed, converted or rendered. Each array, object and fragment is one
/// level; a lone value is level 0.
pub const MAX_DEPTH: usize = 128;

/// A named tree of data, or a message in the form of one.
#[derive(Clone, Debug)]
pub struct Fragment {
    /// The application's own id; for a message, the message's id.
    pub id: Option<String>,
    /// The name, shown by renderers: `hint` becomes `<hint>…</hint>`.
    pub name: String,
    /// What it says.
    pub body: Body,
    /// Whatever the application attached. Never rendered.
    pub metadata: Option<Raw>,
    /// Whether a save stores it. `false`: it takes part in what the model sees now, and in nothing
    /// later.
    pub persist: bool,
}

/// What a fragment says.
#[derive(Clone, Debug)]
pub enum Body {
    /// Data for a renderer.
    Data(FragmentData),
    /// A message for the history.
    Message(Arc<dyn Codec>),
    /// A text that replaces the newest assistant message, or is appended where there is none.
    LastAssistant(String),
}

/// One value inside a fragment. Objects keep the order in which their keys were given.
#[derive(Clone, Debug, PartialEq)]
pub enum FragmentData {
    /// Nothing. Renderers leave it out, JSON and YAML excepted.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number: an integer of up to 64 bits, exact, or a finite float.
    // `serde_json::Number` and not `f64`: ids of 19 digits must come out as they went in.
    Number(Number),
    /// A plain text.
    Text(String),
    /// Values in order.
    Array(Vec<FragmentData>),
    /// Named values in order.
    Object(IndexMap<String, FragmentData>),
    /// A fragment inside a fragment.
    Fragment(Box<Fragment>),
}

/// A message as an application defines it, in both of the forms that others need.
///
/// [`UiMessage`] is one. Implement it for a type of your own to keep that type in the fragment and
/// still resolve, save and show it.
pub trait Codec: fmt::Debug + Send + Sync {
    /// The message as resolve returns and save stores it. The fragment's id, where it has one,
    /// takes the place of the message's.
    fn encode(&self) -> Result<UiMessage, CodecError>;

    /// The message as data, shown by renderers where it stands inside another fragment.
    fn decode(&self) -> FragmentData;
}

/// An application's message that could not be encoded.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode the message: {reason}")]
#[non_exhaustive]
pub struct CodecError {
    /// What was wrong.
    pub reason: String,
}

impl CodecError {
    /// An error with this reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl Fragment {
    /// A fragment of data. [`fragment`](super::fragment) is the form for several children.
    #[must_use]
    pub fn new(name: impl Into<String>, data: impl Into<FragmentData>) -> Self {
        Self::from_body(name, Body::Data(data.into()))
    }

    /// A fragment that carries an application's own kind of message.
    #[must_use]
    pub fn from_codec(name: impl Into<String>, codec: impl Codec + 'static) -> Self {
        Self::from_body(name, Body::Message(Arc::new(codec)))
    }

    pub(super) fn from_body(name: impl Into<String>, body: Body) -> Self {
        Self {
            id: None,
            name: name.into(),
            body,
            metadata: None,
            persist: true,
        }
    }

    /// The same fragment under an id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The same fragment with something attached.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Raw) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// The same fragment, not stored by a save: [`Fragment::persist`] is `false`.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.persist = false;
        self
    }

    /// Whether it belongs to the history and not to the rendered text.
    #[must_use]
    pub fn is_message(&self) -> bool {
        !matches!(self.body, Body::Data(_))
    }

    /// Whether it replaces the newest assistant message.
    #[must_use]
    pub fn is_last_assistant(&self) -> bool {
        matches!(self.body, Body::LastAssistant(_))
    }

    /// The data, unless the fragment carries a message.
    #[must_use]
    pub fn data(&self) -> Option<&FragmentData> {
        match &self.body {
            Body::Data(data) => Some(data),
            _ => None,
        }
    }

    /// The message, if the fragment carries one, under the fragment's id where it has one. A
    /// replacement of the last assistant message has no message of its own yet: `None`.
    pub fn encode_message(&self) -> Option<Result<UiMessage, CodecError>> {
        let Body::Message(codec) = &self.body else {
            return None;
        };
        Some(codec.encode().map(|message| match &self.id {
            Some(id) => UiMessage {
                // The fragment's id wins: a caller who set one with `with_id` means this message.
                id: id.clone(),
                ..message
            },
            None => message,
        }))
    }

    /// Whether the tree has more than `limit` levels. Looks no further than that.
    #[must_use]
    pub fn is_deeper_than(&self, limit: usize) -> bool {
        self.data().is_some_and(|data| data.is_deeper_than(limit))
    }
}

impl FragmentData {
    /// Whether it is a fragment.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        matches!(self, Self::Fragment(_))
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Whether it is a text, a number or a truth value.
    #[must_use]
    pub fn is_primitive(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Number(_) | Self::Bool(_))
    }

    /// Whether it is nothing, or a fragment of nothing: what most renderers leave out.
    #[must_use]
    pub fn is_null(&self) -> bool {
        // A loop and not a recursion: a chain of fragments may be deeper than the stack allows.
        let mut data = self;
        loop {
            match data {
                Self::Null => return true,
                Self::Fragment(inner) => match &inner.body {
                    Body::Data(deeper) => data = deeper,
                    _ => return false,
                },
                _ => return false,
            }
        }
    }

    /// Whether the tree has more than `limit` levels. Looks no further than that.
    #[must_use]
    pub fn is_deeper_than(&self, limit: usize) -> bool {
        // At limit 0 only a leaf fits, so nothing needs to be descended into.
        let Some(below) = limit.checked_sub(1) else {
            return !self.is_leaf();
        };
        match self {
            Self::Array(items) => items.iter().any(|item| item.is_deeper_than(below)),
            Self::Object(entries) => entries.values().any(|item| item.is_deeper_than(below)),
            Self::Fragment(inner) => inner.is_deeper_than(below),
            _ => false,
        }
    }

    fn is_leaf(&self) -> bool {
        self.is_primitive() || matches!(self, Self::Null)
    }
}

/// Two messages are equal if they are the same object or encode to equal messages.
impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Data(a), Self::Data(b)) => a == b,
            (Self::LastAssistant(a), Self::LastAssistant(b)) => a == b,
            (Self::Message(a), Self::Message(b)) => {
                // Comparing encodings costs an allocation, so the pointers are tried first; clones of a
                // fragment share them.
                Arc::ptr_eq(a, b) || matches!((a.encode(), b.encode()), (Ok(a), Ok(b)) if a == b)
            }
            _ => false,
        }
    }
}

impl PartialEq for Fragment {
    fn eq(&self, other: &Self) -> bool {
        // Written out because `Body` compares messages by what they encode to, which cannot be derived.
        self.id == other.id
            && self.name == other.name
            && self.persist == other.persist
            && self.metadata == other.metadata
            && self.body == other.body
    }
}
