//! Streamed answers: items that are added, grow and are done, and a last event that repeats the whole answer.
//!
//! An item's final form is the one its `output_item.done` shows, the answer's the one the last event shows;
//! what grew is used only where those did not come. Items are told apart by `output_index`: some relays
//! change ids on the way.

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};
use serde_json::value::RawValue;

use super::response;
use crate::draft::Draft;
use crate::json::array;
use crate::stream::{Heard, PieceKind, StreamEvent, failure, place, string};
use crate::unfinished::{INCOMPLETE, MARK};

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
pub(crate) struct Stream {
    head: Draft,
    items: BTreeMap<u64, Growing>,
    started: bool,
    /// The answer as the last event showed it.
    last: Option<Draft>,
}

#[derive(Clone, Debug, Default)]
struct Growing {
    fields: Draft,
    content: BTreeMap<u64, Draft>,
    summary: BTreeMap<u64, Draft>,
    /// The item as it was done.
    done: Option<String>,
    piece: usize,
}

impl Stream {
    pub(crate) fn push(&mut self, data: &str, said: &mut Vec<StreamEvent>) -> Heard {
        let fields = Fields::parse(data).unwrap_or_default();
        let kind = string(&fields, "type").unwrap_or_default();
        let name = kind.strip_prefix("response.").unwrap_or(&kind);
        let heard = match name {
            "created" | "in_progress" | "queued" => self.start(&fields, said),
            "completed" | "incomplete" | "failed" | "cancelled" => self.end(&fields, said),
            "output_item.added" => self.add(&fields, said),
            "output_item.done" => self.done(&fields, said),
            "content_part.added" => self.part(&fields, CONTENT, "content_index"),
            "reasoning_summary_part.added" => self.part(&fields, SUMMARY, "summary_index"),
            "output_text.annotation.added" => self.annotate(&fields),
            "error" => {
                let own = serde_json::from_str::<&RawValue>(data).ok();
                let error = fields.get(&["error"]).filter(|error| error.get() != "null");
                error
                    .or(own)
                    .map(|error| said.push(StreamEvent::Failed(failure(error))))
            }
            _ => self.grow(name, &fields, said),
        };
        heard.map_or(Heard::Nothing, |()| Heard::Something)
    }

    pub(crate) fn ended(&self) -> bool {
        self.last.is_some()
    }

    pub(crate) fn body(&self) -> String {
        let mut body = self.last.as_ref().unwrap_or(&self.head).clone();
        let shown = body.raw("output").filter(|output| output.get() != "null");
        let bare = shown.is_none_or(|output| output.get() == "[]");
        if self.last.is_none() || (bare && !self.items.is_empty()) {
            let items = self.items.values().map(Growing::json);
            if let Ok(output) = Raw::parse(array(items)) {
                body.set_raw("output", output);
            }
        }
        if self.last.is_none() {
            body.set_string("object", "response");
            body.set_string("status", INCOMPLETE);
        }
        body.json()
    }

    fn start(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        self.head = Draft::of(fields.get(&["response"])?.get());
        if !std::mem::replace(&mut self.started, true) {
            said.push(StreamEvent::Started {
                id: self.head.string("id"),
                model: self.head.string("model"),
            });
        }
        Some(())
    }

    fn end(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        let answer = fields.get(&["response"])?;
        if self.last.is_some() {
            return Some(());
        }
        self.last = Some(Draft::of(answer.get()));
        let inner = Fields::parse(answer.get()).ok()?;
        if let Some(Ok(usage)) = inner
            .get(&["usage"])
            .filter(|usage| usage.get() != "null")
            .map(|usage| response::read_usage(usage.get()))
        {
            said.push(StreamEvent::Usage(usage));
        }
        let error = inner.get(&["error"]).filter(|error| error.get() != "null");
        if string(fields, "type").as_deref() == Some("response.failed") {
            said.push(StreamEvent::Failed(error.map(failure).unwrap_or_default()));
            return Some(());
        }
        let body = self.body();
        let lifted = Fields::parse(&body).and_then(response::lift).ok();
        let finish = lifted.and_then(|lifted| lifted.transcript.response?.finish);
        said.push(StreamEvent::Finished { finish });
        Some(())
    }

    /// The item an event is about; one that was never added begins here.
    fn item(&mut self, fields: &Fields<'_>) -> &mut Growing {
        let newest = self.items.last_key_value().map_or(0, |(index, _)| *index);
        let index = place(fields, "output_index").unwrap_or(newest);
        let piece = self.items.len();
        self.items.entry(index).or_insert_with(|| Growing {
            piece,
            ..Growing::default()
        })
    }

    fn add(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        let text = fields.get(&["item"])?.get();
        let item = self.item(fields);
        if item.fields.has("type") || item.done.is_some() {
            return None;
        }
        item.begin(text, said);
        Some(())
    }

    fn done(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        let text = fields.get(&["item"])?.get();
        let item = self.item(fields);
        if item.done.is_some() {
            return Some(());
        }
        if !item.fields.has("type") {
            item.begin(text, said);
        }
        item.done = Some(text.to_owned());
        said.push(StreamEvent::ItemDone { piece: item.piece });
        Some(())
    }

    fn part(&mut self, fields: &Fields<'_>, list: &str, index: &str) -> Option<()> {
        let index = place(fields, index)?;
        let part = fields.get(&["part"])?.get();
        let list = self.item(fields).list(list);
        list.entry(index).or_insert_with(|| Draft::of(part));
        Some(())
    }

    fn annotate(&mut self, fields: &Fields<'_>) -> Option<()> {
        let index = place(fields, "content_index")?;
        let part = self.item(fields).content.get_mut(&index)?;
        part.push("annotations", fields.get(&["annotation"])?.get());
        Some(())
    }

    fn grow(&mut self, name: &str, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) -> Option<()> {
        let (name, whole) = match name.strip_suffix(".delta") {
            Some(name) => (name, false),
            None => (name.strip_suffix(".done")?, true),
        };
        let (part, key) = match PARTS.iter().find(|part| part.0 == name) {
            Some(part) => (Some(part), part.4),
            None => (None, MEMBERS.iter().find(|member| member.0 == name)?.1),
        };
        let text = string(fields, if whole { key } else { "delta" })?;
        let item = self.item(fields);
        if item.done.is_some() {
            return Some(());
        }
        let piece = item.piece;
        let draft = match part {
            None => &mut item.fields,
            Some((_, list, index, kind, _)) => {
                let index = place(fields, index).unwrap_or(0);
                item.list(list).entry(index).or_insert_with(|| {
                    let mut part = Draft::default();
                    part.set_string("type", kind);
                    part
                })
            }
        };
        let delta = match whole {
            true => draft.complete(key, &text),
            false => {
                draft.append(key, &text);
                text
            }
        };
        if !delta.is_empty() {
            said.push(event(name, piece, delta));
        }
        Some(())
    }
}

impl Growing {
    fn begin(&mut self, text: &str, said: &mut Vec<StreamEvent>) {
        self.fields = Draft::of(text);
        let kind = match self.fields.string("type").unwrap_or_default().as_str() {
            "message" => PieceKind::Message,
            "reasoning" => PieceKind::Reasoning,
            "function_call" | "custom_tool_call" => PieceKind::Call {
                id: self.fields.string("call_id"),
                name: self.fields.string("name"),
            },
            other => PieceKind::Other(other.to_owned()),
        };
        for list in [CONTENT, SUMMARY] {
            let parts = self.fields.raw(list);
            let parts = parts.and_then(|parts| parts.to::<Vec<Raw>>().ok());
            let parts = parts.unwrap_or_default().into_iter().zip(0..);
            for (part, index) in parts {
                let list = self.list(list);
                list.entry(index).or_insert_with(|| Draft::of(part.get()));
            }
        }
        let piece = self.piece;
        said.push(StreamEvent::ItemAdded { piece, kind });
    }

    fn list(&mut self, name: &str) -> &mut BTreeMap<u64, Draft> {
        match name {
            SUMMARY => &mut self.summary,
            _ => &mut self.content,
        }
    }

    fn json(&self) -> String {
        if let Some(done) = &self.done {
            return done.clone();
        }
        let mut fields = self.fields.clone();
        self.shape(&mut fields);
        for (name, list) in [(CONTENT, &self.content), (SUMMARY, &self.summary)] {
            if list.is_empty() {
                continue;
            }
            if let Ok(list) = Raw::parse(array(list.values().map(Draft::json))) {
                fields.set_raw(name, list);
            }
        }
        fields.set_string("status", INCOMPLETE);
        fields.json()
    }

    /// Gives an item whose beginning did not come, or not all of it, the members it must have. A call without
    /// a name is nobody's.
    fn shape(&self, fields: &mut Draft) {
        let mut kinds = self.content.values().filter_map(|part| part.string("type"));
        let kind = fields.string("type").unwrap_or_else(|| {
            let said = match kinds.next().as_deref() {
                Some("output_text" | "refusal") => "message",
                None if self.summary.is_empty() => MARK,
                _ => "reasoning",
            };
            fields.set_string("type", said);
            said.to_owned()
        });
        let mut need = |key, value: fn() -> Raw| {
            if !fields.has(key) {
                fields.set_raw(key, value());
            }
        };
        match kind.as_str() {
            "message" => {
                need("role", || Raw::string("assistant"));
                need(CONTENT, empty);
            }
            "reasoning" => need(SUMMARY, empty),
            "function_call" => {
                let named = fields.string("name").is_some() && fields.string("call_id").is_some();
                if !named {
                    fields.set_string("type", MARK);
                }
            }
            _ => {}
        }
    }
}

fn empty() -> Raw {
    Raw::parse("[]").unwrap_or_else(|_| Raw::null())
}

fn event(name: &str, piece: usize, delta: String) -> StreamEvent {
    match name {
        "output_text" => StreamEvent::TextDelta { piece, delta },
        "refusal" => StreamEvent::RefusalDelta { piece, delta },
        "reasoning_text" | "reasoning" => StreamEvent::ReasoningDelta { piece, delta },
        "reasoning_summary_text" => StreamEvent::SummaryDelta { piece, delta },
        _ => StreamEvent::ArgumentsDelta { piece, delta },
    }
}
