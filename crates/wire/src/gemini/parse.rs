//! Contents and their parts, read into items.

use contexture_ir::{
    Cancel, Error, Extension, ExtensionPart, Extra, Fields, FunctionCall, FunctionCallOutput, Item,
    Message, Output, Part, Raw, Reasoning, Role, TextPart,
};
use serde_json::value::RawValue;

use super::ids::CallIdTracker;
use super::names::{SnakeCaseFields, peek_field, to_camel_case, unexpected_value};
use super::spec::{CONTENT, FAMILY, FORMAT};
use super::{media, output};
use crate::model::format_extras::{START, set_hint, to_extras};
use crate::model::json::ObjectWriter;

/// The fields of a part that say something, of which it has one.
const DATA: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

/// The hint of a call or a response whose id is not the one that it came with.
pub(super) const ID: &str = "~id";
/// The word of [`ID`] for an id that came empty: calls and responses are given one, by which they find each other.
pub(super) const EMPTY: &str = "empty";

/// Reads the array of a request's contents.
pub(super) fn parse_contents(
    array: &RawValue,
    cancel: Option<&Cancel>,
) -> Result<Vec<Item>, Error> {
    let contents: Vec<&RawValue> =
        serde_json::from_str(array.get()).map_err(|_| unexpected_value("an array", array.get()))?;
    let mut ids = CallIdTracker::default();
    let mut items = Vec::with_capacity(contents.len());
    let mut before = None;
    for (index, content) in contents.into_iter().enumerate() {
        Cancel::check_optional(cancel)?;
        let role = parse_content(content, before, &mut ids, &mut items)
            .map_err(|error| error.at_index(index))?;
        before = Some(role);
    }
    Ok(items)
}

/// Reads the content of a candidate.
pub(super) fn parse_candidate_content(
    content: &RawValue,
    ids: &mut CallIdTracker,
) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    let mut fields = Fields::parse(content.get())?;
    let mut reader = ContentParser::new(Role::Assistant, ids);
    match fields.take_string(&["role"])?.as_deref() {
        Some("model") => {}
        Some(other) => set_hint(&mut reader.start, "~role", other),
        None => set_hint(&mut reader.start, "~role", "absent"),
    }
    reader.parse_parts(fields)?;
    reader.finish(&mut items);
    Ok(items)
}

/// Reads `systemInstruction`: a content, or a string as SDKs allow.
pub(super) fn parse_system_instruction(value: &RawValue) -> Result<Message, Error> {
    let mut ids = CallIdTracker::default();
    let mut reader = ContentParser::new(Role::System, &mut ids);
    if value.get().starts_with('"') {
        let text: String = serde_json::from_str(value.get())
            .map_err(|_| unexpected_value("a string", value.get()))?;
        set_hint(&mut reader.start, "~content", "string");
        reader.parts.push(Part::input_text(text));
    } else {
        let mut fields = Fields::parse(value.get())?;
        if let Some(role) = fields.take_string(&["role"])? {
            set_hint(&mut reader.start, "~role", &role);
        }
        reader.parse_parts(fields)?;
    }
    let mut message = Message::new(Role::System, reader.parts);
    message.extra.set_wire_fields(FORMAT, reader.start);
    Ok(message)
}

fn parse_content(
    content: &RawValue,
    before: Option<Role>,
    ids: &mut CallIdTracker,
    items: &mut Vec<Item>,
) -> Result<Role, Error> {
    let mut fields = Fields::parse(content.get())?;
    let word = fields.take_string(&["role"])?;
    let role = match word.as_deref() {
        // A content without a role is the user's; `function` is an older word for responses.
        None | Some("user" | "function") => Role::User,
        Some("model") => Role::Assistant,
        Some(other) => {
            return Err(unexpected_value("`user` or `model`", other).at_segment("role"));
        }
    };
    let mut reader = ContentParser::new(role, ids);
    // Two contents of one side in a row would be written as one; the hint keeps them apart.
    if before == Some(role) {
        set_hint(&mut reader.start, START, "content");
    }
    match word.as_deref() {
        None => set_hint(&mut reader.start, "~role", "absent"),
        Some("function") => set_hint(&mut reader.start, "~role", "function"),
        Some(_) => {}
    }
    reader.parse_parts(fields)?;
    reader.finish(items);
    Ok(role)
}

/// Reads the parts of one content.
struct ContentParser<'i> {
    role: Role,
    ids: &'i mut CallIdTracker,
    /// What the first item carries for the whole content.
    start: Extra,
    parts: Vec<Part>,
    items: Vec<Item>,
    /// Whether a function response came already, and whether anything else did.
    has_response: bool,
    has_non_response: bool,
}

impl<'i> ContentParser<'i> {
    fn new(role: Role, ids: &'i mut CallIdTracker) -> Self {
        Self {
            role,
            ids,
            start: Extra::new(),
            parts: Vec::new(),
            items: Vec::new(),
            has_response: false,
            has_non_response: false,
        }
    }

    fn parse_parts(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        let parts = fields.take_present(&["parts"])?;
        let rest = to_extras(fields.into_extra());
        if !rest.is_empty() {
            self.start.set(CONTENT, Raw::from_value(&rest)?);
        }
        let Some(parts) = parts else {
            set_hint(&mut self.start, "~parts", "absent");
            return Ok(());
        };
        let read = |error: Error| error.at_segment("parts");
        let list: Vec<&RawValue> = serde_json::from_str(parts.get())
            .map_err(|_| read(unexpected_value("an array of parts", parts.get())))?;
        for (index, part) in list.into_iter().enumerate() {
            self.parse_part(part)
                .map_err(|error| read(error.at_index(index)))?;
        }
        Ok(())
    }

    fn parse_part(&mut self, part: &RawValue) -> Result<(), Error> {
        let mut fields = Fields::parse(part.get())?;
        let mut said = DATA
            .into_iter()
            .filter(|name| peek_field(&fields, name).is_some());
        let kind = said.next();
        // A part with two kinds of data has no equal among items and is kept whole.
        let alone = said.next().is_none();
        let thought = fields
            .get(&["thought"])
            .is_some_and(|flag| flag.get() == "true");
        match (kind.filter(|_| alone), self.role) {
            (Some("text"), Role::Assistant) if thought => {
                let item = parse_thought(&mut fields)?;
                self.push_item(item);
            }
            (Some("text"), _) if !thought => self.parse_text(fields)?,
            (Some("inlineData" | "fileData"), Role::User | Role::Assistant) if !thought => {
                match self.parse_media(fields)? {
                    Some(part) => self.parts.push(part),
                    // Media that no part can hold stays whole, as its own JSON.
                    None => self.push_opaque_part(kind.unwrap_or("part"), part),
                }
            }
            (Some("functionCall"), Role::Assistant) => {
                let item = self.parse_function_call(fields)?;
                self.push_item(item);
            }
            (Some("functionResponse"), Role::User) => {
                let item = self.parse_function_response(fields)?;
                self.push_item(item);
                self.has_response = true;
                // Not `has_non_response`: that flag tells whether something else stood before a
                // response.
                return Ok(());
            }
            _ => {
                // A kind that is not known is named by its first member.
                let other = fields.iter().map(|(key, _)| to_camel_case(key)).next();
                let kind = kind
                    .map(str::to_owned)
                    .or(other)
                    .unwrap_or_else(|| "part".to_owned());
                self.push_opaque_part(&kind, part);
            }
        }
        self.has_non_response = true;
        Ok(())
    }

    fn parse_text(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        let mut part = TextPart::new(fields.need_string(&["text"])?);
        let mut wire = to_extras(fields.into_extra());
        // Empty text may carry a signature, so the hint keeps it from being left out.
        if part.text.is_empty() {
            set_hint(&mut wire, "~empty", "text");
        }
        part.extra.set_wire_fields(FORMAT, wire);
        self.parts.push(match self.role {
            Role::Assistant => Part::OutputText(part),
            _ => Part::InputText(part),
        });
        Ok(())
    }

    fn parse_media(&mut self, mut fields: Fields<'_>) -> Result<Option<Part>, Error> {
        let mut names = SnakeCaseFields::default();
        let mut wire = Extra::new();
        let part = if let Some(value) = names.take_field(&mut fields, "inlineData")? {
            media::parse_inline_data(value, &mut names, &mut wire)
                .map_err(|e| e.at_segment("inlineData"))?
        } else if let Some(value) = names.take_field(&mut fields, "fileData")? {
            media::parse_file_data(value, &mut names, &mut wire)
                .map_err(|e| e.at_segment("fileData"))?
        } else {
            None
        };
        names.save_to(&mut wire);
        wire.extend(to_extras(fields.into_extra()));
        Ok(part.map(|mut part| {
            if let Some(extra) = part.extra_mut() {
                extra.set_wire_fields(FORMAT, wire);
            }
            part
        }))
    }

    fn parse_function_call(&mut self, mut fields: Fields<'_>) -> Result<Item, Error> {
        let mut names = SnakeCaseFields::default();
        let mut wire = Extra::new();
        let value = names.take_field(&mut fields, "functionCall")?;
        let at = |error: Error| error.at_segment("functionCall");
        let mut inner = Fields::parse(value.map_or("{}", RawValue::get)).map_err(at)?;
        let name = inner.take_string(&["name"]).map_err(at)?;
        let name = name.ok_or(Error::Missing {
            path: "functionCall".to_owned(),
            field: "name",
        })?;
        let id = inner.take_string(&["id"]).map_err(at)?;
        let args = inner.take_present(&["args"]).map_err(at)?;
        if args.is_none() {
            set_hint(&mut wire, "~args", "absent");
        }
        if id.as_deref() == Some("") {
            set_hint(&mut wire, ID, EMPTY);
        }
        media::store_nested(&mut wire, "functionCall", inner)?;
        names.save_to(&mut wire);
        wire.extend(to_extras(fields.into_extra()));
        // Ids are optional here, but items need one, so that outputs find their calls.
        let id = self.ids.assign_call_id(&name, id);
        let mut item = FunctionCall::new(id, name, args.map_or("{}", RawValue::get));
        item.extra.set_wire_fields(FORMAT, wire);
        Ok(item.into())
    }

    fn parse_function_response(&mut self, mut fields: Fields<'_>) -> Result<Item, Error> {
        let mut names = SnakeCaseFields::default();
        let mut wire = Extra::new();
        let value = names.take_field(&mut fields, "functionResponse")?;
        let at = |error: Error| error.at_segment("functionResponse");
        let mut inner = Fields::parse(value.map_or("{}", RawValue::get)).map_err(at)?;
        let name = inner
            .take_string(&["name"])
            .map_err(at)?
            .unwrap_or_default();
        let id = inner.take_string(&["id"]).map_err(at)?;
        let response = inner
            .take_present(&["response"])
            .map_err(at)?
            .map(Raw::from);
        // The specification wants an object; what else came is kept as it is.
        if let Some(other) = response
            .as_ref()
            .filter(|value| !value.get().starts_with('{'))
        {
            wire.set(output::VALUE, other.clone());
        }
        let parts = inner.take_present(&["parts"]).map_err(at)?;
        media::store_nested(&mut wire, "functionResponse", inner)?;
        names.save_to(&mut wire);
        wire.extend(to_extras(fields.into_extra()));
        set_hint(&mut wire, "~name", &name);
        match id.as_deref() {
            None => set_hint(&mut wire, ID, "absent"),
            Some("") => set_hint(&mut wire, ID, EMPTY),
            Some(_) => {}
        }
        if self.has_non_response {
            set_hint(&mut wire, "~place", "here");
        }
        let read = response.as_ref().map(output::parse_output);
        if response.is_none() {
            set_hint(&mut wire, "~response", "absent");
        } else if let Some(key) = read.as_ref().and_then(|read| read.wrap) {
            set_hint(&mut wire, "~wrap", key);
        }
        let is_error = read.as_ref().and_then(|read| read.is_error);
        let text = read.map(|read| read.text).unwrap_or_default();
        let output = match parts {
            None => Output::Text(text),
            Some(parts) => {
                // First, because the response object stands before the media.
                let mut all = vec![Part::input_text(text)];
                all.extend(
                    parse_response_parts(parts).map_err(|error| at(error.at_segment("parts")))?,
                );
                Output::Parts(all)
            }
        };
        let mut item = FunctionCallOutput::new(
            self.ids
                .answered_call_id(&name, id.as_deref().filter(|id| !id.is_empty())),
            output,
        );
        item.is_error = is_error;
        item.extra.set_wire_fields(FORMAT, wire);
        Ok(item.into())
    }

    fn push_item(&mut self, item: Item) {
        self.flush_parts();
        self.append_item(item);
    }

    /// Stores a part whole: an item of its own on the model's side, else a part of the message.
    fn push_opaque_part(&mut self, kind: &str, part: &RawValue) {
        let (kind, raw) = wrap_opaque_part(kind, part);
        if self.role == Role::Assistant {
            self.push_item(Item::Extension(Extension {
                kind,
                id: None,
                raw,
            }));
        } else {
            self.parts
                .push(Part::Extension(ExtensionPart { kind, raw }));
        }
    }

    fn flush_parts(&mut self) {
        if !self.parts.is_empty() {
            let parts = std::mem::take(&mut self.parts);
            // This text stood in the same content as the responses before it.
            if self.has_response {
                set_hint(&mut self.start, "~join", "content");
            }
            self.append_item(Item::Message(Message::new(self.role, parts)));
        }
    }

    fn append_item(&mut self, mut item: Item) {
        if !self.start.is_empty() {
            attach_content_fields(&mut item, std::mem::take(&mut self.start));
        }
        self.items.push(item);
    }

    fn finish(mut self, items: &mut Vec<Item>) {
        self.flush_parts();
        // A content without parts becomes an item too; otherwise its fields would be lost.
        if self.items.is_empty() {
            self.append_item(Item::Message(Message::new(self.role, Vec::new())));
        }
        items.append(&mut self.items);
    }
}

/// Media inside a function response.
fn parse_response_parts(array: &RawValue) -> Result<Vec<Part>, Error> {
    let parts: Vec<&RawValue> =
        serde_json::from_str(array.get()).map_err(|_| unexpected_value("an array", array.get()))?;
    // Parts of a response hold no calls, so this tracker stays unused.
    let mut ids = CallIdTracker::default();
    let mut reader = ContentParser::new(Role::User, &mut ids);
    for (index, part) in parts.into_iter().enumerate() {
        let fields = Fields::parse(part.get()).map_err(|error| error.at_index(index))?;
        let medium = ["inlineData", "fileData"]
            .iter()
            .any(|name| peek_field(&fields, name).is_some());
        let read = if medium {
            reader.parse_media(fields)
        } else {
            Ok(None)
        };
        match read.map_err(|error| error.at_index(index))? {
            Some(part) => reader.parts.push(part),
            None => reader.push_opaque_part("part", part),
        }
    }
    Ok(reader.parts)
}

/// Wraps a part that is stored whole, and returns its kind.
fn wrap_opaque_part(kind: &str, part: &RawValue) -> (String, Raw) {
    let kind = format!("{FORMAT}:{kind}");
    let mut object = ObjectWriter::new();
    object.string("type", &kind).raw("block", part.get());
    let raw = Raw::parse(object.finish()).unwrap_or_else(|_| Raw::null());
    (kind, raw)
}

/// Hangs what concerns the whole content on its first item.
fn attach_content_fields(item: &mut Item, start: Extra) {
    match item {
        Item::Extension(extension) => {
            // An opaque item has no `extra`; the hints go into its own JSON.
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
                wire.extend(start);
                extra.set_wire_fields(FORMAT, wire);
            }
        }
    }
}

/// A part with `thought`: what the model shows of its thinking.
fn parse_thought(fields: &mut Fields<'_>) -> Result<Item, Error> {
    let mut names = SnakeCaseFields::default();
    fields.take_field(&["thought"])?;
    let text = fields.need_string(&["text"])?;
    let mut item = Reasoning {
        content: Some(vec![Part::ReasoningText(TextPart::new(text))]),
        signature: names.take_string(fields, "thoughtSignature")?,
        format: Some(FAMILY.to_owned()),
        ..Reasoning::default()
    };
    let mut wire = Extra::new();
    names.save_to(&mut wire);
    wire.extend(to_extras(std::mem::take(fields).into_extra()));
    item.extra.set_wire_fields(FORMAT, wire);
    Ok(item.into())
}
