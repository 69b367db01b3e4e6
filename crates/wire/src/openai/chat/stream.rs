//! Streamed answers: chunks whose choices carry differences of a message.
//!
//! Hosts differ: some repeat an id or a name with every chunk, leave out a call's `index` or give every call
//! the same, send a first chunk without choices, end without `[DONE]`. `obfuscation` is padding and is left out.

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};
use serde_json::value::RawValue;

use super::response;
use crate::model::json::{as_object, json_array, string_field, string_value};
use crate::model::json_builder::JsonBuilder;
use crate::stream::{
    ParsedEvent, PieceKind, StreamEvent, StreamParser, index_field, parse_failure,
};
use crate::truncation::{self, INCOMPLETE, MARK};

/// The members thoughts come in.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];
/// What a call's tool is given: a function's arguments, or a custom tool's input.
const GIVEN: [(&str, &str); 2] = [("function", "arguments"), ("custom", "input")];

/// An answer being streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChatStream {
    head: JsonBuilder,
    choices: BTreeMap<u64, StreamedChoice>,
    started: bool,
    done: bool,
}

#[derive(Clone, Debug, Default)]
struct StreamedChoice {
    fields: JsonBuilder,
    message: JsonBuilder,
    /// Elements of a `content` that is an array, text apart.
    content: Vec<String>,
    calls: Vec<StreamedCall>,
    /// The newest call of an index.
    newest: BTreeMap<u64, usize>,
    pieces: PieceTracker,
}

#[derive(Clone, Debug, Default)]
struct StreamedCall {
    fields: JsonBuilder,
    piece: usize,
}

/// The pieces of the first choice that were reported so far.
#[derive(Clone, Debug, Default)]
struct PieceTracker {
    next: usize,
    thoughts: Option<usize>,
    message: Option<usize>,
    /// The piece that grew last.
    open: Option<usize>,
}

impl StreamParser for ChatStream {
    fn push_event(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> ParsedEvent {
        let fields = Fields::parse(data).unwrap_or_default();
        // `null` says the same as no member.
        if let Some(error) = fields.get(&["error"]).filter(|error| error.get() != "null") {
            events.push(StreamEvent::Failed(parse_failure(error)));
            return ParsedEvent::Recognized;
        }
        let Some(choices) = fields.get(&["choices"]) else {
            return ParsedEvent::Ignored;
        };
        for (key, value) in fields.iter() {
            match key {
                // A chunk's `object` says that it is a chunk; the body gets the word of a whole
                // answer.
                "choices" | "obfuscation" | "object" => {}
                _ => self.head.set_unless_empty(key, value),
            }
        }
        let choices: Vec<&RawValue> = serde_json::from_str(choices.get()).unwrap_or_default();
        // Some hosts send a chunk without choices first, so the start waits for one with choices.
        if !self.started && !choices.is_empty() {
            self.started = true;
            events.push(StreamEvent::Started {
                id: self.head.get_string("id"),
                model: self.head.get_string("model"),
            });
        }
        for choice in choices {
            self.push_choice(choice, events);
        }
        // Where usage is asked for, every chunk but the last has `null` here.
        let usage = fields.get(&["usage"]).filter(|usage| usage.get() != "null");
        if let Some(Ok(usage)) = usage.map(|usage| response::parse_usage(usage.get())) {
            events.push(StreamEvent::Usage(usage));
        }
        ParsedEvent::Recognized
    }

    fn finish_stream(&mut self) {
        self.done = true;
    }

    fn is_complete(&self) -> bool {
        let finished =
            |choice: &StreamedChoice| choice.fields.get_string("finish_reason").is_some();
        self.done || (!self.choices.is_empty() && self.choices.values().all(finished))
    }

    fn response_body(&self) -> String {
        let mut body = self.head.clone();
        body.set_string("object", "chat.completion");
        let cut = !self.is_complete();
        let none = StreamedChoice::default();
        // A stream cut before its first choice still gives a body that can be lifted.
        let nothing = (cut && self.choices.is_empty()).then_some(&none);
        let choices = self.choices.values().chain(nothing);
        if let Ok(choices) = Raw::parse(json_array(choices.map(|choice| choice.to_json(cut)))) {
            body.set_raw("choices", choices);
        }
        body.to_json()
    }

    fn clone_boxed(&self) -> Box<dyn StreamParser> {
        Box::new(self.clone())
    }
}

impl ChatStream {
    fn push_choice(&mut self, choice: &RawValue, events: &mut Vec<StreamEvent>) {
        let Ok(fields) = Fields::parse(choice.get()) else {
            return;
        };
        let index = index_field(&fields, "index").unwrap_or(0);
        let mut silent = Vec::new();
        // Only the first answer is reported live; alternatives are collected for the body.
        let events = if index == 0 { events } else { &mut silent };
        let choice = self.choices.entry(index).or_default();
        // Some hosts end a stream with the whole message instead of a difference.
        if let Some(delta) = fields.get(&["delta"]).or(fields.get(&["message"])) {
            choice.push_delta(delta.get(), events);
        }
        for (key, value) in fields.iter() {
            match key {
                "delta" | "message" => {}
                // Its lists grow from event to event; other members of a choice are replaced.
                "logprobs" if value.get() != "null" => choice.fields.merge_delta(key, value),
                _ => choice.fields.set_unless_empty(key, value),
            }
        }
        if let Some(word) = string_field(&fields, "finish_reason") {
            // No event of its own ends a piece; the reason to finish ends the last one.
            choice.pieces.close_piece(events);
            let finish = Some(response::parse_finish_reason(&word));
            events.push(StreamEvent::Finished { finish });
        }
    }
}

impl StreamedChoice {
    fn push_delta(&mut self, delta: &str, events: &mut Vec<StreamEvent>) {
        let fields = Fields::parse(delta).unwrap_or_default();
        for (key, value) in fields.iter() {
            match key {
                "tool_calls" if value.get().starts_with('[') => {
                    let calls: Vec<&RawValue> =
                        serde_json::from_str(value.get()).unwrap_or_default();
                    calls
                        .into_iter()
                        .for_each(|call| self.push_call(call, events));
                }
                "content" if value.get().starts_with('[') => self.push_parts(value, events),
                _ => {
                    self.message.merge_delta(key, value);
                    // Empty texts often come with the role at the beginning and say nothing new.
                    if let Some(delta) = string_value(value).filter(|delta| !delta.is_empty()) {
                        self.pieces.emit_delta(key, delta, events);
                    }
                }
            }
        }
    }

    /// Some hosts send content as parts: texts grow together, others stand before them.
    fn push_parts(&mut self, value: &RawValue, events: &mut Vec<StreamEvent>) {
        let parts: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        for part in parts {
            let fields = Fields::parse(part.get()).unwrap_or_default();
            match string_field(&fields, "text") {
                Some(delta) if string_field(&fields, "type").as_deref() == Some("text") => {
                    self.message.append_text("content", &delta);
                    self.pieces.emit_delta("content", delta, events);
                }
                _ => self.content.push(part.get().to_owned()),
            }
        }
    }

    fn push_call(&mut self, call: &RawValue, events: &mut Vec<StreamEvent>) {
        let Ok(fields) = Fields::parse(call.get()) else {
            return;
        };
        let id = string_field(&fields, "id").filter(|id| !id.is_empty());
        let index = index_field(&fields, "index");
        let at = match self.find_call(index, id.as_deref()) {
            Some(at) => at,
            None => {
                let piece = self.pieces.begin_piece(events);
                self.calls.push(StreamedCall {
                    fields: JsonBuilder::default(),
                    piece,
                });
                self.calls.len() - 1
            }
        };
        if let Some(index) = index {
            self.newest.insert(index, at);
        }
        if let Some(call) = self.calls.get_mut(at) {
            call.push_delta(&fields, events);
            self.pieces.open = Some(call.piece);
        }
    }

    /// The call a difference belongs to. Another id is another call, whatever the index says.
    fn find_call(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let at = match index {
            // Hosts that send no index stream one call after the other.
            Some(index) => self.newest.get(&index).copied()?,
            None => self.calls.len().checked_sub(1)?,
        };
        let now = self.calls.get(at)?.fields.get_string("id");
        // A call whose id has not come yet takes the next id that comes.
        let now = now.filter(|now| !now.is_empty());
        let other = id.is_some_and(|id| now.is_some_and(|now| now != id));
        (!other).then_some(at)
    }

    fn to_json(&self, cut: bool) -> String {
        // Some hosts leave the role out, but an unstreamed body has one.
        let mut message = self.message.clone();
        if !message.contains_key("role") {
            message.set_string("role", "assistant");
        }
        if !self.content.is_empty() {
            let mut parts = self.content.clone();
            if let Some(text) = message.get_string("content") {
                let mut part = JsonBuilder::default();
                part.set_string("type", "text");
                part.set_string("text", &text);
                parts.push(part.to_json());
            }
            if let Ok(parts) = Raw::parse(json_array(parts)) {
                message.set_raw("content", parts);
            }
        }
        // With several choices some may have ended before the stream was cut.
        let unfinished = cut && self.fields.get_string("finish_reason").is_none();
        if !self.calls.is_empty() {
            let last = self.calls.len() - 1;
            let calls = self.calls.iter().enumerate();
            let calls = calls.map(|(at, call)| call.to_json(unfinished, at == last));
            if let Ok(calls) = Raw::parse(json_array(calls)) {
                message.set_raw("tool_calls", calls);
            }
        } else if unfinished {
            message.set_raw(MARK, truncation::truncation_mark());
        }
        let mut fields = self.fields.clone();
        if let Ok(message) = Raw::parse(message.to_json()) {
            fields.set_raw("message", message);
        }
        if unfinished {
            fields.set_string("finish_reason", INCOMPLETE);
        }
        fields.to_json()
    }
}

impl StreamedCall {
    fn push_delta(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) {
        let fresh = self.name().is_none();
        let mut given = Vec::new();
        for (key, value) in fields.iter().filter(|(key, _)| *key != "index") {
            let Some((_, argument)) = GIVEN.iter().find(|(tool, _)| *tool == key) else {
                self.fields.merge_delta(key, value);
                continue;
            };
            let members = Fields::parse(value.get()).unwrap_or_default();
            self.fields.edit_object(key, |tool| {
                for (key, value) in members.iter() {
                    // A name comes at once; hosts that repeat it mean no longer one.
                    let now = tool.get_string(key).filter(|_| key == "name");
                    if now.is_none() || now != string_value(value) {
                        tool.merge_delta(key, value);
                    }
                }
            });
            given.extend(string_field(&members, argument).filter(|delta| !delta.is_empty()));
        }
        let piece = self.piece;
        if fresh && let Some(name) = self.name() {
            let kind = PieceKind::Call {
                id: self.fields.get_string("id"),
                name: Some(name),
            };
            events.push(StreamEvent::ItemAdded { piece, kind });
        }
        let deltas = given.into_iter();
        events.extend(deltas.map(|delta| StreamEvent::ArgumentsDelta { piece, delta }));
    }

    fn name(&self) -> Option<String> {
        let tool = |(tool, _): &(&str, &str)| self.fields.get_object(tool)?.get_string("name");
        GIVEN.iter().find_map(tool)
    }

    fn to_json(&self, cut: bool, last: bool) -> String {
        let mut fields = self.fields.clone();
        if !fields.contains_key("type") && fields.contains_key("function") {
            fields.set_string("type", "function");
        }
        // Arguments are whole if they parse as an object; the last call may have been cut after
        // such a prefix, so it is marked in any case.
        let whole = || {
            let function = self.fields.get_object("function")?;
            as_object(&function.get_string("arguments")?).map(drop)
        };
        if cut && (last || whole().is_none()) {
            fields.set_raw(MARK, truncation::truncation_mark());
        }
        fields.to_json()
    }
}

impl PieceTracker {
    fn emit_delta(&mut self, key: &str, delta: String, events: &mut Vec<StreamEvent>) {
        // Other members grow in the body, but nobody shows them live.
        let thoughts = THOUGHTS.contains(&key);
        if !thoughts && !matches!(key, "content" | "refusal") {
            return;
        }
        let (slot, kind) = match thoughts {
            true => (self.thoughts, PieceKind::Reasoning),
            false => (self.message, PieceKind::Message),
        };
        let piece = slot.unwrap_or_else(|| {
            let piece = self.begin_piece(events);
            events.push(StreamEvent::ItemAdded { piece, kind });
            piece
        });
        let slot = if thoughts {
            &mut self.thoughts
        } else {
            &mut self.message
        };
        *slot = Some(piece);
        self.open = Some(piece);
        events.push(match key {
            "content" => StreamEvent::TextDelta { piece, delta },
            "refusal" => StreamEvent::RefusalDelta { piece, delta },
            _ => StreamEvent::ReasoningDelta { piece, delta },
        });
    }

    /// A new piece; the one before is whole.
    fn begin_piece(&mut self, events: &mut Vec<StreamEvent>) -> usize {
        self.close_piece(events);
        self.next += 1;
        self.next - 1
    }

    fn close_piece(&mut self, events: &mut Vec<StreamEvent>) {
        if let Some(piece) = self.open.take() {
            events.push(StreamEvent::ItemDone { piece });
        }
    }
}
