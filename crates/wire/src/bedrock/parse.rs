//! Messages and their blocks, read into items.

use contexture_ir::{
    Cancel, Error, Extension, ExtensionPart, Extra, Fields, FunctionCall, FunctionCallOutput, Item,
    Message, Output, Part, Raw, Reasoning, Role, TextPart,
};
use serde_json::value::RawValue;

use super::block::{
    CACHE_POINT, CITATIONS, GUARD, parse_cited_text, parse_elements, parse_guard_text,
    set_opaque_field, single_member, unexpected_value, wrap_opaque_block,
};
use super::media;
use super::spec::{FAMILY, FORMAT, MESSAGE, STRUCTURE};
use crate::model::format_extras::{START, set_hint, to_extras};
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

/// Reads the message of a response; returns its items and its unknown fields.
pub(super) fn parse_answer(message: &RawValue) -> Result<(Vec<Item>, Extra), Error> {
    let mut fields = Fields::parse(message.get())?;
    // Always `assistant`, so it is written without being stored.
    let role = fields.need_string(&["role"])?;
    if role != "assistant" {
        return Err(unexpected_value("`assistant`", &role).at_segment("role"));
    }
    let content = fields.take_field(&["content"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "content",
    })?;
    let mut reader = BlockReader::new(Role::Assistant);
    reader
        .parse_content(content)
        .map_err(|error| error.at_segment("content"))?;
    reader.flush_parts();
    Ok((reader.items, to_extras(fields.into_extra())))
}

/// Reads `system`: text, guarded text and cache points.
pub(super) fn parse_system_prompt(content: &RawValue) -> Result<Message, Error> {
    let mut reader = BlockReader::new(Role::System);
    reader.parse_content(content)?;
    Ok(Message::new(Role::System, reader.parts))
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
            let expected = "`user`, `assistant` or `system`";
            return Err(unexpected_value(expected, &word).at_segment("role"));
        }
    };
    let content = fields.take_present(&["content"])?;
    let mut reader = BlockReader::new(role);
    // Two user messages in a row would be written as one; the hint keeps them apart. System messages are never merged.
    if before == Some(role) && role != Role::System {
        set_hint(&mut reader.start, START, "message");
    }
    let rest = to_extras(fields.into_extra());
    if !rest.is_empty() {
        reader.start.set(MESSAGE, Raw::from_value(&rest)?);
    }
    if let Some(content) = content {
        reader
            .parse_content(content)
            .map_err(|error| error.at_segment("content"))?;
    }
    reader.finish(items);
    Ok(role)
}

/// Reads the blocks of one message.
struct BlockReader {
    role: Role,
    /// What the first item carries for the whole message.
    start: Extra,
    parts: Vec<Part>,
    items: Vec<Item>,
    /// Whether something other than results came already.
    has_non_result: bool,
}

impl BlockReader {
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
        for (index, block) in parse_elements(content)?.into_iter().enumerate() {
            self.parse_block(block)
                .map_err(|error| error.at_index(index))?;
        }
        Ok(())
    }

    fn parse_block(&mut self, block: &RawValue) -> Result<(), Error> {
        let mut fields = Fields::parse(block.get())?;
        // Text may have members beside it; a block of any other kind with two members is kept whole.
        if fields.get(&["text"]).is_some() {
            self.push_text(parse_text_block(fields)?);
            return Ok(());
        }
        let cited = fields.get(&[CITATIONS]);
        if let Some(value) = cited.filter(|_| self.role == Role::Assistant) {
            fields.take_field(&[CITATIONS])?;
            match parse_cited_text(value, fields.into_extra()) {
                Some(part) => self.push_text(part),
                None => self.push_opaque_block(CITATIONS, block),
            }
            return Ok(());
        }
        match single_member(&fields) {
            Some((member, value)) => self.parse_member(&member, value, block),
            None => {
                let first = fields.iter().next().map(|(name, _)| name.to_owned());
                self.push_opaque_block(&first.unwrap_or_default(), block);
                Ok(())
            }
        }
    }

    fn parse_member(
        &mut self,
        member: &str,
        value: &RawValue,
        block: &RawValue,
    ) -> Result<(), Error> {
        match (member, self.role) {
            // A point says something of what it follows; one that follows nothing is kept as a block.
            ("cachePoint", _) if self.attach_cache_point(value) => return Ok(()),
            (GUARD, _) => match parse_guard_text(value) {
                Some(part) => self.push_text(part),
                None => self.push_opaque_block(member, block),
            },
            ("image" | "document" | "video" | "audio", Role::User) => {
                match media::parse_media(member, value)
                    .map_err(|error| error.at_segment("source"))?
                {
                    Some(part) => self.push_part(part),
                    None => self.push_opaque_block(member, block),
                }
            }
            // Results do not count as `has_non_result`: they lead their message, and the flag says whether one does not.
            ("toolResult", Role::User) => {
                let item = self
                    .parse_tool_result(value)
                    .map_err(|error| error.at_segment(member))?;
                self.push_item(item);
                return Ok(());
            }
            ("toolUse", Role::Assistant) if !is_server_tool(value) => {
                let item = parse_tool_use(value).map_err(|error| error.at_segment(member))?;
                self.push_item(item);
            }
            ("reasoningContent", Role::Assistant) => match parse_reasoning(value) {
                Some(item) => self.push_item(item.into()),
                None => self.push_opaque_block(member, block),
            },
            // Server tools, search results and blocks that are newer than this code are kept byte for byte.
            _ => self.push_opaque_block(member, block),
        }
        self.has_non_result = true;
        Ok(())
    }

    fn push_text(&mut self, part: TextPart) {
        self.push_part(if self.role == Role::Assistant {
            Part::OutputText(part)
        } else {
            Part::InputText(part)
        });
        self.has_non_result = true;
    }

    fn push_part(&mut self, part: Part) {
        self.parts.push(part);
    }

    fn push_item(&mut self, item: Item) {
        self.flush_parts();
        self.append_item(item);
    }

    /// Stores a block whole: an item of its own where it stands on the model's side, else a part.
    fn push_opaque_block(&mut self, member: &str, block: &RawValue) {
        let (kind, raw) = wrap_opaque_block(member, block);
        let id = None;
        let item = Item::Extension(Extension { kind, id, raw });
        if self.role == Role::Assistant && STRUCTURE.side(&item) == Some(Side::Model) {
            self.push_item(item);
        } else if let Item::Extension(Extension { kind, raw, .. }) = item {
            self.push_part(Part::Extension(ExtensionPart { kind, raw }));
        }
        self.has_non_result = true;
    }

    /// Stores a cache point with the part or item before it, unless that has one or there is none.
    fn attach_cache_point(&mut self, point: &RawValue) -> bool {
        match (self.parts.last_mut(), self.items.last_mut()) {
            (Some(Part::Extension(part)), _) => attach_to_raw(&mut part.raw, point),
            (Some(part), _) => part
                .extra_mut()
                .is_some_and(|extra| attach_to_extra(extra, point)),
            (None, Some(Item::Extension(item))) => attach_to_raw(&mut item.raw, point),
            (None, Some(item)) => item
                .extra_mut()
                .is_some_and(|extra| attach_to_extra(extra, point)),
            (None, None) => false,
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

    fn parse_tool_result(&self, value: &RawValue) -> Result<Item, Error> {
        let mut fields = Fields::parse(value.get())?;
        let id = fields.need_string(&["toolUseId"])?;
        let content = fields.take_present(&["content"])?;
        let is_error = match fields.get(&["status"]).map(RawValue::get) {
            Some("\"success\"") => Some(false),
            Some("\"error\"") => Some(true),
            // Another word stays among the rest.
            _ => None,
        };
        if is_error.is_some() {
            fields.take_field(&["status"])?;
        }
        let mut wire = to_extras(fields.into_extra());
        let output = match content {
            None => {
                set_hint(&mut wire, "~content", "absent");
                Output::Text(String::new())
            }
            Some(content) => parse_result_content(content, &mut wire)
                .map_err(|error| error.at_segment("content"))?,
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

fn attach_to_extra(extra: &mut Extra, point: &RawValue) -> bool {
    let mut wire = extra.wire_fields(FORMAT);
    if wire.get(CACHE_POINT).is_some() {
        return false;
    }
    wire.set(CACHE_POINT, point.into());
    extra.set_wire_fields(FORMAT, wire);
    true
}

fn attach_to_raw(raw: &mut Raw, point: &RawValue) -> bool {
    let is_free = raw
        .fields()
        .is_some_and(|fields| fields.get(&[CACHE_POINT]).is_none());
    if is_free {
        set_opaque_field(raw, CACHE_POINT, point.into());
    }
    is_free
}

/// Stores what concerns the whole message on its first item.
fn attach_message_fields(item: &mut Item, start: Extra) {
    match item {
        Item::Extension(extension) => {
            for (key, value) in start.iter() {
                set_opaque_field(&mut extension.raw, key, value.clone());
            }
        }
        item => {
            if let Some(extra) = item.extra_mut() {
                let mut wire = extra.wire_fields(FORMAT);
                wire.extend(start);
                extra.set_wire_fields(FORMAT, wire);
            }
        }
    }
}

/// A block of text and what stands beside it.
fn parse_text_block(mut fields: Fields<'_>) -> Result<TextPart, Error> {
    let mut part = TextPart::new(fields.need_string(&["text"])?);
    part.extra
        .set_wire_fields(FORMAT, to_extras(fields.into_extra()));
    Ok(part)
}

/// Reads the content of a tool's result; one bare block of text or JSON becomes its text.
fn parse_result_content(content: &RawValue, wire: &mut Extra) -> Result<Output, Error> {
    let blocks = parse_elements(content)?;
    let mut parts: Vec<Part> = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.into_iter().enumerate() {
        parse_result_block(block, &mut parts).map_err(|error| error.at_index(index))?;
    }
    match parts.as_mut_slice() {
        [] => {
            set_hint(wire, "~content", "empty");
            Ok(Output::Text(String::new()))
        }
        [Part::InputText(only)] if only.extra.is_empty() => {
            Ok(Output::Text(std::mem::take(&mut only.text)))
        }
        // The hint says that the text is JSON; everybody else reads it as text.
        [Part::InputText(only)] if is_bare_json(&only.extra) => {
            set_hint(wire, "~content", "json");
            Ok(Output::Text(std::mem::take(&mut only.text)))
        }
        _ => Ok(Output::Parts(parts)),
    }
}

/// Whether a part carries nothing but the hint that it is JSON.
fn is_bare_json(extra: &Extra) -> bool {
    let wire = extra.wire_fields(FORMAT);
    wire.get("~block").is_some() && wire.iter().count() == 1
}

fn parse_result_block(block: &RawValue, parts: &mut Vec<Part>) -> Result<(), Error> {
    let fields = Fields::parse(block.get())?;
    let member = single_member(&fields);
    let part = match &member {
        Some((name, value)) if name == "text" => {
            let text: String = serde_json::from_str(value.get())
                .map_err(|_| unexpected_value("a string", value.get()))?;
            Some(Part::input_text(text))
        }
        Some((name, value)) if name == "json" => {
            let mut part = TextPart::new(value.get());
            let mut wire = Extra::new();
            set_hint(&mut wire, "~block", "json");
            part.extra.set_wire_fields(FORMAT, wire);
            Some(Part::InputText(part))
        }
        Some((name, value)) if matches!(name.as_str(), "image" | "document" | "video") => {
            media::parse_media(name, value)?
        }
        // A point inside a result, as far as something stands before it.
        Some((name, value)) if name == "cachePoint" => {
            let before = parts.last_mut().and_then(Part::extra_mut);
            if before.is_some_and(|extra| attach_to_extra(extra, value)) {
                return Ok(());
            }
            None
        }
        _ => None,
    };
    parts.push(part.unwrap_or_else(|| {
        let first = fields.iter().next().map(|(name, _)| name);
        let (kind, raw) = wrap_opaque_block(first.unwrap_or_default(), block);
        Part::Extension(ExtensionPart { kind, raw })
    }));
    Ok(())
}

/// Whether a tool's use is the provider's own, which no host answers.
fn is_server_tool(value: &RawValue) -> bool {
    let kind = Fields::parse(value.get())
        .ok()
        .and_then(|fields| fields.get(&["type"]));
    kind.is_some_and(|kind| kind.get() == "\"server_tool_use\"")
}

fn parse_tool_use(value: &RawValue) -> Result<Item, Error> {
    let mut fields = Fields::parse(value.get())?;
    let id = fields.need_string(&["toolUseId"])?;
    let name = fields.need_string(&["name"])?;
    let input = fields.take_field(&["input"])?.map(RawValue::get);
    let mut wire = to_extras(fields.into_extra());
    match input {
        None => set_hint(&mut wire, "~input", "absent"),
        // The provider takes any value, other formats objects only.
        Some(input) if !input.starts_with('{') => set_hint(&mut wire, "~input", "value"),
        Some(_) => {}
    }
    let mut item = FunctionCall::new(id, name, input.unwrap_or("{}"));
    item.extra.set_wire_fields(FORMAT, wire);
    Ok(item.into())
}

/// Reads thoughts; `None` if they have a shape that is not known.
fn parse_reasoning(value: &RawValue) -> Option<Reasoning> {
    let mut outer = Fields::parse(value.get()).ok()?;
    let mut item = Reasoning {
        format: Some(FAMILY.to_owned()),
        ..Reasoning::default()
    };
    // A mark of ours may stand beside what was redacted.
    let mut wire = Extra::new();
    if let Some(data) = outer.take_string(&["redactedContent"]).ok()? {
        item.encrypted_content = Some(data);
        wire.extend(to_extras(outer.into_extra()));
    } else {
        let (member, inner) = single_member(&outer)?;
        let mut fields = Fields::parse(inner.get())
            .ok()
            .filter(|_| member == "reasoningText")?;
        let text = fields.take_string(&["text"]).ok()??;
        item.signature = fields.take_string(&["signature"]).ok()?;
        // Some models return only the signature of a thought; an empty part would say that it was empty.
        let parts = (!text.is_empty()).then(|| Part::ReasoningText(TextPart::new(text)));
        item.content = Some(parts.into_iter().collect());
        wire.extend(to_extras(fields.into_extra()));
    }
    item.extra.set_wire_fields(FORMAT, wire);
    Some(item)
}
