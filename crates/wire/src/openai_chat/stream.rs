//! Streamed answers: chunks whose choices carry differences of a message.
//!
//! Hosts differ: some repeat an id or a name with every chunk, leave out a call's `index` or give every call
//! the same, send a first chunk without choices, end without `[DONE]`. `obfuscation` is padding and is left out.

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};
use serde_json::value::RawValue;

use super::response;
use crate::draft::Draft;
use crate::json::{array, as_object};
use crate::stream::{Heard, PieceKind, StreamEvent, failure, place, string, text};
use crate::unfinished::{self, INCOMPLETE, MARK};

/// The members thoughts come in.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];
/// What a call's tool is given: a function's arguments, or a custom tool's input.
const GIVEN: [(&str, &str); 2] = [("function", "arguments"), ("custom", "input")];

/// An answer being streamed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    head: Draft,
    choices: BTreeMap<u64, Choice>,
    started: bool,
    done: bool,
}

#[derive(Clone, Debug, Default)]
struct Choice {
    fields: Draft,
    message: Draft,
    /// Elements of a `content` that is an array, text apart.
    content: Vec<String>,
    calls: Vec<Call>,
    /// The newest call of an index.
    newest: BTreeMap<u64, usize>,
    pieces: Pieces,
}

#[derive(Clone, Debug, Default)]
struct Call {
    fields: Draft,
    piece: usize,
}

/// What was told of the first choice.
#[derive(Clone, Debug, Default)]
struct Pieces {
    next: usize,
    thoughts: Option<usize>,
    message: Option<usize>,
    /// The piece that grew last.
    open: Option<usize>,
}

impl Stream {
    pub(crate) fn push(&mut self, data: &str, said: &mut Vec<StreamEvent>) -> Heard {
        let fields = Fields::parse(data).unwrap_or_default();
        if let Some(error) = fields.get(&["error"]).filter(|error| error.get() != "null") {
            said.push(StreamEvent::Failed(failure(error)));
            return Heard::Something;
        }
        let Some(choices) = fields.get(&["choices"]) else {
            return Heard::Nothing;
        };
        for (key, value) in fields.iter() {
            match key {
                "choices" | "obfuscation" | "object" => {}
                _ => self.head.fill(key, value),
            }
        }
        let choices: Vec<&RawValue> = serde_json::from_str(choices.get()).unwrap_or_default();
        if !self.started && !choices.is_empty() {
            self.started = true;
            said.push(StreamEvent::Started {
                id: self.head.string("id"),
                model: self.head.string("model"),
            });
        }
        for choice in choices {
            self.choice(choice, said);
        }
        let usage = fields.get(&["usage"]).filter(|usage| usage.get() != "null");
        if let Some(Ok(usage)) = usage.map(|usage| response::read_usage(usage.get())) {
            said.push(StreamEvent::Usage(usage));
        }
        Heard::Something
    }

    /// The host says that nothing more comes.
    pub(crate) fn done(&mut self) {
        self.done = true;
    }

    pub(crate) fn ended(&self) -> bool {
        let finished = |choice: &Choice| choice.fields.string("finish_reason").is_some();
        self.done || (!self.choices.is_empty() && self.choices.values().all(finished))
    }

    pub(crate) fn body(&self) -> String {
        let mut body = self.head.clone();
        body.set_string("object", "chat.completion");
        let cut = !self.ended();
        let none = Choice::default();
        let nothing = (cut && self.choices.is_empty()).then_some(&none);
        let choices = self.choices.values().chain(nothing);
        if let Ok(choices) = Raw::parse(array(choices.map(|choice| choice.json(cut)))) {
            body.set_raw("choices", choices);
        }
        body.json()
    }

    fn choice(&mut self, choice: &RawValue, said: &mut Vec<StreamEvent>) {
        let Ok(fields) = Fields::parse(choice.get()) else {
            return;
        };
        let index = place(&fields, "index").unwrap_or(0);
        let mut silent = Vec::new();
        let said = if index == 0 { said } else { &mut silent };
        let choice = self.choices.entry(index).or_default();
        if let Some(delta) = fields.get(&["delta"]).or(fields.get(&["message"])) {
            choice.grow(delta.get(), said);
        }
        for (key, value) in fields.iter() {
            match key {
                "delta" | "message" => {}
                "logprobs" if value.get() != "null" => choice.fields.merge(key, value),
                _ => choice.fields.fill(key, value),
            }
        }
        if let Some(word) = string(&fields, "finish_reason") {
            choice.pieces.close(said);
            let finish = Some(response::finish_reason(&word));
            said.push(StreamEvent::Finished { finish });
        }
    }
}

impl Choice {
    fn grow(&mut self, delta: &str, said: &mut Vec<StreamEvent>) {
        let fields = Fields::parse(delta).unwrap_or_default();
        for (key, value) in fields.iter() {
            match key {
                "tool_calls" if value.get().starts_with('[') => {
                    let calls: Vec<&RawValue> =
                        serde_json::from_str(value.get()).unwrap_or_default();
                    calls.into_iter().for_each(|call| self.call(call, said));
                }
                "content" if value.get().starts_with('[') => self.parts(value, said),
                _ => {
                    self.message.merge(key, value);
                    if let Some(delta) = text(value).filter(|delta| !delta.is_empty()) {
                        self.pieces.say(key, delta, said);
                    }
                }
            }
        }
    }

    /// Some hosts send content as parts: texts grow together, others stand before them.
    fn parts(&mut self, value: &RawValue, said: &mut Vec<StreamEvent>) {
        let parts: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        for part in parts {
            let fields = Fields::parse(part.get()).unwrap_or_default();
            match string(&fields, "text") {
                Some(delta) if string(&fields, "type").as_deref() == Some("text") => {
                    self.message.append("content", &delta);
                    self.pieces.say("content", delta, said);
                }
                _ => self.content.push(part.get().to_owned()),
            }
        }
    }

    fn call(&mut self, call: &RawValue, said: &mut Vec<StreamEvent>) {
        let Ok(fields) = Fields::parse(call.get()) else {
            return;
        };
        let id = string(&fields, "id").filter(|id| !id.is_empty());
        let index = place(&fields, "index");
        let at = match self.known(index, id.as_deref()) {
            Some(at) => at,
            None => {
                let piece = self.pieces.begin(said);
                self.calls.push(Call {
                    fields: Draft::default(),
                    piece,
                });
                self.calls.len() - 1
            }
        };
        if let Some(index) = index {
            self.newest.insert(index, at);
        }
        if let Some(call) = self.calls.get_mut(at) {
            call.grow(&fields, said);
            self.pieces.open = Some(call.piece);
        }
    }

    /// The call a difference belongs to. Another id is another call, whatever the index says.
    fn known(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let at = match index {
            Some(index) => self.newest.get(&index).copied()?,
            None => self.calls.len().checked_sub(1)?,
        };
        let now = self.calls.get(at)?.fields.string("id");
        let now = now.filter(|now| !now.is_empty());
        let other = id.is_some_and(|id| now.is_some_and(|now| now != id));
        (!other).then_some(at)
    }

    fn json(&self, cut: bool) -> String {
        let mut message = self.message.clone();
        if !message.has("role") {
            message.set_string("role", "assistant");
        }
        if !self.content.is_empty() {
            let mut parts = self.content.clone();
            if let Some(text) = message.string("content") {
                let mut part = Draft::default();
                part.set_string("type", "text");
                part.set_string("text", &text);
                parts.push(part.json());
            }
            if let Ok(parts) = Raw::parse(array(parts)) {
                message.set_raw("content", parts);
            }
        }
        let unfinished = cut && self.fields.string("finish_reason").is_none();
        if !self.calls.is_empty() {
            let last = self.calls.len() - 1;
            let calls = self.calls.iter().enumerate();
            let calls = calls.map(|(at, call)| call.json(unfinished, at == last));
            if let Ok(calls) = Raw::parse(array(calls)) {
                message.set_raw("tool_calls", calls);
            }
        } else if unfinished {
            message.set_raw(MARK, unfinished::mark());
        }
        let mut fields = self.fields.clone();
        if let Ok(message) = Raw::parse(message.json()) {
            fields.set_raw("message", message);
        }
        if unfinished {
            fields.set_string("finish_reason", INCOMPLETE);
        }
        fields.json()
    }
}

impl Call {
    fn grow(&mut self, fields: &Fields<'_>, said: &mut Vec<StreamEvent>) {
        let fresh = self.name().is_none();
        let mut given = Vec::new();
        for (key, value) in fields.iter().filter(|(key, _)| *key != "index") {
            let Some((_, argument)) = GIVEN.iter().find(|(tool, _)| *tool == key) else {
                self.fields.merge(key, value);
                continue;
            };
            let members = Fields::parse(value.get()).unwrap_or_default();
            self.fields.object(key, |tool| {
                for (key, value) in members.iter() {
                    // A name comes at once; hosts that repeat it mean no longer one.
                    let now = tool.string(key).filter(|_| key == "name");
                    if now.is_none() || now != text(value) {
                        tool.merge(key, value);
                    }
                }
            });
            given.extend(string(&members, argument).filter(|delta| !delta.is_empty()));
        }
        let piece = self.piece;
        if fresh && let Some(name) = self.name() {
            let kind = PieceKind::Call {
                id: self.fields.string("id"),
                name: Some(name),
            };
            said.push(StreamEvent::ItemAdded { piece, kind });
        }
        let deltas = given.into_iter();
        said.extend(deltas.map(|delta| StreamEvent::ArgumentsDelta { piece, delta }));
    }

    fn name(&self) -> Option<String> {
        let tool = |(tool, _): &(&str, &str)| self.fields.inner(tool)?.string("name");
        GIVEN.iter().find_map(tool)
    }

    fn json(&self, cut: bool, last: bool) -> String {
        let mut fields = self.fields.clone();
        if !fields.has("type") && fields.has("function") {
            fields.set_string("type", "function");
        }
        let whole = || {
            let function = self.fields.inner("function")?;
            as_object(&function.string("arguments")?).map(drop)
        };
        if cut && (last || whole().is_none()) {
            fields.set_raw(MARK, unfinished::mark());
        }
        fields.json()
    }
}

impl Pieces {
    fn say(&mut self, key: &str, delta: String, said: &mut Vec<StreamEvent>) {
        let thoughts = THOUGHTS.contains(&key);
        if !thoughts && !matches!(key, "content" | "refusal") {
            return;
        }
        let (slot, kind) = match thoughts {
            true => (self.thoughts, PieceKind::Reasoning),
            false => (self.message, PieceKind::Message),
        };
        let piece = slot.unwrap_or_else(|| {
            let piece = self.begin(said);
            said.push(StreamEvent::ItemAdded { piece, kind });
            piece
        });
        let slot = if thoughts {
            &mut self.thoughts
        } else {
            &mut self.message
        };
        *slot = Some(piece);
        self.open = Some(piece);
        said.push(match key {
            "content" => StreamEvent::TextDelta { piece, delta },
            "refusal" => StreamEvent::RefusalDelta { piece, delta },
            _ => StreamEvent::ReasoningDelta { piece, delta },
        });
    }

    /// A new piece; the one before is whole.
    fn begin(&mut self, said: &mut Vec<StreamEvent>) -> usize {
        self.close(said);
        self.next += 1;
        self.next - 1
    }

    fn close(&mut self, said: &mut Vec<StreamEvent>) {
        if let Some(piece) = self.open.take() {
            said.push(StreamEvent::ItemDone { piece });
        }
    }
}
