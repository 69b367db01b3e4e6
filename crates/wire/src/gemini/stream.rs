//! Streamed answers: whole responses, each with the parts that are new.
//!
//! Neighbouring texts of one kind are one part, as in an answer that is not streamed; a signature that comes
//! behind its text in an empty part belongs to it, and empty parts that say nothing are left out. Calls may
//! come argument by argument (`partialArgs`).

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};
use serde_json::value::RawValue;

use super::arguments::Arguments;
use super::names::peek;
use super::response;
use crate::draft::Draft;
use crate::json::array;
use crate::stream::{Heard, PieceKind, StreamEvent, failure, place, string, text};
use crate::unfinished::{self, INCOMPLETE, MARK};

/// The members of a part of text that can be joined with its neighbours.
const JOINED: [&str; 4] = ["text", "thought", "thoughtSignature", "thought_signature"];

/// An answer being streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    head: Draft,
    candidates: BTreeMap<u64, Candidate>,
    started: bool,
    blocked: bool,
}

#[derive(Clone, Debug, Default)]
struct Candidate {
    fields: Draft,
    content: Draft,
    parts: Vec<Piece>,
    /// Whether the last part may still grow.
    open: bool,
    finished: bool,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(Draft),
    Call(Call),
    Other(String),
}

#[derive(Clone, Debug)]
struct Call {
    part: Draft,
    function: Draft,
    arguments: Option<Arguments>,
    open: bool,
}

impl Stream {
    pub(crate) fn push(&mut self, data: &str, said: &mut Vec<StreamEvent>) -> Heard {
        let fields = Fields::parse(data).unwrap_or_default();
        if let Some(error) = fields.get(&["error"]).filter(|error| error.get() != "null") {
            said.push(StreamEvent::Failed(failure(error)));
            return Heard::Something;
        }
        let candidates = fields.get(&["candidates"]);
        let feedback = peek(&fields, "promptFeedback");
        let usage = peek(&fields, "usageMetadata");
        if candidates.is_none() && feedback.is_none() && usage.is_none() {
            return Heard::Nothing;
        }
        for (key, value) in fields.iter().filter(|(key, _)| *key != "candidates") {
            self.head.fill(key, value);
        }
        if !std::mem::replace(&mut self.started, true) {
            let first = |name| peek(&fields, name).and_then(text);
            said.push(StreamEvent::Started {
                id: first("responseId"),
                model: first("modelVersion"),
            });
        }
        let list = candidates.map(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()));
        for candidate in list.and_then(Result::ok).unwrap_or_default() {
            self.candidate(candidate, said);
        }
        let reason = feedback.and_then(|feedback| {
            peek(&Fields::parse(feedback.get()).ok()?, "blockReason").map(drop)
        });
        if reason.is_some() && !self.blocked {
            self.blocked = true;
            let finish = Some(contexture_ir::FinishReason::ContentFilter);
            said.push(StreamEvent::Finished { finish });
        }
        if let Some(Ok(usage)) = usage.map(response::usage) {
            said.push(StreamEvent::Usage(usage));
        }
        Heard::Something
    }

    pub(crate) fn ended(&self) -> bool {
        let finished = |candidate: &Candidate| candidate.finished;
        self.blocked || (!self.candidates.is_empty() && self.candidates.values().all(finished))
    }

    pub(crate) fn body(&self) -> String {
        let mut body = Draft::default();
        let cut = !self.ended();
        if cut || !self.candidates.is_empty() {
            let none = Candidate::default();
            let nothing = self.candidates.is_empty().then_some(&none);
            let candidates = self.candidates.values().chain(nothing);
            if let Ok(candidates) = Raw::parse(array(candidates.map(|one| one.json(cut)))) {
                body.set_raw("candidates", candidates);
            }
        }
        body.set_all(&self.head.json(), |_| true);
        body.json()
    }

    fn candidate(&mut self, candidate: &RawValue, said: &mut Vec<StreamEvent>) {
        let Ok(fields) = Fields::parse(candidate.get()) else {
            return;
        };
        let index = place(&fields, "index").unwrap_or(0);
        let mut silent = Vec::new();
        let said = if index == 0 { said } else { &mut silent };
        let candidate = self.candidates.entry(index).or_default();
        for (key, value) in fields.iter() {
            match key {
                "content" => candidate.content(value, said),
                "logprobsResult" => candidate.fields.merge(key, value),
                _ => candidate.fields.fill(key, value),
            }
        }
        if let Some(word) = peek(&fields, "finishReason").and_then(text) {
            candidate.close(said);
            if !std::mem::replace(&mut candidate.finished, true) {
                let mut parts = candidate.parts.iter();
                let calls = parts.any(|piece| matches!(piece, Piece::Call(_)));
                let finish = Some(response::finish_from(&word, calls));
                said.push(StreamEvent::Finished { finish });
            }
        }
    }
}

impl Candidate {
    fn content(&mut self, content: &RawValue, said: &mut Vec<StreamEvent>) {
        let Ok(fields) = Fields::parse(content.get()) else {
            return;
        };
        for (key, value) in fields.iter().filter(|(key, _)| *key != "parts") {
            self.content.fill(key, value);
        }
        let parts = fields.get(&["parts"]).map(|parts| parts.get());
        let parts: Vec<&RawValue> = serde_json::from_str(parts.unwrap_or("[]")).unwrap_or_default();
        for part in parts {
            let fields = Fields::parse(part.get()).unwrap_or_default();
            match peek(&fields, "functionCall") {
                Some(call) => self.call(part, call, said),
                None => self.part(part, &fields, said),
            }
        }
    }

    fn part(&mut self, part: &RawValue, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) {
        let words = string(fields, "text");
        let plain = fields.iter().all(|(key, _)| JOINED.contains(&key));
        let Some(delta) = words.filter(|_| plain) else {
            self.begin(Piece::Other(part.get().to_owned()), other(fields), said);
            return self.close(said);
        };
        let signed = peek(fields, "thoughtSignature");
        if delta.is_empty() && signed.is_none() {
            return;
        }
        let thought = fields.get(&["thought"]).map(RawValue::get) == Some("true");
        if !self.joins(&delta, signed, thought) {
            let kind = match thought {
                true => PieceKind::Reasoning,
                false => PieceKind::Message,
            };
            let mut draft = Draft::of(part.get());
            draft.set_string("text", "");
            self.begin(Piece::Text(draft), kind, said);
        }
        let piece = self.parts.len().saturating_sub(1);
        if let Some(Piece::Text(draft)) = self.parts.last_mut() {
            draft.append("text", &delta);
            for (key, value) in fields.iter().filter(|(key, _)| *key != "text") {
                draft.set(key, value);
            }
        }
        match thought {
            _ if delta.is_empty() => {}
            true => said.push(StreamEvent::ReasoningDelta { piece, delta }),
            false => said.push(StreamEvent::TextDelta { piece, delta }),
        }
    }

    /// Whether text joins the part before: one of its kind, neither of them signed; or an empty one that
    /// signs it.
    fn joins(&self, delta: &str, signed: Option<&RawValue>, thought: bool) -> bool {
        let Some(Piece::Text(before)) = self.parts.last() else {
            return false;
        };
        let alike = (before.raw("thought").map(Raw::get) == Some("true")) == thought;
        let free = !before.has("thoughtSignature") && !before.has("thought_signature");
        alike && free && (signed.is_none() || delta.is_empty())
    }

    fn call(&mut self, part: &RawValue, call: &RawValue, said: &mut Vec<StreamEvent>) {
        let fields = Fields::parse(call.get()).unwrap_or_default();
        let name = string(&fields, "name");
        let open = matches!(self.parts.last(), Some(Piece::Call(call)) if call.open);
        if name.is_some() || !open {
            let kind = PieceKind::Call {
                id: string(&fields, "id"),
                name,
            };
            let fresh = Call {
                part: Draft::default(),
                function: Draft::default(),
                arguments: None,
                open: true,
            };
            self.begin(Piece::Call(fresh), kind, said);
        }
        let piece = self.parts.len().saturating_sub(1);
        let Some(Piece::Call(now)) = self.parts.last_mut() else {
            return;
        };
        now.grow(part, &fields);
        if peek(&fields, "willContinue").is_none_or(|more| more.get() != "true") {
            now.open = false;
            let delta = now.given().unwrap_or_default();
            if !delta.is_empty() {
                said.push(StreamEvent::ArgumentsDelta { piece, delta });
            }
            self.close(said);
        }
    }

    fn begin(&mut self, piece: Piece, kind: PieceKind, said: &mut Vec<StreamEvent>) {
        self.close(said);
        let number = self.parts.len();
        self.parts.push(piece);
        self.open = true;
        said.push(StreamEvent::ItemAdded {
            piece: number,
            kind,
        });
    }

    /// The last piece is whole.
    fn close(&mut self, said: &mut Vec<StreamEvent>) {
        if std::mem::take(&mut self.open) {
            let piece = self.parts.len().saturating_sub(1);
            said.push(StreamEvent::ItemDone { piece });
        }
    }

    fn json(&self, cut: bool) -> String {
        let cut = cut && !self.finished;
        let last = self.parts.len().saturating_sub(1);
        let parts = self.parts.iter().enumerate();
        let parts = parts.map(|(at, piece)| piece.json(cut && at == last));
        let mut content = self.content.clone();
        if let Ok(parts) = Raw::parse(array(parts)) {
            content.set_raw("parts", parts);
        }
        let mut fields = Draft::default();
        if let Ok(content) = Raw::parse(content.json()) {
            fields.set_raw("content", content);
        }
        fields.set_all(&self.fields.json(), |_| true);
        if cut {
            fields.set_string("finishReason", INCOMPLETE);
        }
        fields.json()
    }
}

impl Piece {
    fn json(&self, cut: bool) -> String {
        match self {
            Self::Other(part) => part.clone(),
            Self::Text(draft) if cut => {
                let mut draft = draft.clone();
                draft.set_raw(MARK, unfinished::mark());
                draft.json()
            }
            Self::Text(draft) => draft.json(),
            Self::Call(call) => call.json(),
        }
    }
}

impl Call {
    fn grow(&mut self, part: &RawValue, fields: &Fields<'_>) {
        let own = |key: &str| key != "functionCall" && key != "function_call";
        self.part.set_all(part.get(), own);
        for (key, value) in fields.iter() {
            match key {
                "willContinue" | "will_continue" => {}
                "partialArgs" | "partial_args" => self
                    .arguments
                    .get_or_insert_with(Arguments::default)
                    .take(value),
                _ => self.function.fill(key, value),
            }
        }
    }

    /// The arguments, if they can be told.
    fn given(&self) -> Option<String> {
        match &self.arguments {
            Some(arguments) => arguments.json(),
            None => Some(self.function.raw("args")?.get().to_owned()),
        }
    }

    fn json(&self) -> String {
        let mut part = self.part.clone();
        let mut function = self.function.clone();
        let given = self.arguments.as_ref().map(Arguments::json);
        match given {
            Some(Some(args)) if !self.open => {
                if let Ok(args) = Raw::parse(args) {
                    function.set_raw("args", args);
                }
            }
            Some(_) => {
                let came = self.arguments.as_ref().map(Arguments::came);
                part.set_raw(MARK, Raw::string(&came.unwrap_or_default()));
            }
            None if self.open => part.set_raw(MARK, Raw::string("")),
            None => {}
        }
        if !function.has("name") {
            function.set_string("name", "");
        }
        if let Ok(function) = Raw::parse(function.json()) {
            part.set_raw("functionCall", function);
        }
        part.json()
    }
}

fn other(fields: &Fields<'_>) -> PieceKind {
    let mut keys = fields.iter().map(|(key, _)| key);
    PieceKind::Other(keys.next().unwrap_or("part").to_owned())
}
