//! One native message of the model: what is said, and the calls made.

use std::collections::BTreeSet;

use contexture_ir::{
    Extension, Extra, FunctionCall, Message, Part, Raw, Reasoning, TextPart, quote,
};

use super::call::{FUNCTION, LEGACY};
use super::content::CONTENT;
use super::custom;
use super::message::{ANSWER, CITATIONS, CITED, DETAILS, LIST, MESSAGE, REFUSAL, THOUGHTS};
use super::part::{self, Native};
use super::words::NAME;
use crate::carry::{hinted, native_key, tell_foreign};
use crate::function_name::OPENAI;
use crate::json::{Object, array};
use crate::loss::{LossKind, Losses};
use crate::openai::{unprefixed, without};
use crate::openai_shapes::citations_of_responses;

/// Whether a message is sent to a model or comes from one: what comes has its content as one string,
/// and the sound of a spoken answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Request,
    Response,
}

/// A call with the id to write.
pub(super) enum Call<'a> {
    Function(&'a FunctionCall, &'a str),
    Other(&'a Extension),
}

/// The items of one native message, each with its index in the run.
#[derive(Default)]
pub(super) struct Step<'a> {
    pub(super) thoughts: Vec<(usize, &'a Reasoning)>,
    pub(super) said: Vec<(usize, &'a Message)>,
    pub(super) calls: Vec<(usize, Call<'a>)>,
    /// Whether the role is left out, as some hosts do in a response.
    pub(super) nameless: bool,
}

impl Step<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.thoughts.is_empty() && self.said.is_empty() && self.calls.is_empty()
    }

    /// The native message; nothing if there is nothing to write.
    pub(super) fn write(&self, place: Place, losses: &mut Losses) -> Option<String> {
        let own = self.own_fields();
        let answer = unprefixed(ANSWER, &own);
        let own = without(&[ANSWER], &own);
        let shape = hinted(&own, CONTENT);
        let refusal = hinted(&own, REFUSAL);
        let words = self.words(refusal.as_deref(), shape.as_deref(), place, losses);
        let calls = self.write_calls(place, losses);
        let silent = words.is_empty() && calls.is_empty() && shape.is_none();
        if silent
            && self.thoughts.is_empty()
            && !own.iter().any(|(key, _)| native_key(key).is_some())
        {
            return None;
        }
        let mut object = Object::new();
        if !self.nameless {
            object.string("role", "assistant");
        }
        object.maybe("content", words.content(shape.as_deref(), place).as_deref());
        object.maybe("refusal", words.refusal.as_deref().map(quote).as_deref());
        object.maybe("audio", words.audio.as_deref());
        object.maybe(CITATIONS, words.citations.as_ref().map(Raw::get));
        self.write_thoughts(&mut object, losses);
        match calls.as_slice() {
            [] => {}
            [(LegacyCall(true), call)] => {
                object.raw("function_call", call);
            }
            calls => {
                object.raw("tool_calls", &array(calls.iter().map(|(_, call)| call)));
            }
        }
        object.carried(&own);
        if place == Place::Response {
            object.carried(&answer);
        } else if let Some(index) = self.anchor() {
            let path = format!("[{index}]");
            tell_as(
                &answer,
                &path,
                "what a response says beside its words is not sent back",
                losses,
            );
        }
        Some(object.finish())
    }

    fn anchor(&self) -> Option<usize> {
        let said = self.said.first().map(|(index, _)| *index);
        said.or(self.calls.first().map(|(index, _)| *index))
    }

    /// The message's own fields, from wherever they are anchored; the first anchor of a name counts.
    fn own_fields(&self) -> Extra {
        let said = self
            .said
            .iter()
            .map(|(_, message)| message.extra.wire(NAME));
        let calls = self.calls.iter().filter_map(|(_, call)| match call {
            Call::Function(call, _) => Some(call.extra.wire(NAME)),
            Call::Other(_) => None,
        });
        let calls = calls.map(|wire| {
            let mut own = unprefixed(MESSAGE, &wire);
            for key in [CONTENT, REFUSAL] {
                if let Some(value) = wire.get(key) {
                    own.set(key, value.clone());
                }
            }
            own
        });
        let mut seen = BTreeSet::new();
        let mut all = Extra::new();
        for fields in said.chain(calls) {
            let fresh = fields.iter().filter(|(key, _)| !seen.contains(*key));
            all.extend(fresh.map(|(k, v)| (k.to_owned(), v.clone())).collect());
            seen.extend(fields.iter().map(|(key, _)| key.to_owned()));
        }
        all
    }

    fn words(
        &self,
        refusal: Option<&str>,
        shape: Option<&str>,
        place: Place,
        losses: &mut Losses,
    ) -> Words {
        let mut words = Words::default();
        let parts: usize = self
            .said
            .iter()
            .map(|(_, message)| message.content.len())
            .sum();
        let as_field = match (place, refusal) {
            (Place::Response, _) => shape != Some(LIST),
            (Place::Request, Some(word)) => word == "field",
            (Place::Request, None) => parts == 1,
        };
        for (nth, (index, message)) in self.said.iter().enumerate() {
            if nth > 0
                && !words.natives.is_empty()
                && words.breaks.last() != Some(&words.natives.len())
            {
                words.breaks.push(words.natives.len());
            }
            for (at, part) in message.content.iter().enumerate() {
                let path = format!("[{index}].content[{at}]");
                words.add(part, as_field, place, &path, losses);
            }
        }
        words
    }

    fn write_thoughts(&self, object: &mut Object, losses: &mut Losses) {
        for (nth, (index, item)) in self.thoughts.iter().enumerate() {
            let path = format!("[{index}]");
            tell_foreign(&item.extra, NAME, &path, losses);
            if nth > 0 {
                losses.push(path, LossKind::Item, "one message holds one thought");
                continue;
            }
            let wire = item.extra.wire(NAME);
            let texts = item.content.iter().flatten().filter_map(Part::as_text);
            let text = quote(&texts.collect::<Vec<_>>().join("\n\n"));
            match hinted(&wire, THOUGHTS).as_deref() {
                Some("reasoning_content") => {
                    object.raw("reasoning_content", &text);
                }
                Some("reasoning") => {
                    object.raw("reasoning", &text);
                }
                _ => {}
            }
            object.maybe(DETAILS, wire.get(DETAILS).map(Raw::get));
        }
    }

    fn write_calls(&self, place: Place, losses: &mut Losses) -> Vec<(LegacyCall, String)> {
        let legacy = self.calls.len() == 1;
        let write = |(index, call): &(usize, Call<'_>)| match call {
            Call::Function(call, id) => write_call((*index, call, id), legacy, place, losses),
            Call::Other(item) => {
                let path = format!("[{index}]");
                (LegacyCall(false), custom::write_call(item, &path, losses))
            }
        };
        self.calls.iter().map(write).collect()
    }
}

/// Tells of fields that have something to say.
fn tell_as(fields: &Extra, path: &str, why: &str, losses: &mut Losses) {
    for (key, value) in fields.iter() {
        if !matches!(value.get(), "null" | "[]" | "{}" | "\"\"") {
            losses.push(format!("{path}.{key}"), LossKind::Field, why);
        }
    }
}

/// Whether a call is written in the older shape.
struct LegacyCall(bool);

/// What a message says, sorted by where Chat has a place for it.
#[derive(Default)]
struct Words {
    natives: Vec<Native>,
    /// Where in `natives` another item's words begin.
    breaks: Vec<usize>,
    refusal: Option<String>,
    audio: Option<String>,
    citations: Option<Raw>,
}

impl Words {
    fn is_empty(&self) -> bool {
        self.natives.is_empty() && self.refusal.is_none() && self.audio.is_none()
    }

    fn add(&mut self, part: &Part, as_field: bool, place: Place, path: &str, losses: &mut Losses) {
        let native = match part {
            Part::Refusal(part) => {
                tell_foreign(&part.extra, NAME, path, losses);
                match &mut self.refusal {
                    refusal @ None if as_field => {
                        *refusal = Some(part.text.clone());
                        return;
                    }
                    Some(refusal) if as_field && place == Place::Response => {
                        refusal.push_str("\n\n");
                        refusal.push_str(&part.text);
                        return;
                    }
                    _ => {}
                }
                Some(part::write_refusal(part))
            }
            Part::InputImage(_) | Part::InputFile(_) => {
                losses.push(
                    path,
                    LossKind::Part,
                    "the model's message takes no pictures or files",
                );
                None
            }
            Part::Extension(part) => part::write_extension(part, path, losses),
            Part::OutputText(part) if part.extra.wire(NAME).get("audio").is_some() => {
                self.audio = write_audio(part, place, path, losses);
                return;
            }
            Part::OutputText(part) if part.extra.get(CITATIONS).is_some() => {
                self.cited(part, place, path, losses)
            }
            Part::InputText(part)
            | Part::OutputText(part)
            | Part::SummaryText(part)
            | Part::ReasoningText(part) => part::write_text(part, path, losses),
        };
        self.natives.extend(native);
    }

    /// A text with citations: they count the characters of the whole content, so they are those of its
    /// first text.
    fn cited(
        &mut self,
        part: &TextPart,
        place: Place,
        path: &str,
        losses: &mut Losses,
    ) -> Option<Native> {
        let came = hinted(&part.extra.wire(NAME), CITED).is_some();
        let taken = self.natives.is_empty() && (place == Place::Response || came);
        let list = part.extra.get(CITATIONS).filter(|_| taken);
        let Some(citations) = list.and_then(citations_of_responses) else {
            return part::write_text(part, path, losses);
        };
        self.citations = Some(citations);
        let mut bare = part.clone();
        bare.extra.remove(CITATIONS);
        part::write_text(&bare, path, losses)
    }

    fn content(&self, shape: Option<&str>, place: Place) -> Option<String> {
        let shape = match (place, shape) {
            (Place::Response, Some(LIST)) => Some("array"),
            (Place::Response, Some("array")) | (Place::Request, Some(LIST)) => None,
            (_, shape) => shape,
        };
        let texts: Option<Vec<&str>> = self
            .natives
            .iter()
            .map(|native| native.plain.as_deref())
            .collect();
        match texts {
            // A response has one string; a part we do not know is reason enough for an array.
            Some(texts)
                if place == Place::Response && texts.len() > 1 && shape != Some("array") =>
            {
                let mut joined = String::new();
                let mut breaks = self.breaks.iter().peekable();
                for (at, text) in texts.iter().enumerate() {
                    while breaks.next_if(|place| **place <= at).is_some() {
                        joined.push_str("\n\n");
                    }
                    joined.push_str(text);
                }
                Some(quote(&joined))
            }
            _ => part::write(&self.natives, shape, "null"),
        }
    }
}

/// The sound of a spoken answer: whole in a response, by its id in a request.
fn write_audio(part: &TextPart, place: Place, path: &str, losses: &mut Losses) -> Option<String> {
    let wire = part.extra.wire(NAME);
    let audio = wire.get("audio")?;
    if place == Place::Response {
        return Some(audio.get().to_owned());
    }
    let id = audio.fields()?.get(&["id"])?.get().to_owned();
    losses.push(
        format!("{path}.audio"),
        LossKind::Field,
        "the sound is sent back by its id",
    );
    Some(format!("{{\"id\":{id}}}"))
}

fn write_call(
    (index, call, id): (usize, &FunctionCall, &str),
    alone: bool,
    place: Place,
    losses: &mut Losses,
) -> (LegacyCall, String) {
    tell_foreign(&call.extra, NAME, &format!("[{index}]"), losses);
    let wire = call.extra.wire(NAME);
    let mut function = Object::new();
    let name = match place {
        Place::Request => OPENAI.write(&call.name, &format!("[{index}]"), losses),
        Place::Response => call.name.as_str().into(),
    };
    function.string("name", &name);
    match hinted(&wire, "~arguments").as_deref() {
        Some("absent") if call.arguments.is_empty() => {}
        Some("value") if Raw::parse(call.arguments.as_str()).is_ok() => {
            function.raw("arguments", &call.arguments);
        }
        _ => {
            function.string("arguments", &call.arguments);
        }
    }
    function.carried(&unprefixed(FUNCTION, &wire));
    let function = function.finish();
    if alone && hinted(&wire, LEGACY).is_some() {
        return (LegacyCall(true), function);
    }
    let mut object = Object::new();
    object.maybe("index", wire.get("~index").map(Raw::get));
    if hinted(&wire, "~id").is_none() {
        object.string("id", id);
    }
    if hinted(&wire, "~type").is_none() {
        object.string("type", "function");
    }
    object.raw("function", &function);
    object.carried(&without(&[MESSAGE, FUNCTION], &wire));
    (LegacyCall(false), object.finish())
}
