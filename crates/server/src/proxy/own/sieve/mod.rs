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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proxy::own::events::Events;
    use crate::proxy::own::tools::OwnTool;

    /// What a client gets of these events, those of each round behind one another, and of the end.
    fn check(format: Format, rounds: &[&[Value]], whole: Option<&Value>, expected: &[Value]) {
        let own = OwnTools::default().with(OwnTool::ReadContext);
        let mut sieve = Sieve::new(format, &own).unwrap();
        let mut shown = BytesMut::new();
        for (number, round) in rounds.iter().enumerate() {
            if number > 0 {
                shown.extend_from_slice(&sieve.again());
            }
            let mut events = Events::default();
            for event in *round {
                events.push(format!("data: {event}\n\n").as_bytes());
            }
            while let Some(event) = events.next() {
                shown.extend_from_slice(&sieve.push(event));
            }
        }
        shown.extend_from_slice(&sieve.end(whole));
        let expected = expected.iter().map(|event| format!("data: {event}\n\n"));
        assert_eq!(
            String::from_utf8_lossy(&shown),
            expected.collect::<String>()
        );
    }

    #[test]
    fn calls_of_hosts_that_give_them_no_index_or_one_for_all() {
        let call = |index: Option<u64>, id: &str, name: &str| {
            let mut call = json!({"id": id, "function": {"name": name, "arguments": "{}"}});
            if let Some(index) = index {
                call["index"] = index.into();
            }
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        };
        let more = |index: Option<u64>| {
            let mut call = json!({"function": {"arguments": " "}});
            if let Some(index) = index {
                call["index"] = index.into();
            }
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        };
        for index in [None, Some(0)] {
            check(
                Format::OpenAiChat,
                &[&[
                    call(index, "a", "ls"),
                    more(index),
                    call(index, "b", "read_context"),
                    more(index),
                    call(index, "c", "rm"),
                    more(index),
                ]],
                None,
                &[
                    call(index, "a", "ls"),
                    more(index),
                    call(index.map(|_| 1), "c", "rm"),
                    more(index.map(|_| 1)),
                ],
            );
        }
    }

    #[test]
    fn a_last_chunk_with_words_shows_them_and_no_end() {
        let chunk = |text: &str, finish: Value| json!({"id": "x", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]});
        let whole = json!({"choices": [{"finish_reason": "stop"}]});
        check(
            Format::OpenAiChat,
            &[
                &[chunk("one", json!("tool_calls"))],
                &[chunk("two", json!("stop"))],
            ],
            Some(&whole),
            &[chunk("one", Value::Null), chunk("two", json!("stop"))],
        );
        let part = |parts: Value, finish: Option<&str>| {
            let mut candidate = json!({"content": {"parts": parts}});
            if let Some(finish) = finish {
                candidate["finishReason"] = finish.into();
            }
            json!({"candidates": [candidate]})
        };
        let call = json!({"functionCall": {"name": "read_context", "args": {}}});
        let text = json!({"text": "one"});
        let whole = json!({"candidates": [{"finishReason": "STOP"}]});
        check(
            Format::Gemini,
            &[
                &[part(json!([text, call]), Some("STOP"))],
                &[part(json!([{"text": "two"}]), Some("STOP"))],
            ],
            Some(&whole),
            &[
                part(json!([text]), None),
                part(json!([{"text": "two"}]), Some("STOP")),
            ],
        );
    }

    #[test]
    fn a_call_that_grows_argument_by_argument_is_held_back_to_its_end() {
        let part = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
        let growing = |name: Option<&str>, goes_on: bool| {
            let mut call = json!({"partialArgs": [{"jsonPath": "$.query", "stringValue": "x"}], "willContinue": goes_on});
            if let Some(name) = name {
                call["name"] = name.into();
            }
            part(json!({"functionCall": call}))
        };
        check(
            Format::Gemini,
            &[&[
                growing(Some("read_context"), true),
                growing(None, true),
                growing(None, false),
                growing(Some("ls"), true),
                growing(None, false),
            ]],
            None,
            &[growing(Some("ls"), true), growing(None, false)],
        );
    }

    #[test]
    fn what_is_no_object_or_none_of_ours_passes() {
        let odd = [
            json!([1]),
            json!("x"),
            json!({"type": "unheard_of", "index": "a"}),
        ];
        for format in Format::PROVIDERS {
            check(format, &[&odd], None, &odd);
        }
    }
}
