//! A stream of several rounds as one that is legal for the client: the events of our calls are held back, the rest is
//! numbered anew, and only the last round ends it. What need not change stays byte for byte.
//!
//! What the events of a format mean for that is each format's own. Not here: whether there is another round.

mod anthropic;
mod chat;
mod fate;
mod gemini;
mod responses;

use bytes::{Bytes, BytesMut};
use contexture::Format;
use serde_json::Value;

use fate::Fate;

use crate::proxy::own::events::Event;
use crate::proxy::own::tools::OwnTools;

/// The events of an answer on their way to the client.
#[derive(Debug)]
pub(crate) struct Sieve {
    shape: Shape,
    own: OwnTools,
    held: Vec<(Event, Value)>,
}

#[derive(Debug)]
enum Shape {
    Anthropic(anthropic::Blocks),
    Chat(chat::Chunks),
    Gemini(gemini::Parts),
    Responses(responses::Items),
}

impl Sieve {
    /// `None` for a format without streams.
    pub(crate) fn new(format: Format, own: &OwnTools) -> Option<Self> {
        let shape = match format {
            Format::Anthropic => Shape::Anthropic(Default::default()),
            Format::OpenAiChat => Shape::Chat(Default::default()),
            Format::Gemini => Shape::Gemini(Default::default()),
            Format::OpenAiResponses => Shape::Responses(Default::default()),
            Format::Ui | Format::Items => return None,
        };
        Some(Self {
            shape,
            own: own.clone(),
            held: Vec::new(),
        })
    }

    /// What the client gets of an event.
    pub(crate) fn push(&mut self, event: Event) -> Bytes {
        let came = serde_json::from_str::<Value>(&event.data).ok();
        let Some(came) = came.filter(Value::is_object) else {
            // Comments, `[DONE]`, what is none of ours: it stays behind what is held.
            return match event.data.is_empty() || self.held.is_empty() {
                true => event.raw,
                false => {
                    self.held.push((event, Value::Null));
                    Bytes::new()
                }
            };
        };
        let mut data = came.clone();
        let is_own = |name: &Value| {
            let name = name.as_str();
            name.is_some_and(|name| self.own.named(name).is_some())
        };
        let fate = match &mut self.shape {
            Shape::Anthropic(blocks) => blocks.fate(&mut data, &is_own),
            Shape::Chat(chunks) => chunks.fate(&mut data, &is_own),
            Shape::Gemini(parts) => parts.fate(&mut data, &is_own),
            Shape::Responses(items) => items.fate(&mut data, &is_own),
        };
        match fate {
            Fate::Show if data == came => event.raw,
            Fate::Show => event.with(&data),
            Fate::Drop => Bytes::new(),
            Fate::Hold => {
                self.held.push((event, data));
                Bytes::new()
            }
        }
    }

    /// The round is over, and the next goes on with the answer: what of its end is the client's.
    pub(crate) fn again(&mut self) -> Bytes {
        let mut shown = BytesMut::new();
        for (event, mut data) in std::mem::take(&mut self.held) {
            let says_more = match &mut self.shape {
                Shape::Anthropic(_) | Shape::Responses(_) => false,
                Shape::Chat(_) => chat::unended(&mut data),
                Shape::Gemini(_) => gemini::unended(&mut data),
            };
            if says_more {
                shown.extend_from_slice(&event.with(&data));
            }
        }
        match &mut self.shape {
            Shape::Anthropic(blocks) => blocks.again(),
            Shape::Chat(chunks) => chunks.again(),
            Shape::Gemini(parts) => parts.again(),
            Shape::Responses(items) => items.again(),
        }
        shown.freeze()
    }

    /// The answer is over: its end, as it came or, where that is not what the client saw, that of the whole answer.
    pub(crate) fn end(&mut self, whole: Option<&Value>) -> Bytes {
        let mut shown = BytesMut::new();
        for (event, came) in std::mem::take(&mut self.held) {
            let mut data = came.clone();
            match (&mut self.shape, whole) {
                (_, _) if data.is_null() => {}
                (Shape::Responses(items), whole) => items.end(&mut data, whole),
                (Shape::Anthropic(_), Some(whole)) => anthropic::end(&mut data, whole),
                (Shape::Chat(_), Some(whole)) => chat::end(&mut data, whole),
                (Shape::Gemini(_), Some(whole)) => gemini::end(&mut data, whole),
                (_, None) => {}
            }
            // What was held is as it came but for what was taken out of it.
            let is_same = serde_json::from_str(&event.data).is_ok_and(|came: Value| came == data);
            match data.is_null() || is_same {
                true => shown.extend_from_slice(&event.raw),
                false => shown.extend_from_slice(&event.with(&data)),
            }
        }
        shown.freeze()
    }
}
