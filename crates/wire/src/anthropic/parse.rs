//! Messages and their blocks, read into items.

use contexture_ir::{
    Cancel, Compaction, Error, Extension, ExtensionPart, Extra, Fields, FunctionCall,
    FunctionCallOutput, Item, Message, Output, Part, Raw, Reasoning, Role, TextPart,
};
use serde_json::value::RawValue;

use super::source;
use super::spec::{FAMILY, FORMAT, MESSAGE, STRUCTURE};
use crate::model::format_extras::{START, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::paired_item::Side;

/// Reads the array of a request's messages.
pub(super) fn parse_messages(
    array: &RawValue,
    cancel: Option<&Cancel>,
) -> Result<Vec<Item>, Error> {
    let messages = parse_elements(array)?;
    let mut items = Vec::with_capacity(messages.len());
    let mut before = None;
    for (index, message) in messages.into_iter().enumerate() {
        Cancel::check_optional(cancel)?;
        let role = parse_message(message, before, &mut items).map_err(|e| e.at_index(index))?;
        before = Some(role);
    }
    Ok(items)
}

/// Reads the blocks of a response.
pub(super) fn parse_response_content(content: &RawValue) -> Result<Vec<Item>, Error> {
    if !content.get().starts_with('[') {
        return Err(unexpected_value(
            "an array of content blocks",
            content.get(),
        ));
    }
    let mut reader = MessageParser::new(Role::Assistant);
    reader.parse_content(content)?;
    reader.flush_parts();
    Ok(reader.items)
}

/// Reads `system`: a string or text blocks.
pub(super) fn parse_system_prompt(content: &RawValue) -> Result<Message, Error> {
    let mut reader = MessageParser::new(Role::System);
    reader.parse_content(content)?;
    let mut message = Message::new(Role::System, reader.parts);
    message.extra.set_wire_fields(FORMAT, reader.start);
    Ok(message)
}

fn parse_elements(array: &RawValue) -> Result<Vec<&RawValue>, Error> {
    serde_json::from_str(array.get()).map_err(|_| unexpected_value("an array", array.get()))
}

/// A value of the wrong type or an unknown word.
pub(super) fn unexpected_value(expected: &'static str, found: &str) -> Error {
    let found = found.chars().take(60).collect();
    Error::Unexpected {
        path: String::new(),
        expected,
        found,
    }
}

fn parse_message(
    message: &RawValue,
    before: Option<Role>,
    items: &mut Vec<Item>,
) -> Result<Role, Error> {
    let mut fields = Fields::parse(message.get())?;
    let word = fields.need_string(&["role"])?;
    let role = match word.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => {
            return Err(
                unexpected_value("`user`, `assistant` or `system`", &word).at_segment("role")
            );
        }
    };
    let content = fields.take_present(&["content"])?;
    let mut reader = MessageParser::new(role);
    // Two messages of one role in a row would be written as one; the hint keeps them apart.
    if before == Some(role) {
        set_hint(&mut reader.start, START, "message");
    }
    let rest = to_extras(fields.into_extra());
    if !rest.is_empty() {
        reader.start.set(MESSAGE, Raw::from_value(&rest)?);
    }
    match content {
        Some(content) => reader
            .parse_content(content)
            .map_err(|error| error.at_segment("content"))?,
        None => set_hint(&mut reader.start, "~content", "absent"),
    }
    reader.finish(items);
    Ok(role)
}

/// Reads the blocks of one message.
struct MessageParser {
    role: Role,
    /// What the first item carries for the whole message.
    start: Extra,
    parts: Vec<Part>,
    items: Vec<Item>,
    /// Whether something other than results came already.
    has_non_result: bool,
}

impl MessageParser {
    fn new(role: Role) -> Self {
        Self {
            role,
            start: Extra::new(),
            parts: Vec::new(),
            items: Vec::new(),
            has_non_result: false,
        }
    }

    fn parse_content(&mut self, content: &RawValue) -> Result<(), Error> {
        if content.get().starts_with('"') {
            let text: String = serde_json::from_str(content.get())
                .map_err(|_| unexpected_value("a string", content.get()))?;
            set_hint(&mut self.start, "~content", "string");
            self.parts.push(self.text_part(TextPart::new(text)));
            return Ok(());
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).map_err(|_| {
            unexpected_value("a string or an array of content blocks", content.get())
        })?;
        for (index, block) in blocks.into_iter().enumerate() {
            self.parse_block(block)
                .map_err(|error| error.at_index(index))?;
        }
        Ok(())
    }

    fn parse_block(&mut self, block: &RawValue) -> Result<(), Error> {
        let mut fields = Fields::parse(block.get())?;
        let kind = fields.need_string(&["type"])?;
        match (kind.as_str(), self.role) {
            ("text", _) => {
                let part = parse_text_block(fields)?;
                self.parts.push(self.text_part(part));
            }
            ("image", Role::User) => self.parts.push(source::parse_image(fields)?),
            ("document", Role::User) => self.parts.push(source::parse_document(fields)?),
            // Results are not `has_non_result`: they lead their message, and the flag says whether
            // one does not.
            ("tool_result", Role::User) => {
                let item = self.parse_tool_result(fields)?;
                self.push_item(item);
                return Ok(());
            }
            ("thinking", Role::Assistant) => self.push_item(parse_thinking(fields)?),
            ("redacted_thinking", Role::Assistant) => {
                self.push_item(parse_redacted_thinking(fields)?)
            }
            ("tool_use", Role::Assistant) => self.push_item(parse_tool_use(fields)?),
            ("compaction", Role::Assistant) => self.push_item(parse_compaction(fields)?),
            // Server tools, containers and types that are newer than this code are kept byte for
            // byte.
            _ => self.push_opaque_block(&kind, block),
        }
        self.has_non_result = true;
        Ok(())
    }

    fn text_part(&self, part: TextPart) -> Part {
        if self.role == Role::Assistant {
            Part::OutputText(part)
        } else {
            Part::InputText(part)
        }
    }

    fn push_item(&mut self, item: Item) {
        self.flush_parts();
        self.append_item(item);
    }

    /// Stores a block whole: an item of its own where it stands on the model's side, else a part.
    fn push_opaque_block(&mut self, kind: &str, block: &RawValue) {
        let (kind, raw) = wrap_opaque_block(kind, block);
        let item = Item::Extension(Extension {
            kind,
            id: None,
            raw,
        });
        if self.role == Role::Assistant && STRUCTURE.side(&item) == Some(Side::Model) {
            self.push_item(item);
        } else if let Item::Extension(Extension { kind, raw, .. }) = item {
            self.parts
                .push(Part::Extension(ExtensionPart { kind, raw }));
        }
    }

    /// Makes the pending parts a message.
    fn flush_parts(&mut self) {
        if !self.parts.is_empty() {
            let parts = std::mem::take(&mut self.parts);
            self.append_item(Item::Message(Message::new(self.role, parts)));
        }
    }

    fn append_item(&mut self, mut item: Item) {
        if !self.start.is_empty() {
            attach_message_fields(&mut item, std::mem::take(&mut self.start));
        }
        self.items.push(item);
    }

    fn finish(mut self, items: &mut Vec<Item>) {
        self.flush_parts();
        if self.items.is_empty() {
            // Nothing said: the message itself is still there.
            self.append_item(Item::Message(Message::new(self.role, Vec::new())));
        }
        items.append(&mut self.items);
    }

    fn parse_tool_result(&mut self, mut fields: Fields<'_>) -> Result<Item, Error> {
        let id = fields.need_string(&["tool_use_id"])?;
        let is_error = fields.take_as(&["is_error"], "a boolean")?;
        let content = fields.take_present(&["content"])?;
        let mut wire = to_extras(fields.into_extra());
        let output = match content {
            None => {
                set_hint(&mut wire, "~content", "absent");
                Output::Text(String::new())
            }
            Some(content) => {
                let output =
                    parse_result_content(content).map_err(|error| error.at_segment("content"))?;
                if matches!(&output, Output::Text(_)) && !content.get().starts_with('"') {
                    set_hint(&mut wire, "~content", "blocks");
                }
                output
            }
        };
        // Normally results lead; the hint puts this one back where the client wrote it.
        if self.has_non_result {
            set_hint(&mut wire, "~place", "here");
        }
        let mut item = FunctionCallOutput::new(id, output);
        item.is_error = is_error;
        item.extra.set_wire_fields(FORMAT, wire);
        Ok(item.into())
    }
}

/// Wraps a block that is stored whole, and returns its kind.
fn wrap_opaque_block(kind: &str, block: &RawValue) -> (String, Raw) {
    let kind = format!("{FORMAT}:{kind}");
    let mut object = ObjectWriter::new();
    object.string("type", &kind).raw("block", block.get());
    let raw = Raw::parse(object.finish()).unwrap_or_else(|_| Raw::null());
    (kind, raw)
}

/// Stores what concerns the whole message on its first item.
fn attach_message_fields(item: &mut Item, start: Extra) {
    match item {
        Item::Extension(extension) => {
            let mut fields = extension
                .raw
                .fields()
                .map(Fields::into_extra)
                .unwrap_or_default();
            fields.extend(start);
            if let Ok(raw) = Raw::from_value(&fields) {
                extension.raw = raw;
            }
        }
        item => {
            if let Some(extra) = item.extra_mut() {
                let mut wire = extra.wire_fields(FORMAT);
                // A result has a `~content` of its own; the message's is then not needed, because
                // a message with a result in it is never a string.
                for (key, value) in start.iter() {
                    if wire.get(key).is_none() {
                        wire.set(key, value.clone());
                    }
                }
                extra.set_wire_fields(FORMAT, wire);
            }
        }
    }
}

/// A text block, `type` already taken.
fn parse_text_block(mut fields: Fields<'_>) -> Result<TextPart, Error> {
    let mut part = TextPart::new(fields.need_string(&["text"])?);
    part.extra
        .set_wire_fields(FORMAT, to_extras(fields.into_extra()));
    Ok(part)
}

/// Reads the content of a tool's result; a single bare text block becomes its text.
fn parse_result_content(content: &RawValue) -> Result<Output, Error> {
    if content.get().starts_with('"') {
        let text = serde_json::from_str(content.get());
        return text
            .map(Output::Text)
            .map_err(|_| unexpected_value("a string", content.get()));
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get())
        .map_err(|_| unexpected_value("a string or an array of content blocks", content.get()))?;
    let part = |(index, block): (usize, &RawValue)| {
        parse_result_part(block).map_err(|error| error.at_index(index))
    };
    let mut parts: Vec<Part> = blocks
        .into_iter()
        .enumerate()
        .map(part)
        .collect::<Result<_, _>>()?;
    match parts.as_mut_slice() {
        // One bare text block and a string mean the same; a hint keeps which it was.
        [Part::InputText(only)] if only.extra.is_empty() => {
            Ok(Output::Text(std::mem::take(&mut only.text)))
        }
        _ => Ok(Output::Parts(parts)),
    }
}

fn parse_result_part(block: &RawValue) -> Result<Part, Error> {
    let mut fields = Fields::parse(block.get())?;
    let kind = fields.need_string(&["type"])?;
    match kind.as_str() {
        "text" => parse_text_block(fields).map(Part::InputText),
        "image" => source::parse_image(fields),
        "document" => source::parse_document(fields),
        _ => {
            let (kind, raw) = wrap_opaque_block(&kind, block);
            Ok(Part::Extension(ExtensionPart { kind, raw }))
        }
    }
}

fn parse_thinking(mut fields: Fields<'_>) -> Result<Item, Error> {
    let text = fields.need_string(&["thinking"])?;
    // Some models return only the signature of a thought; an empty part would say that it was
    // empty.
    let content = if text.is_empty() {
        Vec::new()
    } else {
        vec![Part::ReasoningText(TextPart::new(text))]
    };
    let mut item = Reasoning {
        content: Some(content),
        signature: fields.take_string(&["signature"])?,
        format: Some(FAMILY.to_owned()),
        ..Reasoning::default()
    };
    item.extra
        .set_wire_fields(FORMAT, to_extras(fields.into_extra()));
    Ok(item.into())
}

fn parse_redacted_thinking(mut fields: Fields<'_>) -> Result<Item, Error> {
    let mut item = Reasoning {
        encrypted_content: Some(fields.need_string(&["data"])?),
        format: Some(FAMILY.to_owned()),
        ..Reasoning::default()
    };
    item.extra
        .set_wire_fields(FORMAT, to_extras(fields.into_extra()));
    Ok(item.into())
}

fn parse_tool_use(mut fields: Fields<'_>) -> Result<Item, Error> {
    let id = fields.need_string(&["id"])?;
    let name = fields.need_string(&["name"])?;
    let input = fields.take_field(&["input"])?;
    let mut wire = to_extras(fields.into_extra());
    if input.is_none() {
        set_hint(&mut wire, "~input", "absent");
    }
    let mut item = FunctionCall::new(id, name, input.map_or("{}", RawValue::get));
    item.extra.set_wire_fields(FORMAT, wire);
    Ok(item.into())
}

/// The provider's own compaction: readable, so that other targets have the text.
fn parse_compaction(mut fields: Fields<'_>) -> Result<Item, Error> {
    let text = fields.take_string(&["content"])?;
    // A compaction without text can only be read by the provider.
    let sealed = text.is_none();
    let mut item = Compaction {
        summary: text
            .into_iter()
            .map(|t| Part::SummaryText(TextPart::new(t)))
            .collect(),
        encrypted_content: fields.take_string(&["encrypted_content"])?,
        format: Some(FAMILY.to_owned()),
        ..Compaction::default()
    };
    let mut wire = to_extras(fields.into_extra());
    if sealed {
        set_hint(&mut wire, "~content", "absent");
    }
    item.extra.set_wire_fields(FORMAT, wire);
    Ok(item.into())
}
