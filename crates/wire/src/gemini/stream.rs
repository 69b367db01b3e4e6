//! Streamed answers: whole responses, each with the parts that are new.
//!
//! Neighbouring texts of one kind are one part, as in an answer that is not streamed; a signature that comes
//! behind its text in an empty part belongs to it, and empty parts that say nothing are left out. Calls may
//! come argument by argument (`partialArgs`).

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};
use serde_json::value::RawValue;

use super::arguments::PartialArguments;
use super::names::peek_field;
use super::response;
use crate::model::json::{json_array, string_field, string_value};
use crate::model::json_builder::JsonBuilder;
use crate::stream::{
    ParsedEvent, PieceKind, StreamEvent, StreamParser, index_field, parse_failure,
};
use crate::truncation::{self, INCOMPLETE, MARK};

/// The members of a part of text that can be joined with its neighbours.
const JOINED: [&str; 4] = ["text", "thought", "thoughtSignature", "thought_signature"];

/// An answer being streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeminiStream {
    head: JsonBuilder,
    candidates: BTreeMap<u64, StreamedCandidate>,
    started: bool,
    blocked: bool,
}

#[derive(Clone, Debug, Default)]
struct StreamedCandidate {
    fields: JsonBuilder,
    content: JsonBuilder,
    parts: Vec<StreamedPart>,
    /// Whether the last part may still grow.
    open: bool,
    finished: bool,
}

#[derive(Clone, Debug)]
enum StreamedPart {
    Text(JsonBuilder),
    Call(StreamedCall),
    Other(String),
}

#[derive(Clone, Debug)]
struct StreamedCall {
    part: JsonBuilder,
    function: JsonBuilder,
    arguments: Option<PartialArguments>,
    open: bool,
}

impl StreamParser for GeminiStream {
    fn push_event(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> ParsedEvent {
        // What is no object has none of the members below and is ignored.
        let fields = Fields::parse(data).unwrap_or_default();
        // `null` says the same as no member.
        if let Some(error) = fields.get(&["error"]).filter(|error| error.get() != "null") {
            events.push(StreamEvent::Failed(parse_failure(error)));
            return ParsedEvent::Recognized;
        }
        let candidates = fields.get(&["candidates"]);
        let feedback = peek_field(&fields, "promptFeedback");
        let usage = peek_field(&fields, "usageMetadata");
        // An event without any of these says nothing about the answer.
        if candidates.is_none() && feedback.is_none() && usage.is_none() {
            return ParsedEvent::Ignored;
        }
        for (key, value) in fields.iter().filter(|(key, _)| *key != "candidates") {
            self.head.set_unless_empty(key, value);
        }
        // Every event is a whole response and may repeat the id and the model.
        if !std::mem::replace(&mut self.started, true) {
            let first = |name| peek_field(&fields, name).and_then(string_value);
            events.push(StreamEvent::Started {
                id: first("responseId"),
                model: first("modelVersion"),
            });
        }
        let list = candidates.map(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()));
        for candidate in list.and_then(Result::ok).unwrap_or_default() {
            self.push_candidate(candidate, events);
        }
        // A refused prompt has no candidate that could say why the answer ends.
        let reason = feedback.and_then(|feedback| {
            peek_field(&Fields::parse(feedback.get()).ok()?, "blockReason").map(drop)
        });
        if reason.is_some() && !self.blocked {
            self.blocked = true;
            let finish = Some(contexture_ir::FinishReason::ContentFilter);
            events.push(StreamEvent::Finished { finish });
        }
        if let Some(Ok(usage)) = usage.map(response::parse_usage) {
            events.push(StreamEvent::Usage(usage));
        }
        ParsedEvent::Recognized
    }

    fn is_complete(&self) -> bool {
        let finished = |candidate: &StreamedCandidate| candidate.finished;
        self.blocked || (!self.candidates.is_empty() && self.candidates.values().all(finished))
    }

    fn response_body(&self) -> String {
        let mut body = JsonBuilder::default();
        let cut = !self.is_complete();
        if cut || !self.candidates.is_empty() {
            let none = StreamedCandidate::default();
            // A stream cut before its first candidate still gives a body that can be lifted.
            let nothing = self.candidates.is_empty().then_some(&none);
            let candidates = self.candidates.values().chain(nothing);
            if let Ok(candidates) = Raw::parse(json_array(candidates.map(|one| one.to_json(cut)))) {
                body.set_raw("candidates", candidates);
            }
        }
        body.set_members(&self.head.to_json(), |_| true);
        body.to_json()
    }

    fn clone_boxed(&self) -> Box<dyn StreamParser> {
        Box::new(self.clone())
    }
}

impl GeminiStream {
    fn push_candidate(&mut self, candidate: &RawValue, events: &mut Vec<StreamEvent>) {
        let Ok(fields) = Fields::parse(candidate.get()) else {
            return;
        };
        let index = index_field(&fields, "index").unwrap_or(0);
        // Only the first candidate is reported live; the others are collected for the body.
        let mut silent = Vec::new();
        let events = if index == 0 { events } else { &mut silent };
        let candidate = self.candidates.entry(index).or_default();
        for (key, value) in fields.iter() {
            match key {
                "content" => candidate.push_content(value, events),
                // Its lists grow from event to event; other members are replaced.
                "logprobsResult" => candidate.fields.merge_delta(key, value),
                _ => candidate.fields.set_unless_empty(key, value),
            }
        }
        if let Some(word) = peek_field(&fields, "finishReason").and_then(string_value) {
            // No event of its own ends a part; the reason to finish ends the last one.
            candidate.close_part(events);
            // Repeated reasons are reported once.
            if !std::mem::replace(&mut candidate.finished, true) {
                let mut parts = candidate.parts.iter();
                let calls = parts.any(|piece| matches!(piece, StreamedPart::Call(_)));
                let finish = Some(response::parse_finish_reason(&word, calls));
                events.push(StreamEvent::Finished { finish });
            }
        }
    }
}

impl StreamedCandidate {
    fn push_content(&mut self, content: &RawValue, events: &mut Vec<StreamEvent>) {
        let Ok(fields) = Fields::parse(content.get()) else {
            return;
        };
        for (key, value) in fields.iter().filter(|(key, _)| *key != "parts") {
            self.content.set_unless_empty(key, value);
        }
        let parts = fields.get(&["parts"]).map(|parts| parts.get());
        let parts: Vec<&RawValue> = serde_json::from_str(parts.unwrap_or("[]")).unwrap_or_default();
        for part in parts {
            let fields = Fields::parse(part.get()).unwrap_or_default();
            match peek_field(&fields, "functionCall") {
                Some(call) => self.push_call(part, call, events),
                None => self.push_part(part, &fields, events),
            }
        }
    }

    fn push_part(&mut self, part: &RawValue, fields: &Fields<'_>, events: &mut Vec<StreamEvent>) {
        let words = string_field(fields, "text");
        // A part with other members cannot be joined with its neighbours and stands alone.
        let plain = fields.iter().all(|(key, _)| JOINED.contains(&key));
        let Some(delta) = words.filter(|_| plain) else {
            self.begin_part(
                StreamedPart::Other(part.get().to_owned()),
                other_kind(fields),
                events,
            );
            return self.close_part(events);
        };
        let signed = peek_field(fields, "thoughtSignature");
        if delta.is_empty() && signed.is_none() {
            return;
        }
        let thought = fields.get(&["thought"]).map(RawValue::get) == Some("true");
        if !self.can_join_last_part(&delta, signed, thought) {
            let kind = match thought {
                true => PieceKind::Reasoning,
                false => PieceKind::Message,
            };
            let mut draft = JsonBuilder::from_object(part.get());
            draft.set_string("text", "");
            self.begin_part(StreamedPart::Text(draft), kind, events);
        }
        let piece = self.parts.len().saturating_sub(1);
        if let Some(StreamedPart::Text(draft)) = self.parts.last_mut() {
            draft.append_text("text", &delta);
            for (key, value) in fields.iter().filter(|(key, _)| *key != "text") {
                draft.set(key, value);
            }
        }
        match thought {
            _ if delta.is_empty() => {}
            true => events.push(StreamEvent::ReasoningDelta { piece, delta }),
            false => events.push(StreamEvent::TextDelta { piece, delta }),
        }
    }

    /// Whether text joins the part before: one of its kind, neither of them signed; or an empty one that
    /// signs it.
    fn can_join_last_part(&self, delta: &str, signed: Option<&RawValue>, thought: bool) -> bool {
        let Some(StreamedPart::Text(before)) = self.parts.last() else {
            return false;
        };
        let alike = (before.get_raw("thought").map(Raw::get) == Some("true")) == thought;
        let free =
            !before.contains_key("thoughtSignature") && !before.contains_key("thought_signature");
        alike && free && (signed.is_none() || delta.is_empty())
    }

    fn push_call(&mut self, part: &RawValue, call: &RawValue, events: &mut Vec<StreamEvent>) {
        let fields = Fields::parse(call.get()).unwrap_or_default();
        let name = string_field(&fields, "name");
        let open = matches!(self.parts.last(), Some(StreamedPart::Call(call)) if call.open);
        if name.is_some() || !open {
            let kind = PieceKind::Call {
                id: string_field(&fields, "id"),
                name,
            };
            let fresh = StreamedCall {
                part: JsonBuilder::default(),
                function: JsonBuilder::default(),
                arguments: None,
                open: true,
            };
            self.begin_part(StreamedPart::Call(fresh), kind, events);
        }
        let piece = self.parts.len().saturating_sub(1);
        let Some(StreamedPart::Call(now)) = self.parts.last_mut() else {
            return;
        };
        now.push_delta(part, &fields);
        if peek_field(&fields, "willContinue").is_none_or(|more| more.get() != "true") {
            now.open = false;
            let delta = now.arguments_json().unwrap_or_default();
            if !delta.is_empty() {
                events.push(StreamEvent::ArgumentsDelta { piece, delta });
            }
            self.close_part(events);
        }
    }

    fn begin_part(&mut self, piece: StreamedPart, kind: PieceKind, events: &mut Vec<StreamEvent>) {
        self.close_part(events);
        let number = self.parts.len();
        self.parts.push(piece);
        self.open = true;
        events.push(StreamEvent::ItemAdded {
            piece: number,
            kind,
        });
    }

    /// The last piece is whole.
    fn close_part(&mut self, events: &mut Vec<StreamEvent>) {
        if std::mem::take(&mut self.open) {
            let piece = self.parts.len().saturating_sub(1);
            events.push(StreamEvent::ItemDone { piece });
        }
    }

    fn to_json(&self, cut: bool) -> String {
        let cut = cut && !self.finished;
        let last = self.parts.len().saturating_sub(1);
        let parts = self.parts.iter().enumerate();
        let parts = parts.map(|(at, piece)| piece.to_json(cut && at == last));
        let mut content = self.content.clone();
        if let Ok(parts) = Raw::parse(json_array(parts)) {
            content.set_raw("parts", parts);
        }
        let mut fields = JsonBuilder::default();
        if let Ok(content) = Raw::parse(content.to_json()) {
            fields.set_raw("content", content);
        }
        fields.set_members(&self.fields.to_json(), |_| true);
        if cut {
            fields.set_string("finishReason", INCOMPLETE);
        }
        fields.to_json()
    }
}

impl StreamedPart {
    fn to_json(&self, cut: bool) -> String {
        match self {
            Self::Other(part) => part.clone(),
            Self::Text(draft) if cut => {
                let mut draft = draft.clone();
                draft.set_raw(MARK, truncation::truncation_mark());
                draft.to_json()
            }
            Self::Text(draft) => draft.to_json(),
            Self::Call(call) => call.to_json(),
        }
    }
}

impl StreamedCall {
    fn push_delta(&mut self, part: &RawValue, fields: &Fields<'_>) {
        let own = |key: &str| key != "functionCall" && key != "function_call";
        self.part.set_members(part.get(), own);
        for (key, value) in fields.iter() {
            match key {
                "willContinue" | "will_continue" => {}
                "partialArgs" | "partial_args" => self
                    .arguments
                    .get_or_insert_with(PartialArguments::default)
                    .push_pieces(value),
                _ => self.function.set_unless_empty(key, value),
            }
        }
    }

    /// Returns the arguments, if they are known.
    fn arguments_json(&self) -> Option<String> {
        match &self.arguments {
            Some(arguments) => arguments.to_json(),
            None => Some(self.function.get_raw("args")?.get().to_owned()),
        }
    }

    fn to_json(&self) -> String {
        let mut part = self.part.clone();
        let mut function = self.function.clone();
        let given = self.arguments.as_ref().map(PartialArguments::to_json);
        match given {
            Some(Some(args)) if !self.open => {
                if let Ok(args) = Raw::parse(args) {
                    function.set_raw("args", args);
                }
            }
            Some(_) => {
                let came = self.arguments.as_ref().map(PartialArguments::pieces_json);
                part.set_raw(MARK, Raw::string(&came.unwrap_or_default()));
            }
            None if self.open => part.set_raw(MARK, Raw::string("")),
            None => {}
        }
        if !function.contains_key("name") {
            function.set_string("name", "");
        }
        if let Ok(function) = Raw::parse(function.to_json()) {
            part.set_raw("functionCall", function);
        }
        part.to_json()
    }
}

fn other_kind(fields: &Fields<'_>) -> PieceKind {
    let mut keys = fields.iter().map(|(key, _)| key);
    PieceKind::Other(keys.next().unwrap_or("part").to_owned())
}
