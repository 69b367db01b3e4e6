//! Edits the stream of several rounds into one that is valid for the client: events of server tools are dropped, the rest is
//! renumbered, and only the last round ends it. Events that need no change stay byte for byte.
//!
//! Each format has its own rules (`ProxyEdits` of its specification). Not here: whether there is another round (`tool_loop`).

use bytes::{Bytes, BytesMut};
use contexture::Format;
use contexture::wire::proxy::{EventAction, StreamEdits};
use contexture::wire::{Frame, FrameReader};
use serde_json::Value;

use crate::proxy::server_tools::tools::ServerTools;

/// The editor of the events of one answer.
#[derive(Debug)]
pub(crate) struct StreamEditor {
    edits: Box<dyn StreamEdits>,
    /// Writes frames that were edited.
    framing: Box<dyn FrameReader>,
    server_tools: ServerTools,
    held_events: Vec<(Frame, Value)>,
}

impl StreamEditor {
    /// Creates an editor; `None` for a format without streams.
    pub(crate) fn new(format: Format, server_tools: &ServerTools) -> Option<Self> {
        let spec = format.spec();
        Some(Self {
            edits: spec.proxy()?.stream_edits(),
            framing: spec.frame_reader(),
            server_tools: server_tools.clone(),
            held_events: Vec::new(),
        })
    }

    /// Returns what the client gets of an event.
    pub(crate) fn edit_event(&mut self, event: Frame) -> Bytes {
        let data = event.data.as_deref().unwrap_or_default();
        let original = serde_json::from_str::<Value>(data).ok();
        let Some(original) = original.filter(Value::is_object) else {
            // Comments, `[DONE]`, unknown data: passed on, but never ahead of an end that is held.
            return match data.is_empty() || self.held_events.is_empty() {
                true => event.raw.into(),
                false => {
                    self.held_events.push((event, Value::Null));
                    Bytes::new()
                }
            };
        };
        let mut data = original.clone();
        let is_own = |name: &Value| {
            let name = name.as_str();
            name.is_some_and(|name| self.server_tools.find_by_name(name).is_some())
        };
        match self.edits.edit_event(&mut data, &is_own) {
            // Compared as values: writing the JSON anew would change its spelling though nothing
            // was edited.
            EventAction::Show if data == original => event.raw.into(),
            EventAction::Show => self.write_event(&event, &data),
            EventAction::Drop => Bytes::new(),
            EventAction::Hold => {
                self.held_events.push((event, data));
                Bytes::new()
            }
        }
    }

    /// Ends a round that another one follows, and returns what of its end is the client's.
    pub(crate) fn begin_next_round(&mut self) -> Bytes {
        let mut shown = BytesMut::new();
        for (event, mut data) in std::mem::take(&mut self.held_events) {
            if self.edits.strip_end(&mut data) {
                shown.extend_from_slice(&self.write_event(&event, &data));
            }
        }
        self.edits.begin_next_round();
        shown.freeze()
    }

    /// Ends the answer, and returns its end: as it came, or of the merged answer where the client saw more or less.
    pub(crate) fn finish_stream(&mut self, merged: Option<&Value>) -> Bytes {
        let mut shown = BytesMut::new();
        for (event, mut data) in std::mem::take(&mut self.held_events) {
            // Also without a merged answer: where events are numbered, the last ones must go on counting.
            if !data.is_null() {
                self.edits.rewrite_end(&mut data, merged);
            }
            let original = event.data.as_deref().unwrap_or_default();
            // Rewriting may have changed nothing: then the original bytes go out.
            let is_same = serde_json::from_str(original).is_ok_and(|came: Value| came == data);
            match data.is_null() || is_same {
                true => shown.extend_from_slice(&event.raw),
                false => shown.extend_from_slice(&self.write_event(&event, &data)),
            }
        }
        shown.freeze()
    }

    fn write_event(&self, event: &Frame, data: &Value) -> Bytes {
        self.framing.with_data(event, &data.to_string()).into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::proxy::server_tools::tools::ServerTool;

    /// What a client gets of these events, those of each round behind one another, and of the end.
    fn check(format: Format, rounds: &[&[Value]], whole: Option<&Value>, expected: &[Value]) {
        let own = ServerTools::default().with_tool(ServerTool::ReadContext);
        let mut sieve = StreamEditor::new(format, &own).unwrap();
        let mut shown = BytesMut::new();
        for (number, round) in rounds.iter().enumerate() {
            if number > 0 {
                shown.extend_from_slice(&sieve.begin_next_round());
            }
            let mut events = format.spec().frame_reader();
            for event in *round {
                let framed = events.with_data(&Frame::default(), &event.to_string());
                events.push(&framed);
            }
            while let Some(event) = events.next_frame().unwrap() {
                shown.extend_from_slice(&sieve.edit_event(event));
            }
        }
        shown.extend_from_slice(&sieve.finish_stream(whole));
        let frames = format.spec().frame_reader();
        let frame = |event: &Value| frames.with_data(&Frame::default(), &event.to_string());
        let expected: Vec<u8> = expected.iter().flat_map(frame).collect();
        assert_eq!(
            String::from_utf8_lossy(&shown),
            String::from_utf8_lossy(&expected)
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
    fn gemini_streamed_server_call_is_dropped_completely() {
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
