//! Messages and their blocks, read into items.

use contexture_ir::{
    Compaction, Error, Extension, ExtensionPart, Extra, Fields, FunctionCall, FunctionCallOutput,
    Item, Message, Output, Part, Raw, Reasoning, Role, TextPart,
};
use serde_json::value::RawValue;

use super::source;
use super::words::{FAMILY, FORMAT, MESSAGE};
use crate::carry::{START, hint, keep};
use crate::entry::{Side, side};
use crate::format::Format;
use crate::json::Object;

/// Reads the array of a request's messages.
pub(super) fn messages(array: &RawValue) -> Result<Vec<Item>, Error> {
    let messages = elements(array)?;
    let mut items = Vec::with_capacity(messages.len());
    let mut before = None;
    for (index, message) in messages.into_iter().enumerate() {
        let role = read_message(message, before, &mut items).map_err(|e| e.at_index(index))?;
        before = Some(role);
    }
    Ok(items)
}

/// Reads the blocks of a response.
pub(super) fn answer(content: &RawValue) -> Result<Vec<Item>, Error> {
    if !content.get().starts_with('[') {
        return Err(unexpected("an array of content blocks", content.get()));
    }
    let mut reader = Reader::new(Role::Assistant);
    reader.content(content)?;
    reader.flush();
    Ok(reader.items)
}

/// Reads `system`: a string or text blocks.
pub(super) fn system(content: &RawValue) -> Result<Message, Error> {
    let mut reader = Reader::new(Role::System);
    reader.content(content)?;
    let mut message = Message::new(Role::System, reader.parts);
    message.extra.set_wire(FORMAT, reader.start);
    Ok(message)
}

fn elements(array: &RawValue) -> Result<Vec<&RawValue>, Error> {
    serde_json::from_str(array.get()).map_err(|_| unexpected("an array", array.get()))
}

/// A value of the wrong type or an unknown word.
pub(super) fn unexpected(expected: &'static str, found: &str) -> Error {
    let found = found.chars().take(60).collect();
    Error::Unexpected {
        path: String::new(),
        expected,
        found,
    }
}

fn read_message(
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
        _ => return Err(unexpected("`user`, `assistant` or `system`", &word).at("role")),
    };
    let content = fields.take_present(&["content"])?;
    let mut reader = Reader::new(role);
    if before == Some(role) && role != Role::System {
        hint(&mut reader.start, START, "message");
    }
    let rest = keep(fields.rest());
    if !rest.is_empty() {
        reader.start.set(MESSAGE, Raw::from_value(&rest)?);
    }
    match content {
        Some(content) => reader
            .content(content)
            .map_err(|error| error.at("content"))?,
        None => hint(&mut reader.start, "~content", "absent"),
    }
    reader.finish(items);
    Ok(role)
}

/// Reads the blocks of one message.
struct Reader {
    role: Role,
    /// What the first item carries for the whole message.
    start: Extra,
    parts: Vec<Part>,
    items: Vec<Item>,
    /// Whether something other than results came already.
    spoke: bool,
}

impl Reader {
    fn new(role: Role) -> Self {
        Self {
            role,
            start: Extra::new(),
            parts: Vec::new(),
            items: Vec::new(),
            spoke: false,
        }
    }

    fn content(&mut self, content: &RawValue) -> Result<(), Error> {
        if content.get().starts_with('"') {
            let text: String = serde_json::from_str(content.get())
                .map_err(|_| unexpected("a string", content.get()))?;
            hint(&mut self.start, "~content", "string");
            self.parts.push(self.text(TextPart::new(text)));
            return Ok(());
        }
        let blocks: Vec<&RawValue> = serde_json::from_str(content.get())
            .map_err(|_| unexpected("a string or an array of content blocks", content.get()))?;
        for (index, block) in blocks.into_iter().enumerate() {
            self.block(block).map_err(|error| error.at_index(index))?;
        }
        Ok(())
    }

    fn block(&mut self, block: &RawValue) -> Result<(), Error> {
        let mut fields = Fields::parse(block.get())?;
        let kind = fields.need_string(&["type"])?;
        match (kind.as_str(), self.role) {
            ("text", _) => {
                let part = text(fields)?;
                self.parts.push(self.text(part));
            }
            ("image", Role::User) => self.parts.push(source::image(fields)?),
            ("document", Role::User) => self.parts.push(source::document(fields)?),
            ("tool_result", Role::User) => {
                let item = self.tool_result(fields)?;
                self.item(item);
                return Ok(());
            }
            ("thinking", Role::Assistant) => self.item(thinking(fields)?),
            ("redacted_thinking", Role::Assistant) => self.item(redacted(fields)?),
            ("tool_use", Role::Assistant) => self.item(tool_use(fields)?),
            ("compaction", Role::Assistant) => self.item(compaction(fields)?),
            _ => self.opaque(&kind, block),
        }
        self.spoke = true;
        Ok(())
    }

    fn text(&self, part: TextPart) -> Part {
        if self.role == Role::Assistant {
            Part::OutputText(part)
        } else {
            Part::InputText(part)
        }
    }

    fn item(&mut self, item: Item) {
        self.flush();
        self.push(item);
    }

    /// A block kept whole: an item of its own where it stands on the model's side, else a part.
    fn opaque(&mut self, kind: &str, block: &RawValue) {
        let (kind, raw) = opaque(kind, block);
        let item = Item::Extension(Extension {
            kind,
            id: None,
            raw,
        });
        if self.role == Role::Assistant && side(&item, Format::Anthropic) == Some(Side::Model) {
            self.item(item);
        } else if let Item::Extension(Extension { kind, raw, .. }) = item {
            self.parts
                .push(Part::Extension(ExtensionPart { kind, raw }));
        }
    }

    /// Makes the pending parts a message.
    fn flush(&mut self) {
        if !self.parts.is_empty() {
            let parts = std::mem::take(&mut self.parts);
            self.push(Item::Message(Message::new(self.role, parts)));
        }
    }

    fn push(&mut self, mut item: Item) {
        if !self.start.is_empty() {
            attach(&mut item, std::mem::take(&mut self.start));
        }
        self.items.push(item);
    }

    fn finish(mut self, items: &mut Vec<Item>) {
        self.flush();
        if self.items.is_empty() {
            // Nothing said: the message itself is still there.
            self.push(Item::Message(Message::new(self.role, Vec::new())));
        }
        items.append(&mut self.items);
    }

    fn tool_result(&mut self, mut fields: Fields<'_>) -> Result<Item, Error> {
        let id = fields.need_string(&["tool_use_id"])?;
        let is_error = fields.take_as(&["is_error"], "a boolean")?;
        let content = fields.take_present(&["content"])?;
        let mut wire = keep(fields.rest());
        let output = match content {
            None => {
                hint(&mut wire, "~content", "absent");
                Output::Text(String::new())
            }
            Some(content) => {
                let output = result_content(content).map_err(|error| error.at("content"))?;
                if matches!(&output, Output::Text(_)) && !content.get().starts_with('"') {
                    hint(&mut wire, "~content", "blocks");
                }
                output
            }
        };
        if self.spoke {
            hint(&mut wire, "~place", "here");
        }
        let mut item = FunctionCallOutput::new(id, output);
        item.is_error = is_error;
        item.extra.set_wire(FORMAT, wire);
        Ok(item.into())
    }
}

/// A block kept whole, with its kind.
fn opaque(kind: &str, block: &RawValue) -> (String, Raw) {
    let kind = format!("{FORMAT}:{kind}");
    let mut object = Object::new();
    object.string("type", &kind).raw("block", block.get());
    let raw = Raw::parse(object.finish()).unwrap_or_else(|_| Raw::null());
    (kind, raw)
}

/// Hangs what concerns the whole message on its first item.
fn attach(item: &mut Item, start: Extra) {
    match item {
        Item::Extension(extension) => {
            let mut fields = extension.raw.fields().map(Fields::rest).unwrap_or_default();
            fields.extend(start);
            if let Ok(raw) = Raw::from_value(&fields) {
                extension.raw = raw;
            }
        }
        item => {
            if let Some(extra) = item.extra_mut() {
                let mut wire = extra.wire(FORMAT);
                // A result has a `~content` of its own; the message's is then not needed, because
                // a message with a result in it is never a string.
                for (key, value) in start.iter() {
                    if wire.get(key).is_none() {
                        wire.set(key, value.clone());
                    }
                }
                extra.set_wire(FORMAT, wire);
            }
        }
    }
}

/// A text block, `type` already taken.
fn text(mut fields: Fields<'_>) -> Result<TextPart, Error> {
    let mut part = TextPart::new(fields.need_string(&["text"])?);
    part.extra.set_wire(FORMAT, keep(fields.rest()));
    Ok(part)
}

/// What a tool gave back: a single bare text block is its text.
fn result_content(content: &RawValue) -> Result<Output, Error> {
    if content.get().starts_with('"') {
        let text = serde_json::from_str(content.get());
        return text
            .map(Output::Text)
            .map_err(|_| unexpected("a string", content.get()));
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get())
        .map_err(|_| unexpected("a string or an array of content blocks", content.get()))?;
    let part = |(index, block): (usize, &RawValue)| {
        result_part(block).map_err(|error| error.at_index(index))
    };
    let mut parts: Vec<Part> = blocks
        .into_iter()
        .enumerate()
        .map(part)
        .collect::<Result<_, _>>()?;
    match parts.as_mut_slice() {
        [Part::InputText(only)] if only.extra.is_empty() => {
            Ok(Output::Text(std::mem::take(&mut only.text)))
        }
        _ => Ok(Output::Parts(parts)),
    }
}

fn result_part(block: &RawValue) -> Result<Part, Error> {
    let mut fields = Fields::parse(block.get())?;
    let kind = fields.need_string(&["type"])?;
    match kind.as_str() {
        "text" => text(fields).map(Part::InputText),
        "image" => source::image(fields),
        "document" => source::document(fields),
        _ => {
            let (kind, raw) = opaque(&kind, block);
            Ok(Part::Extension(ExtensionPart { kind, raw }))
        }
    }
}

fn thinking(mut fields: Fields<'_>) -> Result<Item, Error> {
    let text = fields.need_string(&["thinking"])?;
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
    item.extra.set_wire(FORMAT, keep(fields.rest()));
    Ok(item.into())
}

fn redacted(mut fields: Fields<'_>) -> Result<Item, Error> {
    let mut item = Reasoning {
        encrypted_content: Some(fields.need_string(&["data"])?),
        format: Some(FAMILY.to_owned()),
        ..Reasoning::default()
    };
    item.extra.set_wire(FORMAT, keep(fields.rest()));
    Ok(item.into())
}

fn tool_use(mut fields: Fields<'_>) -> Result<Item, Error> {
    let id = fields.need_string(&["id"])?;
    let name = fields.need_string(&["name"])?;
    let input = fields.take(&["input"])?;
    let mut wire = keep(fields.rest());
    if input.is_none() {
        hint(&mut wire, "~input", "absent");
    }
    let mut item = FunctionCall::new(id, name, input.map_or("{}", RawValue::get));
    item.extra.set_wire(FORMAT, wire);
    Ok(item.into())
}

/// The provider's own compaction: readable, so that other targets have the text.
fn compaction(mut fields: Fields<'_>) -> Result<Item, Error> {
    let text = fields.take_string(&["content"])?;
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
    let mut wire = keep(fields.rest());
    if sealed {
        hint(&mut wire, "~content", "absent");
    }
    item.extra.set_wire(FORMAT, wire);
    Ok(item.into())
}
