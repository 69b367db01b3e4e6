//! One native message of the model: its thoughts, its text and its calls.

use std::collections::BTreeSet;

use contexture_ir::{
    Extension, Extra, FunctionCall, Message, Part, Raw, Reasoning, TextPart, quote_json,
};

use super::content::CONTENT;
use super::custom;
use super::message::{ANSWER, CITATIONS, CITED, DETAILS, LIST, MESSAGE, REFUSAL, THOUGHTS};
use super::parse_calls::{FUNCTION, LEGACY};
use super::part::{self, EncodedPart};
use super::spec::NAME;
use crate::model::format_extras::{hint, original_key, report_foreign_fields};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::openai::shared::NAME_RULE;
use crate::openai::shared::custom_tools::responses_citations_to_chat;
use crate::openai::shared::{strip_key_prefix, without_key_prefixes};

/// Whether a message is sent to a model or comes from one: what comes has its content as one string,
/// and the sound of a spoken answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Request,
    Response,
}

/// A call with the id to write.
pub(super) enum AssistantCall<'a> {
    Function(&'a FunctionCall, &'a str),
    Other(&'a Extension),
}

/// The items of one native message, each with its index in the run.
#[derive(Default)]
pub(super) struct AssistantMessage<'a> {
    pub(super) thoughts: Vec<(usize, &'a Reasoning)>,
    pub(super) messages: Vec<(usize, &'a Message)>,
    pub(super) calls: Vec<(usize, AssistantCall<'a>)>,
    /// Whether the role is left out, as some hosts do in a response.
    pub(super) omits_role: bool,
}

impl AssistantMessage<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.thoughts.is_empty() && self.messages.is_empty() && self.calls.is_empty()
    }

    /// The native message; nothing if there is nothing to write.
    pub(super) fn encode_message(&self, place: BodyKind, losses: &mut Losses) -> Option<String> {
        let own = self.own_fields();
        let answer = strip_key_prefix(ANSWER, &own);
        let own = without_key_prefixes(&[ANSWER], &own);
        let shape = hint(&own, CONTENT);
        let refusal = hint(&own, REFUSAL);
        let words = self.collect_content(refusal.as_deref(), shape.as_deref(), place, losses);
        let calls = self.encode_calls(place, losses);
        let silent = words.is_empty() && calls.is_empty() && shape.is_none();
        if silent
            && self.thoughts.is_empty()
            && !own.iter().any(|(key, _)| original_key(key).is_some())
        {
            return None;
        }
        let mut object = ObjectWriter::new();
        if !self.omits_role {
            object.string("role", "assistant");
        }
        object.raw_if_some("content", words.content_json(shape.as_deref(), place));
        object.string_if_some("refusal", words.refusal.as_deref());
        object.raw_if_some("audio", words.audio);
        object.raw_if_some(CITATIONS, words.citations.as_ref().map(Raw::get));
        self.encode_thoughts(&mut object, losses);
        match calls.as_slice() {
            [] => {}
            [(LegacyCall(true), call)] => {
                object.raw("function_call", call);
            }
            calls => {
                object.array("tool_calls", calls.iter().map(|(_, call)| call));
            }
        }
        object.extra_fields(&own);
        if place == BodyKind::Response {
            object.extra_fields(&answer);
        } else if let Some(index) = self.anchor_index() {
            let path = format!("[{index}]");
            report_fields_as(
                &answer,
                &path,
                "what a response says beside its words is not sent back",
                losses,
            );
        }
        Some(object.finish())
    }

    fn anchor_index(&self) -> Option<usize> {
        let said = self.messages.first().map(|(index, _)| *index);
        said.or(self.calls.first().map(|(index, _)| *index))
    }

    /// The message's own fields, from wherever they are anchored; the first anchor of a name counts.
    fn own_fields(&self) -> Extra {
        let said = self
            .messages
            .iter()
            .map(|(_, message)| message.extra.wire_fields(NAME));
        let calls = self.calls.iter().filter_map(|(_, call)| match call {
            AssistantCall::Function(call, _) => Some(call.extra.wire_fields(NAME)),
            AssistantCall::Other(_) => None,
        });
        let calls = calls.map(|wire| {
            let mut own = strip_key_prefix(MESSAGE, &wire);
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

    fn collect_content(
        &self,
        refusal: Option<&str>,
        shape: Option<&str>,
        place: BodyKind,
        losses: &mut Losses,
    ) -> AssistantContent {
        let mut words = AssistantContent::default();
        let parts: usize = self
            .messages
            .iter()
            .map(|(_, message)| message.content.len())
            .sum();
        let as_field = match (place, refusal) {
            (BodyKind::Response, _) => shape != Some(LIST),
            (BodyKind::Request, Some(word)) => word == "field",
            // Chat's `refusal` member stands instead of content; beside other parts it has to be a
            // content part.
            (BodyKind::Request, None) => parts == 1,
        };
        for (nth, (index, message)) in self.messages.iter().enumerate() {
            if nth > 0 && !words.parts.is_empty() && words.breaks.last() != Some(&words.parts.len())
            {
                words.breaks.push(words.parts.len());
            }
            for (at, part) in message.content.iter().enumerate() {
                let path = format!("[{index}].content[{at}]");
                words.add_part(part, as_field, place, &path, losses);
            }
        }
        words
    }

    fn encode_thoughts(&self, object: &mut ObjectWriter, losses: &mut Losses) {
        for (nth, (index, item)) in self.thoughts.iter().enumerate() {
            let path = format!("[{index}]");
            report_foreign_fields(&item.extra, NAME, &path, losses);
            // A message has one `reasoning` member; joining two thoughts would make one that no
            // host sent.
            if nth > 0 {
                losses.push(path, LossKind::Item, "one message holds one thought");
                continue;
            }
            let wire = item.extra.wire_fields(NAME);
            let texts = item.content.iter().flatten().filter_map(Part::as_text);
            let text = quote_json(&texts.collect::<Vec<_>>().join("\n\n"));
            match hint(&wire, THOUGHTS).as_deref() {
                Some("reasoning_content") => {
                    object.raw("reasoning_content", &text);
                }
                Some("reasoning") => {
                    object.raw("reasoning", &text);
                }
                _ => {}
            }
            object.raw_if_some(DETAILS, wire.get(DETAILS).map(Raw::get));
        }
    }

    fn encode_calls(&self, place: BodyKind, losses: &mut Losses) -> Vec<(LegacyCall, String)> {
        // `function_call` holds one call; with more the newer `tool_calls` is the only shape.
        let legacy = self.calls.len() == 1;
        let write = |(index, call): &(usize, AssistantCall<'_>)| match call {
            AssistantCall::Function(call, id) => {
                encode_call((*index, call, id), legacy, place, losses)
            }
            AssistantCall::Other(item) => {
                let path = format!("[{index}]");
                (
                    LegacyCall(false),
                    custom::encode_custom_call(item, &path, losses),
                )
            }
        };
        self.calls.iter().map(write).collect()
    }
}

/// Reports the loss of fields that have a value.
fn report_fields_as(fields: &Extra, path: &str, why: &str, losses: &mut Losses) {
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
struct AssistantContent {
    parts: Vec<EncodedPart>,
    /// Where in `parts` another item's words begin.
    breaks: Vec<usize>,
    refusal: Option<String>,
    audio: Option<String>,
    citations: Option<Raw>,
}

impl AssistantContent {
    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.refusal.is_none() && self.audio.is_none()
    }

    fn add_part(
        &mut self,
        part: &Part,
        as_field: bool,
        place: BodyKind,
        path: &str,
        losses: &mut Losses,
    ) {
        let native = match part {
            Part::Refusal(part) => {
                report_foreign_fields(&part.extra, NAME, path, losses);
                match &mut self.refusal {
                    refusal @ None if as_field => {
                        *refusal = Some(part.text.clone());
                        return;
                    }
                    Some(refusal) if as_field && place == BodyKind::Response => {
                        refusal.push_str("\n\n");
                        refusal.push_str(&part.text);
                        return;
                    }
                    _ => {}
                }
                Some(part::encode_refusal(part))
            }
            Part::InputImage(_) | Part::InputFile(_) => {
                losses.push(
                    path,
                    LossKind::Part,
                    "the model's message takes no pictures or files",
                );
                None
            }
            Part::Extension(part) => part::encode_extension(part, path, losses),
            Part::OutputText(part) if part.extra.wire_fields(NAME).get("audio").is_some() => {
                self.audio = encode_audio(part, place, path, losses);
                return;
            }
            Part::OutputText(part) if part.extra.get(CITATIONS).is_some() => {
                self.encode_cited_text(part, place, path, losses)
            }
            Part::InputText(part)
            | Part::OutputText(part)
            | Part::SummaryText(part)
            | Part::ReasoningText(part) => part::encode_text(part, path, losses),
        };
        self.parts.extend(native);
    }

    /// A text with citations: they count the characters of the whole content, so they are those of its
    /// first text.
    fn encode_cited_text(
        &mut self,
        part: &TextPart,
        place: BodyKind,
        path: &str,
        losses: &mut Losses,
    ) -> Option<EncodedPart> {
        let came = hint(&part.extra.wire_fields(NAME), CITED).is_some();
        // Only hosts that sent citations in a message accept them in a request.
        let taken = self.parts.is_empty() && (place == BodyKind::Response || came);
        let list = part.extra.get(CITATIONS).filter(|_| taken);
        let Some(citations) = list.and_then(responses_citations_to_chat) else {
            return part::encode_text(part, path, losses);
        };
        self.citations = Some(citations);
        let mut bare = part.clone();
        bare.extra.remove(CITATIONS);
        part::encode_text(&bare, path, losses)
    }

    fn content_json(&self, shape: Option<&str>, place: BodyKind) -> Option<String> {
        let shape = match (place, shape) {
            (BodyKind::Response, Some(LIST)) => Some("array"),
            (BodyKind::Response, Some("array")) | (BodyKind::Request, Some(LIST)) => None,
            (_, shape) => shape,
        };
        let texts: Option<Vec<&str>> = self
            .parts
            .iter()
            .map(|native| native.plain.as_deref())
            .collect();
        match texts {
            // A response has one string; a part we do not know is reason enough for an array.
            Some(texts)
                if place == BodyKind::Response && texts.len() > 1 && shape != Some("array") =>
            {
                let mut joined = String::new();
                let mut breaks = self.breaks.iter().peekable();
                for (at, text) in texts.iter().enumerate() {
                    while breaks.next_if(|place| **place <= at).is_some() {
                        joined.push_str("\n\n");
                    }
                    joined.push_str(text);
                }
                Some(quote_json(&joined))
            }
            _ => part::encode_content(&self.parts, shape, "null"),
        }
    }
}

/// The sound of a spoken answer: whole in a response, by its id in a request.
fn encode_audio(
    part: &TextPart,
    place: BodyKind,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    let wire = part.extra.wire_fields(NAME);
    let audio = wire.get("audio")?;
    if place == BodyKind::Response {
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

fn encode_call(
    (index, call, id): (usize, &FunctionCall, &str),
    alone: bool,
    place: BodyKind,
    losses: &mut Losses,
) -> (LegacyCall, String) {
    report_foreign_fields(&call.extra, NAME, &format!("[{index}]"), losses);
    let wire = call.extra.wire_fields(NAME);
    let mut function = ObjectWriter::new();
    let name = match place {
        BodyKind::Request => NAME_RULE.sanitize_name(&call.name, &format!("[{index}]"), losses),
        BodyKind::Response => call.name.as_str().into(),
    };
    function.string("name", &name);
    match hint(&wire, "~arguments").as_deref() {
        Some("absent") if call.arguments.is_empty() => {}
        Some("value") if Raw::parse(call.arguments.as_str()).is_ok() => {
            function.raw("arguments", &call.arguments);
        }
        _ => {
            function.string("arguments", &call.arguments);
        }
    }
    function.extra_fields(&strip_key_prefix(FUNCTION, &wire));
    let function = function.finish();
    if alone && hint(&wire, LEGACY).is_some() {
        return (LegacyCall(true), function);
    }
    let mut object = ObjectWriter::new();
    object.raw_if_some("index", wire.get("~index").map(Raw::get));
    // The document's call had no id, so the one that was made up is not written.
    if hint(&wire, "~id").is_none() {
        object.string("id", id);
    }
    if hint(&wire, "~type").is_none() {
        object.string("type", "function");
    }
    object.raw("function", &function);
    object.extra_fields(&without_key_prefixes(&[MESSAGE, FUNCTION], &wire));
    (LegacyCall(false), object.finish())
}
