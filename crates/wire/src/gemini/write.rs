//! Items, written as contents: one run becomes as few contents as the items allow.

use contexture_ir::{
    Compaction, Extension, Extra, Fields, FunctionCall, FunctionCallOutput, Item, Message, Output,
    Part, Raw, Reasoning, TextPart, quote,
};

use super::group::Group;
use super::names::Names;
use super::part::{medium, outer, own_part, without_content, written_id};
use super::words::{CONTENT, FORMAT, MAKER};
use super::{media, output};
use crate::Chunk;
use crate::carry::{START, hinted, tell_foreign};
use crate::compaction::retold;
use crate::entry::{Entry, Run, Side, side};
use crate::format::Format;
use crate::function_name::GEMINI;
use crate::json::{Object, array, as_object};
use crate::loss::{LossKind, Losses};
use crate::system_tag::system_tag;

/// The signature of a call that another model made, or a program: documented for histories that the
/// model did not write itself (base64 of `skip_thought_signature_validator`).
const UNSIGNED: &str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";

/// Lowers one run. With `signed` a step's first call carries a signature, the sentinel if it has
/// none of its own.
pub(super) fn run(run: &Run<'_, '_>, signed: Signing) -> Chunk {
    let mut writer = Writer::new(run.side, Use::Request);
    writer.signing = signed;
    for (index, entry) in run.entries.iter().enumerate() {
        writer.entry(index, entry);
    }
    let messages = writer.groups.into_iter().flat_map(Group::finish);
    let ids = (writer.calls, writer.outputs);
    Chunk::of_side(run.side, messages, ids, writer.losses)
}

/// The content of a candidate; `None` if it had none.
pub(super) fn answer<'a>(entries: impl Iterator<Item = Entry<'a>>) -> (Option<String>, Losses) {
    let mut writer = Writer::new(Side::Model, Use::Response);
    for (index, entry) in entries.enumerate() {
        if side(entry.item, Format::Gemini) == Some(Side::User) {
            let why = "a response holds what the model said";
            writer
                .losses
                .push(format!("[{index}]"), LossKind::Item, why);
        } else {
            writer.entry(index, &entry);
        }
    }
    let losses = std::mem::take(&mut writer.losses);
    (
        writer
            .groups
            .into_iter()
            .next()
            .and_then(|group| group.whole()),
        losses,
    )
}

/// `systemInstruction`.
pub(super) fn system(instructions: &[Message], losses: &mut Losses) -> Option<String> {
    let mut writer = Writer::new(Side::User, Use::Request);
    let mut string = false;
    let mut role = None;
    for (index, message) in instructions.iter().enumerate() {
        let path = format!("instructions[{index}]");
        tell_foreign(&message.extra, FORMAT, &path, &mut writer.losses);
        if message.role == contexture_ir::Role::Developer {
            let why = "the format knows one kind of instruction, system";
            writer
                .losses
                .push(format!("{path}.role"), LossKind::Role, why);
        }
        let wire = message.extra.wire(FORMAT);
        string |= hinted(&wire, "~content").is_some();
        role = role.or(hinted(&wire, "~role"));
        for (at, part) in message.content.iter().enumerate() {
            let part = writer.part(part, &format!("{path}.content[{at}]"));
            writer.group(&wire).rest.extend(part);
        }
    }
    losses.absorb("", writer.losses);
    let group = writer.groups.pop().filter(|group| !group.rest.is_empty())?;
    if let ([only], [Message { content, .. }]) = (group.rest.as_slice(), instructions)
        && string
        && let [Part::InputText(text)] = content.as_slice()
        && only.contains("\"text\"")
    {
        return Some(quote(&text.text));
    }
    let mut object = Object::new();
    object.maybe("role", role.map(|role| quote(&role)).as_deref());
    object
        .raw("parts", &array(group.rest))
        .carried(&group.fields);
    Some(object.finish())
}

/// Whether a call without a thought signature is written as it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signing {
    /// As it is.
    AsIs,
    /// The first of a step gets the sentinel: Gemini 3 refuses it otherwise.
    Sentinel,
}

/// What is being written; a response repeats what the provider said, empty or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Request,
    Response,
}

struct Writer {
    side: Side,
    purpose: Use,
    signing: Signing,
    groups: Vec<Group>,
    losses: Losses,
    calls: Vec<String>,
    outputs: Vec<String>,
}

impl Writer {
    fn new(side: Side, purpose: Use) -> Self {
        Self {
            side,
            purpose,
            signing: Signing::AsIs,
            groups: Vec::new(),
            losses: Losses::default(),
            calls: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn entry(&mut self, index: usize, entry: &Entry<'_>) {
        let path = format!("[{index}]");
        match entry.item {
            Item::Message(message) => self.message(message, &path),
            Item::FunctionCall(call) => self.call(call, entry.call_id(), &path),
            Item::FunctionCallOutput(output) => self.output(output, entry, &path),
            Item::Reasoning(reasoning) => self.reasoning(reasoning, &path),
            Item::Compaction(compaction) => self.compaction(compaction, &path),
            Item::Extension(extension) => self.extension(extension, &path),
        }
    }

    /// The content that an item with these carried fields goes into.
    fn group(&mut self, wire: &Extra) -> &mut Group {
        let fresh = self.purpose == Use::Request && hinted(wire, START).is_some();
        if fresh || self.groups.is_empty() {
            self.groups.push(Group::new(self.side));
        }
        let last = self.groups.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "a group was just made sure of")]
        let group = &mut self.groups[last];
        if let Some(fields) = wire.get(CONTENT).and_then(Raw::fields) {
            group.fields.extend(fields.rest());
        }
        group.joined |= wire.get("~join").is_some() || wire.get("~place").is_some();
        group.bare |= wire.get("~parts").is_some();
        if let Some(role) = hinted(wire, "~role") {
            group.role = Some(role);
        }
        group
    }

    fn message(&mut self, message: &Message, path: &str) {
        tell_foreign(&message.extra, FORMAT, path, &mut self.losses);
        let wire = message.extra.wire(FORMAT);
        let tagged = message.role.is_instruction();
        if tagged {
            let why = "inside a history the host's words are user text in a <system> tag";
            self.losses
                .push(format!("{path}.role"), LossKind::Role, why);
        }
        let mut parts = Vec::new();
        for (index, part) in message.content.iter().enumerate() {
            let path = format!("{path}.content[{index}]");
            parts.extend(match part {
                Part::InputText(text) | Part::OutputText(text) if tagged => {
                    tell_foreign(&text.extra, FORMAT, &path, &mut self.losses);
                    let tagged = TextPart::new(system_tag(&text.text));
                    self.text(&tagged, &path)
                }
                part => self.part(part, &path),
            });
        }
        if message.content.is_empty() && self.purpose == Use::Request {
            self.losses
                .push(path, LossKind::Item, "a content without parts is refused");
        }
        if !parts.is_empty() || self.purpose == Use::Response {
            self.group(&wire).rest.extend(parts);
        }
    }

    fn part(&mut self, part: &Part, path: &str) -> Option<String> {
        if let Some(extra) = part.extra() {
            tell_foreign(extra, FORMAT, path, &mut self.losses);
        }
        match part {
            Part::Refusal(text) => {
                self.losses
                    .push(path, LossKind::Value, "a refusal is written as text");
                self.text(text, path)
            }
            Part::InputText(text)
            | Part::OutputText(text)
            | Part::SummaryText(text)
            | Part::ReasoningText(text) => self.text(text, path),
            Part::InputImage(image) => {
                let wire = image.extra.wire(FORMAT);
                let object = media::image(image, &wire, path, &mut self.losses);
                object.map(|object| medium(object, wire))
            }
            Part::InputFile(file) => {
                let wire = file.extra.wire(FORMAT);
                let object = media::file(file, &wire, path, &mut self.losses);
                object.map(|object| medium(object, wire))
            }
            Part::Extension(part) => {
                let own = own_part(&part.kind, &part.raw);
                if own.is_none() {
                    let why = format!("no word for a part of type `{}`", part.kind);
                    self.losses.push(path, LossKind::Part, why);
                }
                own
            }
        }
    }

    /// A text part; empty text is left out of requests unless it came from this format: Vertex refuses
    /// it, yet signatures stand on it.
    fn text(&mut self, part: &TextPart, path: &str) -> Option<String> {
        let wire = part.extra.wire(FORMAT);
        let own = ["~empty", "thoughtSignature", "thought_signature"]
            .iter()
            .any(|key| wire.get(key).is_some());
        if part.text.is_empty() && !own && self.purpose == Use::Request {
            self.losses
                .push(path, LossKind::Part, "empty text says nothing");
            return None;
        }
        let mut object = Object::new();
        object.string("text", &part.text).carried(&wire);
        Some(object.finish())
    }

    fn call(&mut self, call: &FunctionCall, id: &str, path: &str) {
        tell_foreign(&call.extra, FORMAT, path, &mut self.losses);
        let wire = call.extra.wire(FORMAT);
        let names = Names::of(&wire);
        let blank = call.arguments.trim().is_empty();
        let args = as_object(&call.arguments).unwrap_or_else(|| {
            if !blank {
                let why = "arguments that are not a JSON object become {}";
                self.losses
                    .push(format!("{path}.arguments"), LossKind::Value, why);
            }
            "{}"
        });
        let name = match self.purpose {
            Use::Request => GEMINI.write(&call.name, path, &mut self.losses),
            Use::Response => call.name.as_str().into(),
        };
        let mut inner = Object::new();
        inner
            .maybe("id", written_id(id).as_deref())
            .string("name", &name);
        if !(wire.get("~args").is_some() && args == "{}") {
            inner.raw("args", args);
        }
        inner.carried(&media::nested(&wire, "functionCall"));
        let mut carried = wire.clone();
        let signed = ["thoughtSignature", "thought_signature"];
        let unsigned = signed.iter().all(|name| wire.get(name).is_none());
        if self.signing == Signing::Sentinel && self.calls.is_empty() && unsigned {
            let name = names.spell("thoughtSignature");
            carried.set(&name, Raw::string(UNSIGNED));
        }
        let part = outer("functionCall", &names, inner, &carried);
        self.group(&wire).rest.push(part);
        self.calls.push(id.to_owned());
    }

    fn output(&mut self, item: &FunctionCallOutput, entry: &Entry<'_>, path: &str) {
        tell_foreign(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire(FORMAT);
        let names = Names::of(&wire);
        let id = entry.call_id();
        let own = hinted(&wire, "~name");
        let name = own
            .as_deref()
            .filter(|name| !name.is_empty())
            .or(entry.function);
        if name.is_none() || own.as_deref() == Some("") {
            let why = match name {
                Some(_) => "the response had no name; the call's is written",
                None => "the call is not known, so neither is the function's name",
            };
            self.losses
                .push(format!("{path}.name"), LossKind::Value, why);
        }
        let name = GEMINI.write(name.unwrap_or("unknown"), path, &mut self.losses);
        let (response, parts) = self.response(item, &wire, path);
        let mut inner = Object::new();
        if wire.get("~id").is_none() {
            inner.maybe("id", written_id(id).as_deref());
        }
        inner
            .string("name", &name)
            .maybe("response", response.as_deref());
        inner.maybe("parts", parts.map(array).as_deref());
        inner.carried(&media::nested(&wire, "functionResponse"));
        let part = outer("functionResponse", &names, inner, &wire);
        let placed = wire.get("~place").is_some();
        let group = self.group(&wire);
        let moved = !placed && !group.rest.is_empty();
        if placed {
            &mut group.rest
        } else {
            &mut group.results
        }
        .push(part);
        if moved {
            let why = "responses of functions stand right behind the calls";
            self.losses.push(path, LossKind::Order, why);
        }
        self.outputs.push(id.to_owned());
    }

    /// The response object and the media beside it.
    fn response(
        &mut self,
        item: &FunctionCallOutput,
        wire: &Extra,
        path: &str,
    ) -> (Option<String>, Option<Vec<String>>) {
        let wrap = hinted(wire, "~wrap");
        let absent = wire.get("~response").is_some();
        let own = wire.get(output::VALUE);
        let object = |text: &str| match own.filter(|own| output::bare(own) == text) {
            Some(own) => own.get().to_owned(),
            None => output::object(text, item.is_error, wrap.as_deref()),
        };
        match &item.output {
            Output::Text(text) if text.is_empty() && absent => (None, None),
            Output::Text(text) => (Some(object(text)), None),
            Output::Parts(parts) => {
                let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
                let mut media = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    let path = format!("{path}.output[{index}]");
                    if part.as_text().is_none() {
                        media.extend(self.part(part, &path));
                        continue;
                    }
                    if let Some(extra) = part.extra() {
                        tell_foreign(extra, FORMAT, &path, &mut self.losses);
                    }
                    if !media.is_empty() {
                        let why = "text stands before media in a function's response";
                        self.losses.push(path, LossKind::Order, why);
                    }
                }
                let text = texts.join("\n");
                let response = match texts.is_empty() {
                    true => "{}".to_owned(),
                    false => object(&text),
                };
                let response = (!(absent && text.is_empty())).then_some(response);
                let keep = !media.is_empty() || wire.get("~name").is_some();
                (response, keep.then_some(media))
            }
        }
    }

    fn reasoning(&mut self, item: &Reasoning, path: &str) {
        if !item
            .format
            .as_deref()
            .is_some_and(|format| format.starts_with(MAKER))
        {
            self.losses
                .push(path, LossKind::Item, "another provider's reasoning");
            for (field, value) in [
                ("encrypted_content", &item.encrypted_content),
                ("signature", &item.signature),
            ] {
                if value.is_some() {
                    let why = "only its maker can read it";
                    self.losses
                        .push(format!("{path}.{field}"), LossKind::Opaque, why);
                }
            }
            return;
        }
        tell_foreign(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire(FORMAT);
        let names = Names::of(&wire);
        let text: String = item
            .content
            .iter()
            .flatten()
            .filter_map(Part::as_text)
            .collect();
        let mut object = Object::new();
        object.string("text", &text).raw("thought", "true");
        if let Some(signature) = &item.signature {
            let name = names.spell("thoughtSignature");
            object.renamed("thoughtSignature", &name, &quote(signature));
        }
        object.carried(&without_content(wire.clone()));
        self.group(&wire).rest.push(object.finish());
    }

    fn compaction(&mut self, item: &Compaction, path: &str) {
        tell_foreign(&item.extra, FORMAT, path, &mut self.losses);
        if let Some(text) = retold(item, path, &mut self.losses) {
            let text = self.text(&TextPart::new(text), path);
            self.group(&Extra::new()).rest.extend(text);
        }
    }

    fn extension(&mut self, item: &Extension, path: &str) {
        if item.kind.starts_with("ctx:") {
            return;
        }
        match own_part(&item.kind, &item.raw) {
            Some(part) => {
                let wire = item.raw.fields().map(Fields::rest).unwrap_or_default();
                self.group(&wire).rest.push(part);
            }
            None => {
                let why = format!("no word for an item of type `{}`", item.kind);
                self.losses.push(path, LossKind::Item, why);
            }
        }
    }
}
