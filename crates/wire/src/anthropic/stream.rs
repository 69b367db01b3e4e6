//! Streamed answers: `message_start`, content blocks that open, grow and close, `message_delta`,
//! `message_stop`.

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};

use super::response;
use crate::model::json::{as_object, json_array, string_field};
use crate::model::json_builder::JsonBuilder;
use crate::stream::{
    ParsedEvent, PieceKind, StreamEvent, StreamParser, index_field, parse_failure,
};
use crate::truncation::{self, INCOMPLETE, MARK};

/// An answer being streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnthropicStream {
    message: JsonBuilder,
    blocks: BTreeMap<u64, StreamedBlock>,
    stopped: bool,
}

#[derive(Clone, Debug)]
struct StreamedBlock {
    draft: JsonBuilder,
    /// The text of a tool's input, as far as it came.
    input: String,
    open: bool,
    piece: usize,
}

impl StreamParser for AnthropicStream {
    fn push_event(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> ParsedEvent {
        let fields = Fields::parse(data).unwrap_or_default();
        let understood = match string_field(&fields, "type").as_deref() {
            Some("message_start") => self.start_message(&fields, events),
            Some("content_block_start") => self.open_block(&fields, events),
            Some("content_block_delta") => self.grow_block(&fields, events),
            Some("content_block_stop") => self.close_block(&fields, events),
            Some("message_delta") => self.update_message(&fields, events),
            Some("message_stop") => {
                self.stopped = true;
                let word = self.message.get_string("stop_reason");
                let finish = word.as_deref().map(response::parse_finish_reason);
                events.push(StreamEvent::Finished { finish });
                Some(())
            }
            Some("ping") => Some(()),
            Some("error") => fields
                .get(&["error"])
                .map(|error| events.push(StreamEvent::Failed(parse_failure(error)))),
            _ => None,
        };
        understood.map_or(ParsedEvent::Ignored, |()| ParsedEvent::Recognized)
    }

    /// Whether the provider ended it: relays may swallow the last event, but not the reason.
    fn is_complete(&self) -> bool {
        let closed = || self.blocks.values().all(|block| !block.open);
        self.stopped || (self.message.get_string("stop_reason").is_some() && closed())
    }

    fn response_body(&self) -> String {
        let mut message = self.message.clone();
        if !message.contains_key("role") {
            message.set_string("type", "message");
            message.set_string("role", "assistant");
        }
        let blocks = json_array(self.blocks.values().map(StreamedBlock::to_json));
        if let Ok(blocks) = Raw::parse(blocks) {
            message.set_raw("content", blocks);
        }
        if !self.is_complete() {
            message.set_string("stop_reason", INCOMPLETE);
        }
        message.to_json()
    }

    fn clone_boxed(&self) -> Box<dyn StreamParser> {
        Box::new(self.clone())
    }
}

impl AnthropicStream {
    fn start_message(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        let message = JsonBuilder::from_object(fields.get(&["message"])?.get());
        let id = message.get_string("id");
        // Relays that retry send the beginning twice; only with another id, or after content, it is
        // a new answer.
        let again = self.message.contains_key("role") && self.blocks.is_empty();
        if again && id == self.message.get_string("id") {
            return Some(());
        }
        events.push(StreamEvent::Started {
            id,
            model: message.get_string("model"),
        });
        *self = Self {
            message,
            ..Self::default()
        };
        self.emit_usage(events);
        Some(())
    }

    fn open_block(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        let index = index_field(fields, "index")?;
        let draft = JsonBuilder::from_object(fields.get(&["content_block"])?.get());
        // A block that begins twice is a relay's mistake; the first one keeps growing.
        if self.blocks.contains_key(&index) {
            return None;
        }
        let piece = self.blocks.len();
        let kind = match draft.get_string("type").unwrap_or_default().as_str() {
            "text" => PieceKind::Message,
            "thinking" | "redacted_thinking" => PieceKind::Reasoning,
            "tool_use" => PieceKind::Call {
                id: draft.get_string("id"),
                name: draft.get_string("name"),
            },
            other => PieceKind::Other(other.to_owned()),
        };
        events.push(StreamEvent::ItemAdded { piece, kind });
        let block = StreamedBlock {
            draft,
            input: String::new(),
            open: true,
            piece,
        };
        self.blocks.insert(index, block);
        Some(())
    }

    fn grow_block(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        let block = self.blocks.get_mut(&index_field(fields, "index")?)?;
        let delta = Fields::parse(fields.get(&["delta"])?.get()).ok()?;
        if !block.open {
            return None;
        }
        let piece = block.piece;
        match string_field(&delta, "type")?.as_str() {
            "text_delta" => {
                let delta = string_field(&delta, "text")?;
                block.draft.append_text("text", &delta);
                events.push(StreamEvent::TextDelta { piece, delta });
            }
            "thinking_delta" => {
                let delta = string_field(&delta, "thinking")?;
                block.draft.append_text("thinking", &delta);
                events.push(StreamEvent::ReasoningDelta { piece, delta });
            }
            "input_json_delta" => {
                let delta = string_field(&delta, "partial_json")?;
                block.input.push_str(&delta);
                events.push(StreamEvent::ArgumentsDelta { piece, delta });
            }
            "citations_delta" => {
                let citation = delta.get(&["citation"])?;
                block.draft.push_element("citations", citation.get());
            }
            // Signatures, compactions, and what there will be: a member of the block's own name grows.
            _ => {
                let members = delta.iter().filter(|(key, _)| *key != "type");
                members.for_each(|(key, value)| block.draft.merge_delta(key, value));
            }
        }
        Some(())
    }

    fn close_block(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        let block = self.blocks.get_mut(&index_field(fields, "index")?)?;
        if std::mem::take(&mut block.open) {
            events.push(StreamEvent::ItemDone { piece: block.piece });
        }
        Some(())
    }

    fn update_message(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        for (key, value) in fields.iter() {
            match key {
                "type" => {}
                "delta" => self.message.set_members(value.get(), |_| true),
                // The last event repeats only some of the counts; those of the first one stay.
                "usage" => {
                    let figures = Fields::parse(value.get()).unwrap_or_default();
                    self.message.edit_object("usage", |usage| {
                        figures
                            .iter()
                            .for_each(|(key, value)| usage.set_unless_empty(key, value));
                    });
                }
                _ => self.message.set(key, value),
            }
        }
        self.emit_usage(events);
        Some(())
    }

    fn emit_usage(&self, events: &mut Vec<StreamEvent>) {
        let usage = self.message.get_raw("usage").cloned();
        let grown = || Raw::parse(self.message.get_object("usage")?.to_json()).ok();
        if let Some(usage) = usage.or_else(grown)
            && let Ok(usage) = usage.parse_as().and_then(response::parse_usage)
        {
            events.push(StreamEvent::Usage(usage));
        }
    }
}

impl StreamedBlock {
    fn to_json(&self) -> String {
        let mut draft = self.draft.clone();
        // Input arrives as pieces of JSON text and can be written only once it parses.
        let whole = self.input.is_empty() || as_object(&self.input).is_some();
        if !self.input.is_empty()
            && whole
            && let Ok(input) = Raw::parse(self.input.as_str())
        {
            draft.set_raw("input", input);
        }
        if !whole {
            draft.set_raw(MARK, Raw::string(&self.input));
        } else if self.open {
            draft.set_raw(MARK, truncation::truncation_mark());
        }
        draft.to_json()
    }
}
