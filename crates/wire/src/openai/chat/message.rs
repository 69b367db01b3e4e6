//! Messages, read into items.
//!
//! System and developer messages that lead become instructions. Everything of a message that is not
//! one of its items stays on its anchor: the item that says something, else its first call.

use contexture_ir::{
    Cancel, Error, Extra, Fields, FunctionCallOutput, Item, Message, Output, Part, Raw, Reasoning,
    Role, TextPart, Transcript,
};
use serde_json::value::RawValue;

use super::content::{self, extra_from_wire};
use super::custom;
use super::message_boundary::OpenMessage;
use super::parse_calls::{CallParser, LEGACY, is_empty_array};
use super::spec::NAME;
use crate::model::format_extras::{START, set_hint, to_extras};
use crate::model::loss::{Loss, LossKind, Losses};
use crate::openai::shared::custom_tools::chat_citations_to_responses;
use crate::openai::shared::{unexpected_value, with_key_prefix};

/// The prefix of a message's own fields where its anchor is a call.
pub(super) const MESSAGE: &str = "message.";
/// The prefix of a message's own fields that came in a response and are not sent back.
pub(super) const ANSWER: &str = "answer.";
/// The hint of a refusal's place: `field` or `part`.
pub(super) const REFUSAL: &str = "~refusal";
/// The hint of the field thoughts came in; empty if only `reasoning_details` came.
pub(super) const THOUGHTS: &str = "~thoughts";
/// The opaque form of thoughts, of Chat hosts that have one.
pub(super) const DETAILS: &str = "reasoning_details";
/// Citations: the message's member, and the text's in an item.
pub(super) const CITATIONS: &str = "annotations";
/// The hint of citations that came in a request, where the provider takes none.
pub(super) const CITED: &str = "~annotations";
/// The format of thoughts that a Chat host showed.
const REASONING_FORMAT: &str = "openai-chat-v1";
const ROLES: &str = "one of system, developer, user, assistant, tool, function";

/// The word of [`content::CONTENT`] for an array in a response.
pub(super) const LIST: &str = "list";

/// Reads messages one after the other.
#[derive(Default)]
pub(super) struct TranscriptParser {
    transcript: Transcript,
    losses: Losses,
    open: OpenMessage,
    calls: CallParser,
    /// Whether anything but instructions was read.
    has_items: bool,
}

impl TranscriptParser {
    /// A reader of responses.
    pub(super) fn for_response() -> Self {
        let mut reader = Self::default();
        reader.calls.is_response = true;
        reader
    }

    pub(super) fn parse_messages(
        &mut self,
        messages: &[&RawValue],
        cancel: Option<&Cancel>,
    ) -> Result<(), Error> {
        for (index, message) in messages.iter().enumerate() {
            Cancel::check_optional(cancel)?;
            self.parse_message(index, message.get())
                .map_err(|error| error.at_index(index).at_segment("messages"))?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> (Transcript, Vec<Loss>) {
        (self.transcript, self.losses.into_vec())
    }

    fn parse_message(&mut self, index: usize, text: &str) -> Result<(), Error> {
        let mut fields = Fields::parse(text)?;
        let role = fields.need_string(&["role"])?;
        match role.as_str() {
            "assistant" => return self.parse_assistant_message(index, fields),
            "tool" => self.parse_tool_message(fields)?,
            "function" => self.parse_function_message(index, fields)?,
            _ => {
                let Some(role) = Role::from_wire(&role) else {
                    return Err(unexpected_value(ROLES, &role).at_segment("role"));
                };
                let message = parse_message_with_role(role, fields)?;
                if role.is_instruction() && !self.has_items {
                    self.transcript.instructions.push(message);
                    return Ok(());
                }
                self.push_item(message.into());
            }
        }
        self.open = OpenMessage::Nothing;
        Ok(())
    }

    fn push_item(&mut self, item: Item) {
        self.has_items = true;
        self.transcript.items.push(item);
    }

    /// Reads a message of the model, from a request or a response's choice.
    pub(super) fn parse_assistant_message(
        &mut self,
        index: usize,
        mut fields: Fields<'_>,
    ) -> Result<(), Error> {
        let thoughts = parse_thoughts(&mut fields)?;
        let said = content::parse_content(&mut fields, true)?;
        let mut hints = Extra::new();
        let mut calls = self
            .calls
            .parse_calls(index, &mut fields, &mut self.losses)?;
        let mut parts = Vec::new();
        parse_refusal(&mut fields, &said.parts, &mut hints, &mut parts)?;
        parse_spoken_audio(&mut fields, &mut parts)?;
        // `null` beside calls or a refusal is the canonical shape, not a deviation.
        let usual = said.shape == Some("null") && (!calls.is_empty() || !parts.is_empty());
        if !usual {
            said.store_shape(&mut hints);
        }
        // A response's array would be written as a string in a request, so it has a hint of its
        // own.
        if self.calls.is_response && said.is_array {
            set_hint(&mut hints, content::CONTENT, LIST);
        }
        let mut parts: Vec<Part> = said.parts.into_iter().chain(parts).collect();
        parse_citations(&mut fields, self.calls.is_response, &mut parts)?;
        let mut own = to_extras(fields.into_extra());
        if self.calls.is_response {
            // Members of an answer's message (citations, sound) are not accepted in a request, so
            // they are stored apart.
            own = with_key_prefix(ANSWER, own).collect();
        }
        let mut items: Vec<Item> = thoughts.into_iter().map(Item::Reasoning).collect();
        items.extend(message_item(parts, &mut calls, own, hints));
        items.extend(calls);
        self.mark_message_start(index, &mut items);
        for item in items {
            self.open = self.open.after_item(&item);
            self.push_item(item);
        }
        Ok(())
    }

    /// Marks the first item if lowering would join it to the message before.
    fn mark_message_start(&mut self, index: usize, items: &mut [Item]) {
        let joined = items.first().is_some_and(|item| self.open.can_join(item));
        if joined {
            match items.first_mut().and_then(Item::extra_mut) {
                Some(extra) => {
                    let mut wire = extra.wire_fields(NAME);
                    set_hint(&mut wire, START, "message");
                    extra.set_wire_fields(NAME, wire);
                }
                None => {
                    let why = "the call joins the message before";
                    self.losses
                        .push(format!("messages[{index}]"), LossKind::Field, why);
                }
            }
        }
        self.open = OpenMessage::Nothing;
    }

    fn parse_tool_message(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        let call_id = fields.need_string(&["tool_call_id"])?;
        let content = content::parse_content(&mut fields, false)?;
        let mut wire = Extra::new();
        let known = self.calls.names_by_id.get(&call_id);
        let name = fields
            .get(&["name"])
            .and_then(|name| serde_json::from_str::<String>(name.get()).ok());
        if let Some(name) = name.filter(|name| Some(name) == known) {
            fields.take_field(&["name"])?;
            set_hint(&mut wire, "~name", &name);
        }
        wire.extend(to_extras(fields.into_extra()));
        if self.calls.custom_call_ids.contains(&call_id) {
            let item = custom::parse_custom_output(&call_id, &content.parts)?;
            let usual = matches!(content.shape, None | Some("empty"));
            if !usual || !wire.is_empty() {
                let path = format!("items[{}]", self.transcript.items.len());
                self.losses
                    .push(path, LossKind::Field, "fields of a custom tool's output");
            }
            self.push_item(item);
            return Ok(());
        }
        let shape = content.shape.filter(|shape| *shape != "empty");
        let output = output_from_parts(content.parts);
        if let Some(shape) = shape {
            set_hint(&mut wire, content::CONTENT, shape);
        }
        self.push_item(Item::FunctionCallOutput(FunctionCallOutput {
            extra: extra_from_wire(wire),
            ..FunctionCallOutput::new(call_id, output)
        }));
        Ok(())
    }

    /// An output of the older shape: it has no id and answers the last call of that shape.
    fn parse_function_message(
        &mut self,
        index: usize,
        mut fields: Fields<'_>,
    ) -> Result<(), Error> {
        let name = fields.need_string(&["name"])?;
        let content = content::parse_content(&mut fields, false)?;
        let mut wire = Extra::new();
        set_hint(&mut wire, LEGACY, &name);
        if let Some(shape) = content.shape.filter(|shape| *shape != "empty") {
            set_hint(&mut wire, content::CONTENT, shape);
        }
        wire.extend(to_extras(fields.into_extra()));
        let call_id = self
            .calls
            .last_legacy_id
            .take()
            .unwrap_or_else(|| format!("call_{index}"));
        self.push_item(Item::FunctionCallOutput(FunctionCallOutput {
            extra: extra_from_wire(wire),
            ..FunctionCallOutput::new(call_id, output_from_parts(content.parts))
        }));
        Ok(())
    }
}

fn parse_message_with_role(role: Role, mut fields: Fields<'_>) -> Result<Message, Error> {
    let content = content::parse_content(&mut fields, false)?;
    let mut wire = to_extras(fields.into_extra());
    content.store_shape(&mut wire);
    Ok(Message {
        extra: extra_from_wire(wire),
        ..Message::new(role, content.parts)
    })
}

/// One text is a text; anything else stays parts.
fn output_from_parts(mut parts: Vec<Part>) -> Output {
    match parts.as_mut_slice() {
        [] => Output::Text(String::new()),
        [Part::InputText(part)] if part.extra.is_empty() => {
            Output::Text(std::mem::take(&mut part.text))
        }
        _ => Output::Parts(parts),
    }
}

fn parse_thoughts(fields: &mut Fields<'_>) -> Result<Option<Reasoning>, Error> {
    let is_text = |name| {
        fields
            .get(&[name])
            .is_some_and(|value| value.get().starts_with('"') && value.get() != "\"\"")
    };
    let field = ["reasoning_content", "reasoning"]
        .into_iter()
        .find(|name| is_text(name));
    let text = match field {
        Some(name) => fields.take_string(&[name])?,
        None => None,
    };
    let details = match fields.get(&[DETAILS]) {
        Some(value) if value.get().starts_with('[') && !is_empty_array(value) => {
            fields.take_field(&[DETAILS])?
        }
        _ => None,
    };
    if text.is_none() && details.is_none() {
        return Ok(None);
    }
    let mut wire = Extra::new();
    set_hint(&mut wire, THOUGHTS, field.unwrap_or_default());
    if let Some(details) = details {
        wire.set(DETAILS, details.into());
    }
    Ok(Some(Reasoning {
        content: text.map(|text| vec![Part::ReasoningText(TextPart::new(text))]),
        format: Some(REASONING_FORMAT.to_owned()),
        extra: extra_from_wire(wire),
        ..Reasoning::default()
    }))
}

/// The refusal beside the content. A refusal alone stands in the field, among other parts as a part.
fn parse_refusal(
    fields: &mut Fields<'_>,
    said: &[Part],
    hints: &mut Extra,
    parts: &mut Vec<Part>,
) -> Result<(), Error> {
    if let [Part::Refusal(_)] = said {
        set_hint(hints, REFUSAL, "part");
    }
    let Some(text) = fields.take_string(&["refusal"])? else {
        return Ok(());
    };
    if !said.is_empty() {
        set_hint(hints, REFUSAL, "field");
    }
    parts.push(Part::Refusal(TextPart::new(text)));
    Ok(())
}

/// Citations stand beside the content and count its characters: they are the text's where there is one.
fn parse_citations(fields: &mut Fields<'_>, answer: bool, parts: &mut [Part]) -> Result<(), Error> {
    let mut texts = parts.iter_mut().filter_map(|part| match part {
        Part::OutputText(text) => Some(text),
        _ => None,
    });
    let cited = fields.get(&[CITATIONS]).map(Raw::from);
    let (Some(text), None) = (texts.next(), texts.next()) else {
        return Ok(());
    };
    let mut wire = text.extra.wire_fields(NAME);
    if let Some(list) = cited.as_ref().and_then(chat_citations_to_responses)
        && wire.get("audio").is_none()
    {
        fields.take_field(&[CITATIONS])?;
        text.extra.set(CITATIONS, list);
        if !answer {
            set_hint(&mut wire, CITED, "kept");
            text.extra.set_wire_fields(NAME, wire);
        }
    }
    Ok(())
}

/// Spoken answers: what was said is text; the sound stays a field of the part.
fn parse_spoken_audio(fields: &mut Fields<'_>, parts: &mut Vec<Part>) -> Result<(), Error> {
    let transcript = fields
        .get(&["audio"])
        .and_then(|audio| Fields::parse(audio.get()).ok())
        .and_then(|mut audio| audio.take_string(&["transcript"]).ok().flatten());
    let Some(text) = transcript else {
        return Ok(());
    };
    if let Some(audio) = fields.take_field(&["audio"])? {
        let mut wire = Extra::new();
        wire.set("audio", audio.into());
        let extra = extra_from_wire(wire);
        parts.push(Part::OutputText(TextPart { text, extra }));
    }
    Ok(())
}

/// The item of what a message of the model says. A message that has only calls needs none of its own: its fields are
/// stored on the first call.
fn message_item(
    parts: Vec<Part>,
    calls: &mut [Item],
    mut own: Extra,
    hints: Extra,
) -> Option<Item> {
    let needs_item = calls.is_empty() || !own.is_empty() || !hints.is_empty();
    if !parts.is_empty() || needs_item && !matches!(calls.first(), Some(Item::FunctionCall(_))) {
        own.extend(hints);
        return Some(Item::Message(Message {
            extra: extra_from_wire(own),
            ..Message::new(Role::Assistant, parts)
        }));
    }
    if let Some(Item::FunctionCall(call)) = calls.first_mut() {
        let mut wire = call.extra.wire_fields(NAME);
        wire.extend(with_key_prefix(MESSAGE, own).collect());
        wire.extend(hints);
        call.extra.set_wire_fields(NAME, wire);
    }
    None
}
