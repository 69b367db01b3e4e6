//! Contents and their parts, read into items.

use contexture_ir::{
    Error, Extension, ExtensionPart, Extra, Fields, FunctionCall, FunctionCallOutput, Item,
    Message, Output, Part, Raw, Reasoning, Role, TextPart,
};
use serde_json::value::RawValue;

use super::ids::Ids;
use super::names::{Names, camel, peek, unexpected};
use super::words::{CONTENT, FAMILY, FORMAT};
use super::{media, output};
use crate::carry::{START, hint, keep};
use crate::json::Object;

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

/// Reads the array of a request's contents.
pub(super) fn contents(array: &RawValue) -> Result<Vec<Item>, Error> {
    let contents: Vec<&RawValue> =
        serde_json::from_str(array.get()).map_err(|_| unexpected("an array", array.get()))?;
    let mut ids = Ids::default();
    let mut items = Vec::with_capacity(contents.len());
    let mut before = None;
    for (index, content) in contents.into_iter().enumerate() {
        let role = read_content(content, before, &mut ids, &mut items)
            .map_err(|error| error.at_index(index))?;
        before = Some(role);
    }
    Ok(items)
}

/// Reads the content of a candidate.
pub(super) fn answer(content: &RawValue, ids: &mut Ids) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    let mut fields = Fields::parse(content.get())?;
    let mut reader = Reader::new(Role::Assistant, ids);
    match fields.take_string(&["role"])?.as_deref() {
        Some("model") => {}
        Some(other) => hint(&mut reader.start, "~role", other),
        None => hint(&mut reader.start, "~role", "absent"),
    }
    reader.content(fields)?;
    reader.finish(&mut items);
    Ok(items)
}

/// Reads `systemInstruction`: a content, or a string as SDKs allow.
pub(super) fn system(value: &RawValue) -> Result<Message, Error> {
    let mut ids = Ids::default();
    let mut reader = Reader::new(Role::System, &mut ids);
    if value.get().starts_with('"') {
        let text: String =
            serde_json::from_str(value.get()).map_err(|_| unexpected("a string", value.get()))?;
        hint(&mut reader.start, "~content", "string");
        reader.parts.push(Part::input_text(text));
    } else {
        let mut fields = Fields::parse(value.get())?;
        if let Some(role) = fields.take_string(&["role"])? {
            hint(&mut reader.start, "~role", &role);
        }
        reader.content(fields)?;
    }
    let mut message = Message::new(Role::System, reader.parts);
    message.extra.set_wire(FORMAT, reader.start);
    Ok(message)
}

fn read_content(
    content: &RawValue,
    before: Option<Role>,
    ids: &mut Ids,
    items: &mut Vec<Item>,
) -> Result<Role, Error> {
    let mut fields = Fields::parse(content.get())?;
    let word = fields.take_string(&["role"])?;
    let role = match word.as_deref() {
        None | Some("user" | "function") => Role::User,
        Some("model") => Role::Assistant,
        Some(other) => {
            return Err(unexpected("`user` or `model`", other).at("role"));
        }
    };
    let mut reader = Reader::new(role, ids);
    if before == Some(role) {
        hint(&mut reader.start, START, "content");
    }
    match word.as_deref() {
        None => hint(&mut reader.start, "~role", "absent"),
        Some("function") => hint(&mut reader.start, "~role", "function"),
        Some(_) => {}
    }
    reader.content(fields)?;
    reader.finish(items);
    Ok(role)
}

/// Reads the parts of one content.
struct Reader<'i> {
    role: Role,
    ids: &'i mut Ids,
    /// What the first item carries for the whole content.
    start: Extra,
    parts: Vec<Part>,
    items: Vec<Item>,
    /// Whether a function response came already, and whether anything else did.
    answered: bool,
    spoke: bool,
}

impl<'i> Reader<'i> {
    fn new(role: Role, ids: &'i mut Ids) -> Self {
        Self {
            role,
            ids,
            start: Extra::new(),
            parts: Vec::new(),
            items: Vec::new(),
            answered: false,
            spoke: false,
        }
    }

    fn content(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        let parts = fields.take_present(&["parts"])?;
        let rest = keep(fields.rest());
        if !rest.is_empty() {
            self.start.set(CONTENT, Raw::from_value(&rest)?);
        }
        let Some(parts) = parts else {
            hint(&mut self.start, "~parts", "absent");
            return Ok(());
        };
        let read = |error: Error| error.at("parts");
        let list: Vec<&RawValue> = serde_json::from_str(parts.get())
            .map_err(|_| read(unexpected("an array of parts", parts.get())))?;
        for (index, part) in list.into_iter().enumerate() {
            self.part(part)
                .map_err(|error| read(error.at_index(index)))?;
        }
        Ok(())
    }

    fn part(&mut self, part: &RawValue) -> Result<(), Error> {
        let mut fields = Fields::parse(part.get())?;
        let mut said = DATA
            .into_iter()
            .filter(|name| peek(&fields, name).is_some());
        let kind = said.next();
        let alone = said.next().is_none();
        let thought = fields
            .get(&["thought"])
            .is_some_and(|flag| flag.get() == "true");
        match (kind.filter(|_| alone), self.role) {
            (Some("text"), Role::Assistant) if thought => {
                let item = thoughts(&mut fields)?;
                self.item(item);
            }
            (Some("text"), _) if !thought => self.text(fields)?,
            (Some("inlineData" | "fileData"), Role::User | Role::Assistant) if !thought => {
                match self.medium(fields)? {
                    Some(part) => self.parts.push(part),
                    None => self.opaque(kind.unwrap_or("part"), part),
                }
            }
            (Some("functionCall"), Role::Assistant) => {
                let item = self.call(fields)?;
                self.item(item);
            }
            (Some("functionResponse"), Role::User) => {
                let item = self.response(fields)?;
                self.item(item);
                self.answered = true;
                return Ok(());
            }
            _ => {
                let other = fields.iter().map(|(key, _)| camel(key)).next();
                let kind = kind
                    .map(str::to_owned)
                    .or(other)
                    .unwrap_or_else(|| "part".to_owned());
                self.opaque(&kind, part);
            }
        }
        self.spoke = true;
        Ok(())
    }

    fn text(&mut self, mut fields: Fields<'_>) -> Result<(), Error> {
        let mut part = TextPart::new(fields.need_string(&["text"])?);
        let mut wire = keep(fields.rest());
        if part.text.is_empty() {
            hint(&mut wire, "~empty", "text");
        }
        part.extra.set_wire(FORMAT, wire);
        self.parts.push(match self.role {
            Role::Assistant => Part::OutputText(part),
            _ => Part::InputText(part),
        });
        Ok(())
    }

    fn medium(&mut self, mut fields: Fields<'_>) -> Result<Option<Part>, Error> {
        let mut names = Names::default();
        let mut wire = Extra::new();
        let part = if let Some(value) = names.take(&mut fields, "inlineData")? {
            media::inline(value, &mut names, &mut wire).map_err(|e| e.at("inlineData"))?
        } else if let Some(value) = names.take(&mut fields, "fileData")? {
            media::by_address(value, &mut names, &mut wire).map_err(|e| e.at("fileData"))?
        } else {
            None
        };
        names.note(&mut wire);
        wire.extend(keep(fields.rest()));
        Ok(part.map(|mut part| {
            if let Some(extra) = part.extra_mut() {
                extra.set_wire(FORMAT, wire);
            }
            part
        }))
    }

    fn call(&mut self, mut fields: Fields<'_>) -> Result<Item, Error> {
        let mut names = Names::default();
        let mut wire = Extra::new();
        let value = names.take(&mut fields, "functionCall")?;
        let mut inner = Fields::parse(value.map_or("{}", RawValue::get))
            .map_err(|error| error.at("functionCall"))?;
        let at = |error: Error| error.at("functionCall");
        let name = inner
            .take_string(&["name"])
            .map_err(at)?
            .ok_or(Error::Missing {
                path: "functionCall".to_owned(),
                field: "name",
            })?;
        let id = inner.take_string(&["id"]).map_err(at)?;
        let args = inner.take_present(&["args"]).map_err(at)?;
        if args.is_none() {
            hint(&mut wire, "~args", "absent");
        }
        media::nest(&mut wire, "functionCall", inner)?;
        names.note(&mut wire);
        wire.extend(keep(fields.rest()));
        let id = self.ids.call(&name, id);
        let mut item = FunctionCall::new(id, name, args.map_or("{}", RawValue::get));
        item.extra.set_wire(FORMAT, wire);
        Ok(item.into())
    }

    fn response(&mut self, mut fields: Fields<'_>) -> Result<Item, Error> {
        let mut names = Names::default();
        let mut wire = Extra::new();
        let value = names.take(&mut fields, "functionResponse")?;
        let at = |error: Error| error.at("functionResponse");
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
        if let Some(other) = response
            .as_ref()
            .filter(|value| !value.get().starts_with('{'))
        {
            wire.set(output::VALUE, other.clone());
        }
        let parts = inner.take_present(&["parts"]).map_err(at)?;
        media::nest(&mut wire, "functionResponse", inner)?;
        names.note(&mut wire);
        wire.extend(keep(fields.rest()));
        hint(&mut wire, "~name", &name);
        if id.is_none() {
            hint(&mut wire, "~id", "absent");
        }
        if self.spoke {
            hint(&mut wire, "~place", "here");
        }
        let read = response.as_ref().map(output::text);
        if response.is_none() {
            hint(&mut wire, "~response", "absent");
        } else if let Some(key) = read.as_ref().and_then(|read| read.wrap) {
            hint(&mut wire, "~wrap", key);
        }
        let is_error = read.as_ref().and_then(|read| read.is_error);
        let text = read.map(|read| read.text).unwrap_or_default();
        let output = match parts {
            None => Output::Text(text),
            Some(parts) => {
                let mut all = vec![Part::input_text(text)];
                all.extend(response_parts(parts).map_err(|error| at(error.at("parts")))?);
                Output::Parts(all)
            }
        };
        let mut item = FunctionCallOutput::new(self.ids.answer(&name, id.as_deref()), output);
        item.is_error = is_error;
        item.extra.set_wire(FORMAT, wire);
        Ok(item.into())
    }

    fn item(&mut self, item: Item) {
        self.flush();
        self.push(item);
    }

    /// A part kept whole: an item of its own on the model's side, else a part of the message.
    fn opaque(&mut self, kind: &str, part: &RawValue) {
        let (kind, raw) = opaque(kind, part);
        if self.role == Role::Assistant {
            self.item(Item::Extension(Extension {
                kind,
                id: None,
                raw,
            }));
        } else {
            self.parts
                .push(Part::Extension(ExtensionPart { kind, raw }));
        }
    }

    fn flush(&mut self) {
        if !self.parts.is_empty() {
            let parts = std::mem::take(&mut self.parts);
            if self.answered {
                hint(&mut self.start, "~join", "content");
            }
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
            self.push(Item::Message(Message::new(self.role, Vec::new())));
        }
        items.append(&mut self.items);
    }
}

/// Media inside a function response.
fn response_parts(array: &RawValue) -> Result<Vec<Part>, Error> {
    let parts: Vec<&RawValue> =
        serde_json::from_str(array.get()).map_err(|_| unexpected("an array", array.get()))?;
    let mut ids = Ids::default();
    let mut reader = Reader::new(Role::User, &mut ids);
    for (index, part) in parts.into_iter().enumerate() {
        let fields = Fields::parse(part.get()).map_err(|error| error.at_index(index))?;
        let medium = ["inlineData", "fileData"]
            .iter()
            .any(|name| peek(&fields, name).is_some());
        let read = if medium {
            reader.medium(fields)
        } else {
            Ok(None)
        };
        match read.map_err(|error| error.at_index(index))? {
            Some(part) => reader.parts.push(part),
            None => reader.opaque("part", part),
        }
    }
    Ok(reader.parts)
}

/// A part kept whole, with its kind.
fn opaque(kind: &str, part: &RawValue) -> (String, Raw) {
    let kind = format!("{FORMAT}:{kind}");
    let mut object = Object::new();
    object.string("type", &kind).raw("block", part.get());
    let raw = Raw::parse(object.finish()).unwrap_or_else(|_| Raw::null());
    (kind, raw)
}

/// Hangs what concerns the whole content on its first item.
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
                wire.extend(start);
                extra.set_wire(FORMAT, wire);
            }
        }
    }
}

/// A part with `thought`: what the model shows of its thinking.
fn thoughts(fields: &mut Fields<'_>) -> Result<Item, Error> {
    let mut names = Names::default();
    fields.take(&["thought"])?;
    let text = fields.need_string(&["text"])?;
    let mut item = Reasoning {
        content: Some(vec![Part::ReasoningText(TextPart::new(text))]),
        signature: names.take_string(fields, "thoughtSignature")?,
        format: Some(FAMILY.to_owned()),
        ..Reasoning::default()
    };
    let mut wire = Extra::new();
    names.note(&mut wire);
    wire.extend(keep(std::mem::take(fields).rest()));
    item.extra.set_wire(FORMAT, wire);
    Ok(item.into())
}
