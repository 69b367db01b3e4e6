//! Streamed answers: items that are added, grow and are done, and a last event that repeats the whole answer.
//!
//! An item's final form is the one its `output_item.done` shows, the answer's the one the last event shows;
//! what grew is used only where those did not come. Items are told apart by `output_index`: some relays
//! change ids on the way.

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};
use serde_json::value::RawValue;

use super::response;
use crate::model::json::{json_array, string_field};
use crate::model::json_builder::JsonBuilder;
use crate::stream::{
    ParsedEvent, PieceKind, StreamEvent, StreamParser, index_field, parse_failure,
};
use crate::truncation::{INCOMPLETE, MARK};

/// What of an item grows in parts: the event's name, the list, the place in it, the part's type, the text.
const PARTS: [(&str, &str, &str, &str, &str); 5] = [
    (
        "output_text",
        "content",
        "content_index",
        "output_text",
        "text",
    ),
    ("refusal", "content", "content_index", "refusal", "refusal"),
    (
        "reasoning_text",
        "content",
        "content_index",
        "reasoning_text",
        "text",
    ),
    (
        "reasoning",
        "content",
        "content_index",
        "reasoning_text",
        "text",
    ),
    (
        "reasoning_summary_text",
        "summary",
        "summary_index",
        "summary_text",
        "text",
    ),
];
/// What of an item grows by itself: the event's name and the member.
const MEMBERS: [(&str, &str); 4] = [
    ("function_call_arguments", "arguments"),
    ("mcp_call_arguments", "arguments"),
    ("custom_tool_call_input", "input"),
    ("code_interpreter_call_code", "code"),
];
const CONTENT: &str = "content";
const SUMMARY: &str = "summary";

/// An answer being streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponsesStream {
    head: JsonBuilder,
    items: BTreeMap<u64, StreamedItem>,
    started: bool,
    /// The answer as the last event showed it.
    final_response: Option<JsonBuilder>,
}

#[derive(Clone, Debug, Default)]
struct StreamedItem {
    fields: JsonBuilder,
    content: BTreeMap<u64, JsonBuilder>,
    summary: BTreeMap<u64, JsonBuilder>,
    /// The item as it was done.
    final_json: Option<String>,
    piece: usize,
}

impl StreamParser for ResponsesStream {
    fn push_event(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> ParsedEvent {
        // What is no object has no `type`, matches nothing below and is ignored.
        let fields = Fields::parse(data).unwrap_or_default();
        let kind = string_field(&fields, "type").unwrap_or_default();
        let name = kind.strip_prefix("response.").unwrap_or(&kind);
        let understood = match name {
            "created" | "in_progress" | "queued" => self.start_response(&fields, events),
            "completed" | "incomplete" | "failed" | "cancelled" => {
                self.end_response(&fields, events)
            }
            "output_item.added" => self.add_item(&fields, events),
            "output_item.done" => self.finish_item(&fields, events),
            "content_part.added" => self.add_part(&fields, CONTENT, "content_index"),
            "reasoning_summary_part.added" => self.add_part(&fields, SUMMARY, "summary_index"),
            "output_text.annotation.added" => self.add_annotation(&fields),
            "error" => {
                // OpenAI puts the error's fields into the event itself; other hosts wrap them.
                let own = serde_json::from_str::<&RawValue>(data).ok();
                let error = fields.get(&["error"]).filter(|error| error.get() != "null");
                error
                    .or(own)
                    .map(|error| events.push(StreamEvent::Failed(parse_failure(error))))
            }
            _ => self.push_delta(name, &fields, events),
        };
        understood.map_or(ParsedEvent::Ignored, |()| ParsedEvent::Recognized)
    }

    fn is_complete(&self) -> bool {
        self.final_response.is_some()
    }

    fn response_body(&self) -> String {
        let mut body = self.final_response.as_ref().unwrap_or(&self.head).clone();
        let shown = body
            .get_raw("output")
            .filter(|output| output.get() != "null");
        // Some hosts leave `output` empty in the last event; the items seen before it are then the
        // answer.
        let bare = shown.is_none_or(|output| output.get() == "[]");
        if self.final_response.is_none() || (bare && !self.items.is_empty()) {
            let items = self.items.values().map(StreamedItem::to_json);
            if let Ok(output) = Raw::parse(json_array(items)) {
                body.set_raw("output", output);
            }
        }
        if self.final_response.is_none() {
            body.set_string("object", "response");
            body.set_string("status", INCOMPLETE);
        }
        body.to_json()
    }

    fn clone_boxed(&self) -> Box<dyn StreamParser> {
        Box::new(self.clone())
    }
}

impl ResponsesStream {
    fn start_response(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        // Each of these events repeats the whole response, so the newest one counts.
        self.head = JsonBuilder::from_object(fields.get(&["response"])?.get());
        if !std::mem::replace(&mut self.started, true) {
            events.push(StreamEvent::Started {
                id: self.head.get_string("id"),
                model: self.head.get_string("model"),
            });
        }
        Some(())
    }

    fn end_response(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        let answer = fields.get(&["response"])?;
        // The first end counts; a second one could contradict what was reported.
        if self.final_response.is_some() {
            return Some(());
        }
        // Set before the reason is asked for, because `response_body` reads it.
        self.final_response = Some(JsonBuilder::from_object(answer.get()));
        let inner = Fields::parse(answer.get()).ok()?;
        if let Some(Ok(usage)) = inner
            .get(&["usage"])
            .filter(|usage| usage.get() != "null")
            .map(|usage| response::parse_usage(usage.get()))
        {
            events.push(StreamEvent::Usage(usage));
        }
        let error = inner.get(&["error"]).filter(|error| error.get() != "null");
        if string_field(fields, "type").as_deref() == Some("response.failed") {
            events.push(StreamEvent::Failed(
                error.map(parse_failure).unwrap_or_default(),
            ));
            return Some(());
        }
        // The reason is read as from an unstreamed response, so that both say the same.
        let body = self.response_body();
        let lifted = Fields::parse(&body).and_then(response::lift_response).ok();
        let finish = lifted.and_then(|lifted| lifted.transcript.response?.finish);
        events.push(StreamEvent::Finished { finish });
        Some(())
    }

    /// The item an event is about; one that was never added begins here.
    fn item_mut(&mut self, fields: &Fields<'_>) -> &mut StreamedItem {
        // Hosts that send no index stream one item after the other.
        let newest = self.items.last_key_value().map_or(0, |(index, _)| *index);
        let index = index_field(fields, "output_index").unwrap_or(newest);
        let piece = self.items.len();
        self.items.entry(index).or_insert_with(|| StreamedItem {
            piece,
            ..StreamedItem::default()
        })
    }

    fn add_item(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        let text = fields.get(&["item"])?.get();
        let item = self.item_mut(fields);
        // An item that was begun is not begun again: its text would be lost.
        if item.fields.contains_key("type") || item.final_json.is_some() {
            return None;
        }
        item.begin_item(text, events);
        Some(())
    }

    fn finish_item(&mut self, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) -> Option<()> {
        let text = fields.get(&["item"])?.get();
        let item = self.item_mut(fields);
        if item.final_json.is_some() {
            return Some(());
        }
        // Some hosts leave out the event that begins an item; every piece is begun before it is
        // done.
        if !item.fields.contains_key("type") {
            item.begin_item(text, events);
        }
        item.final_json = Some(text.to_owned());
        events.push(StreamEvent::ItemDone { piece: item.piece });
        Some(())
    }

    fn add_part(&mut self, fields: &Fields<'_>, list: &str, index: &str) -> Option<()> {
        let index = index_field(fields, index)?;
        let part = fields.get(&["part"])?.get();
        let list = self.item_mut(fields).parts_mut(list);
        // A delta may have come before this event; what it brought stays.
        list.entry(index)
            .or_insert_with(|| JsonBuilder::from_object(part));
        Some(())
    }

    fn add_annotation(&mut self, fields: &Fields<'_>) -> Option<()> {
        let index = index_field(fields, "content_index")?;
        let part = self.item_mut(fields).content.get_mut(&index)?;
        part.push_element("annotations", fields.get(&["annotation"])?.get());
        Some(())
    }

    fn push_delta(
        &mut self,
        name: &str,
        fields: &Fields<'_>,
        events: &mut Vec<StreamEvent>,
    ) -> Option<()> {
        let (name, whole) = match name.strip_suffix(".delta") {
            Some(name) => (name, false),
            None => (name.strip_suffix(".done")?, true),
        };
        let (part, key) = match PARTS.iter().find(|part| part.0 == name) {
            Some(part) => (Some(part), part.4),
            None => (None, MEMBERS.iter().find(|member| member.0 == name)?.1),
        };
        // A `done` event calls the text by its member's name, a delta always `delta`.
        let text = string_field(fields, if whole { key } else { "delta" })?;
        let item = self.item_mut(fields);
        // A finished item is final; a late delta would double its text.
        if item.final_json.is_some() {
            return Some(());
        }
        let piece = item.piece;
        let draft = match part {
            None => &mut item.fields,
            Some((_, list, index, kind, _)) => {
                let index = index_field(fields, index).unwrap_or(0);
                item.parts_mut(list).entry(index).or_insert_with(|| {
                    let mut part = JsonBuilder::default();
                    part.set_string("type", kind);
                    part
                })
            }
        };
        let delta = match whole {
            // The `done` event repeats the whole text; only what no delta brought is new.
            true => draft.complete_text(key, &text),
            false => {
                draft.append_text(key, &text);
                text
            }
        };
        if !delta.is_empty() {
            events.push(delta_event(name, piece, delta));
        }
        Some(())
    }
}

impl StreamedItem {
    fn begin_item(&mut self, text: &str, events: &mut Vec<StreamEvent>) {
        self.fields = JsonBuilder::from_object(text);
        let kind = match self.fields.get_string("type").unwrap_or_default().as_str() {
            "message" => PieceKind::Message,
            "reasoning" => PieceKind::Reasoning,
            "function_call" | "custom_tool_call" => PieceKind::Call {
                id: self.fields.get_string("call_id"),
                name: self.fields.get_string("name"),
            },
            other => PieceKind::Other(other.to_owned()),
        };
        // An item may begin with parts already in it.
        for list in [CONTENT, SUMMARY] {
            let parts = self.fields.get_raw(list);
            let parts = parts.and_then(|parts| parts.parse_as::<Vec<Raw>>().ok());
            let parts = parts.unwrap_or_default().into_iter().zip(0..);
            for (part, index) in parts {
                let list = self.parts_mut(list);
                list.entry(index)
                    .or_insert_with(|| JsonBuilder::from_object(part.get()));
            }
        }
        let piece = self.piece;
        events.push(StreamEvent::ItemAdded { piece, kind });
    }

    fn parts_mut(&mut self, name: &str) -> &mut BTreeMap<u64, JsonBuilder> {
        match name {
            SUMMARY => &mut self.summary,
            _ => &mut self.content,
        }
    }

    fn to_json(&self) -> String {
        // A finished item is written byte for byte as the provider sent it.
        if let Some(done) = &self.final_json {
            return done.clone();
        }
        let mut fields = self.fields.clone();
        self.add_required_members(&mut fields);
        for (name, list) in [(CONTENT, &self.content), (SUMMARY, &self.summary)] {
            if list.is_empty() {
                continue;
            }
            if let Ok(list) = Raw::parse(json_array(list.values().map(JsonBuilder::to_json))) {
                fields.set_raw(name, list);
            }
        }
        // Whatever has no end was cut off.
        fields.set_string("status", INCOMPLETE);
        fields.to_json()
    }

    /// Gives an item whose beginning did not come, or not all of it, the members it must have. A call without
    /// a name is nobody's.
    fn add_required_members(&self, fields: &mut JsonBuilder) {
        let mut kinds = self
            .content
            .values()
            .filter_map(|part| part.get_string("type"));
        // Without its beginning an item's kind shows in its parts only.
        let kind = fields.get_string("type").unwrap_or_else(|| {
            let inferred = match kinds.next().as_deref() {
                Some("output_text" | "refusal") => "message",
                None if self.summary.is_empty() => MARK,
                _ => "reasoning",
            };
            fields.set_string("type", inferred);
            inferred.to_owned()
        });
        let mut need = |key, value: fn() -> Raw| {
            if !fields.contains_key(key) {
                fields.set_raw(key, value());
            }
        };
        match kind.as_str() {
            "message" => {
                need("role", || Raw::string("assistant"));
                need(CONTENT, empty_array);
            }
            "reasoning" => need(SUMMARY, empty_array),
            "function_call" => {
                let named =
                    fields.get_string("name").is_some() && fields.get_string("call_id").is_some();
                // A call without a name or an id cannot be answered; this type keeps it out of
                // requests.
                if !named {
                    fields.set_string("type", MARK);
                }
            }
            _ => {}
        }
    }
}

fn empty_array() -> Raw {
    Raw::parse("[]").unwrap_or_else(|_| Raw::null())
}

fn delta_event(name: &str, piece: usize, delta: String) -> StreamEvent {
    match name {
        "output_text" => StreamEvent::TextDelta { piece, delta },
        "refusal" => StreamEvent::RefusalDelta { piece, delta },
        "reasoning_text" | "reasoning" => StreamEvent::ReasoningDelta { piece, delta },
        "reasoning_summary_text" => StreamEvent::SummaryDelta { piece, delta },
        _ => StreamEvent::ArgumentsDelta { piece, delta },
    }
}
