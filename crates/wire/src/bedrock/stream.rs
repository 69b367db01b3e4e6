//! Streamed answers: `messageStart`, content blocks that open, grow and close, `messageStop`, `metadata`.
//!
//! An event is the JSON object that the reader of frames (`event_stream.rs`) makes of a frame: one member, named after the
//! event. Text and thoughts have no start: their first difference begins them.
//! Differences that say nothing begin no block. Every event has a member `p`, padding against listeners, which is no part
//! of the answer.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contexture_ir::{Fields, Raw};
use serde_json::value::RawValue;

use super::block::{CITATIONS, single_member};
use super::response;
use crate::model::json::{ObjectWriter, as_object, string_field, string_value};
use crate::model::json_builder::JsonBuilder;
use crate::stream::{
    ParsedEvent, PieceKind, StreamEvent, StreamFailure, StreamParser, index_field, parse_failure,
};
use crate::truncation::{INCOMPLETE, MARK, truncation_mark};

/// The padding of an event.
const PADDING: &str = "p";

/// An answer being streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct BedrockStream {
    /// The members of the response beside the message.
    head: JsonBuilder,
    blocks: BTreeMap<u64, StreamedBlock>,
    started: bool,
    stopped: bool,
}

#[derive(Clone, Debug)]
struct StreamedBlock {
    /// The member that names the block's kind: `text`, `toolUse`, `reasoningContent`, ….
    member: String,
    /// The value of a block that is an object.
    draft: JsonBuilder,
    /// Text, or a tool's input as far as it came.
    text: String,
    citations: Vec<String>,
    open: bool,
    piece: usize,
}

impl StreamParser for BedrockStream {
    fn push_event(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> ParsedEvent {
        let fields = Fields::parse(data).unwrap_or_default();
        let understood = single_member(&fields).and_then(|(name, payload)| match name.as_str() {
            "messageStart" => self.start_message(events),
            "contentBlockStart" => self.open_block(payload, events),
            "contentBlockDelta" => self.grow_block(payload, events),
            "contentBlockStop" => self.close_block(payload, events),
            "messageStop" => self.stop_message(payload, events),
            "metadata" => self.set_metadata(payload, events),
            name if name == "error" || name.ends_with("Exception") => {
                events.push(StreamEvent::Failed(stream_failure(name, payload)));
                Some(())
            }
            _ => None,
        });
        understood.map_or(ParsedEvent::Ignored, |()| ParsedEvent::Recognized)
    }

    fn is_complete(&self) -> bool {
        self.stopped
    }

    fn response_body(&self) -> String {
        let mut message = ObjectWriter::new();
        let blocks = self.blocks.values().map(StreamedBlock::to_json);
        message.string("role", "assistant").array("content", blocks);
        let mut output = ObjectWriter::new();
        output.raw("message", &message.finish());
        let mut body = JsonBuilder::default();
        if let Ok(output) = Raw::parse(output.finish()) {
            body.set_raw("output", output);
        }
        if !self.is_complete() {
            body.set_string("stopReason", INCOMPLETE);
        }
        body.set_members(&self.head.to_json(), |_| true);
        body.to_json()
    }

    fn clone_boxed(&self) -> Box<dyn StreamParser> {
        Box::new(self.clone())
    }
}

impl BedrockStream {
    fn start_message(&mut self, events: &mut Vec<StreamEvent>) -> Option<()> {
        // Relays that retry send the beginning twice; only after content it is a new answer.
        if self.started && self.blocks.is_empty() {
            return Some(());
        }
        *self = Self {
            started: true,
            ..Self::default()
        };
        let (id, model) = (None, None);
        events.push(StreamEvent::Started { id, model });
        Some(())
    }

    fn open_block(&mut self, payload: &RawValue, events: &mut Vec<StreamEvent>) -> Option<()> {
        let payload = Fields::parse(payload.get()).ok()?;
        let index = index_field(&payload, "contentBlockIndex")?;
        let start = Fields::parse(payload.get(&["start"])?.get()).ok()?;
        let (member, value) = single_member(&start)?;
        // A block that begins twice is a relay's mistake; the first one keeps growing.
        if self.blocks.contains_key(&index) {
            return None;
        }
        let draft = JsonBuilder::from_object(value.get());
        self.insert_block(index, member, draft, events);
        Some(())
    }

    fn insert_block(
        &mut self,
        index: u64,
        member: String,
        draft: JsonBuilder,
        events: &mut Vec<StreamEvent>,
    ) -> &mut StreamedBlock {
        let block = StreamedBlock {
            member,
            draft,
            text: String::new(),
            citations: Vec::new(),
            open: true,
            piece: self.blocks.len(),
        };
        let (piece, kind) = (block.piece, block.kind());
        events.push(StreamEvent::ItemAdded { piece, kind });
        self.blocks.entry(index).or_insert(block)
    }

    fn grow_block(&mut self, payload: &RawValue, events: &mut Vec<StreamEvent>) -> Option<()> {
        let payload = Fields::parse(payload.get()).ok()?;
        let index = index_field(&payload, "contentBlockIndex")?;
        let delta = Fields::parse(payload.get(&["delta"])?.get()).ok()?;
        let (member, value) = single_member(&delta)?;
        if !self.blocks.contains_key(&index) {
            if is_empty_delta(value) {
                return Some(());
            }
            let kind = if member == "citation" {
                "text"
            } else {
                member.as_str()
            };
            self.insert_block(index, kind.to_owned(), JsonBuilder::default(), events);
        }
        let block = self.blocks.get_mut(&index)?;
        if block.open {
            block.grow(&member, value, events)
        } else {
            None
        }
    }

    fn close_block(&mut self, payload: &RawValue, events: &mut Vec<StreamEvent>) -> Option<()> {
        let payload = Fields::parse(payload.get()).ok()?;
        let index = index_field(&payload, "contentBlockIndex")?;
        // A block of which nothing came ends, too.
        if let Some(block) = self.blocks.get_mut(&index) {
            block.close(events);
        }
        Some(())
    }

    fn stop_message(&mut self, payload: &RawValue, events: &mut Vec<StreamEvent>) -> Option<()> {
        let fields = Fields::parse(payload.get()).ok()?;
        let word = string_field(&fields, "stopReason");
        self.set_head(&fields);
        // Nothing can grow any more, even if a block's own end was lost.
        for block in self.blocks.values_mut() {
            block.close(events);
        }
        if !std::mem::replace(&mut self.stopped, true) {
            let finish = word.as_deref().map(response::parse_finish_reason);
            events.push(StreamEvent::Finished { finish });
        }
        Some(())
    }

    fn set_metadata(&mut self, payload: &RawValue, events: &mut Vec<StreamEvent>) -> Option<()> {
        let fields = Fields::parse(payload.get()).ok()?;
        self.set_head(&fields);
        let usage = fields.get(&["usage"]).map(response::parse_usage);
        if let Some(Ok(usage)) = usage {
            events.push(StreamEvent::Usage(usage));
        }
        Some(())
    }

    /// Takes the members of an event that stand in a response as they are.
    fn set_head(&mut self, fields: &Fields<'_>) {
        for (key, value) in fields.iter().filter(|(key, _)| *key != PADDING) {
            self.head.set_unless_empty(key, value);
        }
    }
}

impl StreamedBlock {
    fn kind(&self) -> PieceKind {
        let is_server_tool = self.draft.get_string("type").as_deref() == Some("server_tool_use");
        match self.member.as_str() {
            "text" => PieceKind::Message,
            "reasoningContent" => PieceKind::Reasoning,
            "toolUse" if !is_server_tool => PieceKind::Call {
                id: self.draft.get_string("toolUseId"),
                name: self.draft.get_string("name"),
            },
            other => PieceKind::Other(other.to_owned()),
        }
    }

    fn grow(
        &mut self,
        member: &str,
        value: &RawValue,
        events: &mut Vec<StreamEvent>,
    ) -> Option<()> {
        let piece = self.piece;
        match member {
            "text" => {
                let delta = string_value(value)?;
                self.text.push_str(&delta);
                events.push(StreamEvent::TextDelta { piece, delta });
            }
            "citation" => self.citations.push(value.get().to_owned()),
            "toolUse" => {
                let delta = string_field(&Fields::parse(value.get()).ok()?, "input")?;
                self.text.push_str(&delta);
                if matches!(self.kind(), PieceKind::Call { .. }) {
                    events.push(StreamEvent::ArgumentsDelta { piece, delta });
                }
            }
            "reasoningContent" => self.grow_reasoning(value, events)?,
            // A list of blocks, which become the result's content.
            "toolResult" => {
                let blocks: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
                for block in blocks {
                    self.draft.push_element("content", block.get());
                }
            }
            // Pictures, and what there will be: the value's members grow.
            _ => {
                let fields = Fields::parse(value.get()).ok()?;
                fields
                    .iter()
                    .for_each(|(key, value)| self.draft.merge_delta(key, value));
            }
        }
        Some(())
    }

    fn grow_reasoning(&mut self, value: &RawValue, events: &mut Vec<StreamEvent>) -> Option<()> {
        let piece = self.piece;
        let fields = Fields::parse(value.get()).ok()?;
        let (member, value) = single_member(&fields)?;
        let delta = string_value(value)?;
        match member.as_str() {
            "text" => {
                self.text.push_str(&delta);
                events.push(StreamEvent::ReasoningDelta { piece, delta });
            }
            "redactedContent" => {
                let before = self.draft.get_string(&member).unwrap_or_default();
                self.draft.set_string(&member, &join_base64(before, &delta));
            }
            // A signature, and what there will be.
            _ => self.draft.append_text(&member, &delta),
        }
        Some(())
    }

    fn close(&mut self, events: &mut Vec<StreamEvent>) {
        if std::mem::take(&mut self.open) {
            events.push(StreamEvent::ItemDone { piece: self.piece });
        }
    }

    /// The block as it stands in a response. A block that was cut off is marked where its reader looks for the mark.
    fn to_json(&self) -> String {
        let mut block = JsonBuilder::default();
        match self.member.as_str() {
            "text" if self.citations.is_empty() => block.set_string("text", &self.text),
            "text" => {
                let mut cited = JsonBuilder::default();
                let mut text = JsonBuilder::default();
                text.set_string("text", &self.text);
                cited.push_element("content", &text.to_json());
                for citation in &self.citations {
                    cited.push_element("citations", citation);
                }
                set_object(&mut block, CITATIONS, &cited);
            }
            "reasoningContent" => set_object(&mut block, &self.member, &self.reasoning()),
            "toolUse" => return self.tool_use(),
            member => set_object(&mut block, member, &self.draft),
        }
        if self.open && self.member != "reasoningContent" {
            block.set_raw(MARK, truncation_mark());
        }
        block.to_json()
    }

    fn reasoning(&self) -> JsonBuilder {
        let mut inner = JsonBuilder::default();
        let is_redacted = self.draft.contains_key("redactedContent") && self.text.is_empty();
        if !is_redacted {
            inner.set_string("text", &self.text);
        }
        inner.set_members(&self.draft.to_json(), |_| true);
        if self.open {
            inner.set_raw(MARK, truncation_mark());
        }
        if is_redacted {
            return inner;
        }
        let mut content = JsonBuilder::default();
        set_object(&mut content, "reasoningText", &inner);
        content
    }

    fn tool_use(&self) -> String {
        let mut inner = self.draft.clone();
        // Input arrives as pieces of JSON text and can be written only once it parses; half a number parses, too.
        let input = Raw::parse(self.text.as_str()).ok();
        let input = input.filter(|_| !self.open || as_object(&self.text).is_some());
        let is_partial = input.is_none() && !self.text.is_empty();
        match input {
            Some(input) => inner.set_raw("input", input),
            None => set_object(&mut inner, "input", &JsonBuilder::default()),
        }
        let mark = if is_partial {
            Some(Raw::string(&self.text))
        } else {
            self.open.then(truncation_mark)
        };
        let mut block = JsonBuilder::default();
        let is_call = matches!(self.kind(), PieceKind::Call { .. });
        // If the event that names a call was lost, the input is kept all the same, as a call that can be read.
        for name in ["toolUseId", "name"] {
            if is_call && !inner.contains_key(name) {
                inner.set_string(name, "");
            }
        }
        if let Some(mark) = mark.clone().filter(|_| is_call) {
            inner.set_raw(MARK, mark);
        }
        set_object(&mut block, "toolUse", &inner);
        // What only the provider understands is marked beside its value.
        if let Some(mark) = mark.filter(|_| !is_call) {
            block.set_raw(MARK, mark);
        }
        block.to_json()
    }
}

fn set_object(target: &mut JsonBuilder, key: &str, value: &JsonBuilder) {
    if let Ok(raw) = Raw::parse(value.to_json()) {
        target.set_raw(key, raw);
    }
}

/// Whether a difference says nothing: an empty text, or thoughts of an empty text.
fn is_empty_delta(value: &RawValue) -> bool {
    if let Some(text) = string_value(value) {
        return text.is_empty();
    }
    let fields = Fields::parse(value.get()).unwrap_or_default();
    single_member(&fields).is_some_and(|(member, value)| member == "text" && value.get() == "\"\"")
}

/// The bytes of two base64 texts in one; text that is no base64 is joined as it is.
fn join_base64(before: String, more: &str) -> String {
    if before.is_empty() {
        return more.to_owned();
    }
    match (STANDARD.decode(&before), STANDARD.decode(more)) {
        (Ok(first), Ok(second)) => STANDARD.encode([first, second].concat()),
        _ => before + more,
    }
}

/// What an exception or an error says.
fn stream_failure(name: &str, payload: &RawValue) -> StreamFailure {
    let mut failure = parse_failure(payload);
    // An exception is named by its event; its payload has only the text.
    if failure.kind.is_empty() && name != "error" {
        name.clone_into(&mut failure.kind);
    }
    failure
}
