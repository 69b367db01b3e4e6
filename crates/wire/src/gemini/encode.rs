//! Items, written as contents: one run becomes as few contents as the items allow.

use contexture_ir::{
    Compaction, Extension, Extra, Fields, FunctionCall, FunctionCallOutput, Item, Message, Output,
    Part, Raw, Reasoning, TextPart, quote_json,
};

use super::message_builder::ContentBuilder;
use super::names::SnakeCaseFields;
use super::parse::{EMPTY, ID};
use super::part::{encode_call_id, finish_media_part, own_part, without_content_fields, wrap_part};
use super::spec::NAME_RULE;
use super::spec::{CONTENT, FORMAT, MAKER, STRUCTURE};
use super::{media, output};
use crate::Chunk;
use crate::model::format_extras::{START, hint, report_foreign_fields};
use crate::model::json::{ObjectWriter, as_object, json_array};
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::{PairedItem, RoleRun, Side};
use crate::model::text_fallback::compaction_as_text;
use crate::model::text_fallback::system_tag;

/// The signature of a call that another model made, or a program: documented for histories that the
/// model did not write itself (base64 of `skip_thought_signature_validator`).
const UNSIGNED: &str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";

/// Lowers one run. With [`Signing::Sentinel`] a step's first call always carries a signature: its own or the sentinel.
pub(super) fn encode_run(run: &RoleRun<'_, '_>, signed: Signing) -> Chunk {
    let mut writer = ContentEncoder::new(run.side, BodyKind::Request);
    writer.signing = signed;
    for (index, entry) in run.entries.iter().enumerate() {
        writer.encode_item(index, entry);
    }
    let messages = writer.contents.into_iter().flat_map(ContentBuilder::finish);
    let ids = (writer.calls, writer.outputs);
    Chunk::from_messages(run.side, messages, ids, writer.losses)
}

/// The content of a candidate; `None` if it had none.
pub(super) fn encode_candidate_content<'a>(
    entries: impl Iterator<Item = PairedItem<'a>>,
) -> (Option<String>, Losses) {
    let mut writer = ContentEncoder::new(Side::Model, BodyKind::Response);
    for (index, entry) in entries.enumerate() {
        if STRUCTURE.side(entry.item) == Some(Side::User) {
            let why = "a response holds what the model said";
            writer
                .losses
                .push(format!("[{index}]"), LossKind::Item, why);
        } else {
            writer.encode_item(index, &entry);
        }
    }
    let losses = std::mem::take(&mut writer.losses);
    (
        writer
            // In a response all items share one content, so the first is the only one.
            .contents
            .into_iter()
            .next()
            .and_then(|group| group.finish_single()),
        losses,
    )
}

/// Writes the instructions as `systemInstruction`; `None` if no part of them can be written.
pub(super) fn encode_system_instruction(
    instructions: &[Message],
    losses: &mut Losses,
) -> Option<String> {
    let mut writer = ContentEncoder::new(Side::User, BodyKind::Request);
    let mut string = false;
    let mut role = None;
    for (index, message) in instructions.iter().enumerate() {
        let path = format!("instructions[{index}]");
        report_foreign_fields(&message.extra, FORMAT, &path, &mut writer.losses);
        if message.role == contexture_ir::Role::Developer {
            let why = "the format knows one kind of instruction, system";
            writer
                .losses
                .push(format!("{path}.role"), LossKind::Role, why);
        }
        let wire = message.extra.wire_fields(FORMAT);
        string |= hint(&wire, "~content").is_some();
        role = role.or(hint(&wire, "~role"));
        for (at, part) in message.content.iter().enumerate() {
            let part = writer.encode_part(part, &format!("{path}.content[{at}]"));
            writer.open_content(&wire).rest.extend(part);
        }
    }
    // The paths begin with `instructions` already.
    losses.extend_with_prefix("", writer.losses);
    let group = writer
        .contents
        .pop()
        .filter(|group| !group.rest.is_empty())?;
    // A string can hold one text and nothing else.
    if let ([only], [Message { content, .. }]) = (group.rest.as_slice(), instructions)
        && string
        && let [Part::InputText(text)] = content.as_slice()
        && only.contains("\"text\"")
    {
        return Some(quote_json(&text.text));
    }
    let mut object = ObjectWriter::new();
    object.string_if_some("role", role);
    object
        .array("parts", group.rest)
        .extra_fields(&group.fields);
    Some(object.finish())
}

/// How a call without a thought signature is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signing {
    /// The call is written without a signature.
    AsIs,
    /// The first call of a step gets the sentinel signature, because Gemini 3 refuses it otherwise.
    Sentinel,
}

/// Which body is being written; a response repeats what the provider said, empty or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Request,
    Response,
}

struct ContentEncoder {
    side: Side,
    purpose: BodyKind,
    signing: Signing,
    contents: Vec<ContentBuilder>,
    losses: Losses,
    calls: Vec<String>,
    outputs: Vec<String>,
}

impl ContentEncoder {
    fn new(side: Side, purpose: BodyKind) -> Self {
        Self {
            side,
            purpose,
            signing: Signing::AsIs,
            contents: Vec::new(),
            losses: Losses::default(),
            calls: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn encode_item(&mut self, index: usize, entry: &PairedItem<'_>) {
        let path = format!("[{index}]");
        match entry.item {
            Item::Message(message) => self.encode_message(message, &path),
            Item::FunctionCall(call) => self.encode_call(call, entry.call_id(), &path),
            Item::FunctionCallOutput(output) => self.encode_output(output, entry, &path),
            Item::Reasoning(reasoning) => self.encode_reasoning(reasoning, &path),
            Item::Compaction(compaction) => self.encode_compaction(compaction, &path),
            Item::Extension(extension) => self.encode_extension(extension, &path),
        }
    }

    /// The content that an item with these carried fields goes into.
    fn open_content(&mut self, wire: &Extra) -> &mut ContentBuilder {
        // A response is one content; only a request has boundaries to keep.
        let fresh = self.purpose == BodyKind::Request && hint(wire, START).is_some();
        if fresh || self.contents.is_empty() {
            self.contents.push(ContentBuilder::new(self.side));
        }
        let last = self.contents.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "a group was just made sure of")]
        let group = &mut self.contents[last];
        if let Some(fields) = wire.get(CONTENT).and_then(Raw::fields) {
            group.fields.extend(fields.into_extra());
        }
        group.joined |= wire.get("~join").is_some() || wire.get("~place").is_some();
        group.bare |= wire.get("~parts").is_some();
        if let Some(role) = hint(wire, "~role") {
            group.role = Some(role);
        }
        group
    }

    fn encode_message(&mut self, message: &Message, path: &str) {
        report_foreign_fields(&message.extra, FORMAT, path, &mut self.losses);
        let wire = message.extra.wire_fields(FORMAT);
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
                    report_foreign_fields(&text.extra, FORMAT, &path, &mut self.losses);
                    let tagged = TextPart::new(system_tag(&text.text));
                    self.encode_text(&tagged, &path)
                }
                part => self.encode_part(part, &path),
            });
        }
        if message.content.is_empty() && self.purpose == BodyKind::Request {
            self.losses
                .push(path, LossKind::Item, "a content without parts is refused");
        }
        if !parts.is_empty() || self.purpose == BodyKind::Response {
            self.open_content(&wire).rest.extend(parts);
        }
    }

    fn encode_part(&mut self, part: &Part, path: &str) -> Option<String> {
        if let Some(extra) = part.extra() {
            report_foreign_fields(extra, FORMAT, path, &mut self.losses);
        }
        match part {
            Part::Refusal(text) => {
                self.losses
                    .push(path, LossKind::Value, "a refusal is written as text");
                self.encode_text(text, path)
            }
            Part::InputText(text)
            | Part::OutputText(text)
            | Part::SummaryText(text)
            | Part::ReasoningText(text) => self.encode_text(text, path),
            Part::InputImage(image) => {
                let wire = image.extra.wire_fields(FORMAT);
                let object = media::encode_image(image, &wire, path, &mut self.losses);
                object.map(|object| finish_media_part(object, wire))
            }
            Part::InputFile(file) => {
                let wire = file.extra.wire_fields(FORMAT);
                let object = media::encode_file(file, &wire, path, &mut self.losses);
                object.map(|object| finish_media_part(object, wire))
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
    fn encode_text(&mut self, part: &TextPart, path: &str) -> Option<String> {
        let wire = part.extra.wire_fields(FORMAT);
        let own = ["~empty", "thoughtSignature", "thought_signature"]
            .iter()
            .any(|key| wire.get(key).is_some());
        if part.text.is_empty() && !own && self.purpose == BodyKind::Request {
            self.losses
                .push(path, LossKind::Part, "empty text says nothing");
            return None;
        }
        let mut object = ObjectWriter::new();
        object.string("text", &part.text).extra_fields(&wire);
        Some(object.finish())
    }

    fn encode_call(&mut self, call: &FunctionCall, id: &str, path: &str) {
        report_foreign_fields(&call.extra, FORMAT, path, &mut self.losses);
        let wire = call.extra.wire_fields(FORMAT);
        let names = SnakeCaseFields::from_wire(&wire);
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
            BodyKind::Request => NAME_RULE.sanitize_name(&call.name, path, &mut self.losses),
            // A response repeats what the model said; only a request is checked by the provider.
            BodyKind::Response => call.name.as_str().into(),
        };
        let mut inner = ObjectWriter::new();
        inner
            .raw_if_some("id", encode_call_id(id).or_else(|| empty_id(&wire)))
            .string("name", &name);
        // The document's call had no `args`; they stay absent while they are still empty.
        if !(wire.get("~args").is_some() && args == "{}") {
            inner.raw("args", args);
        }
        inner.extra_fields(&media::nested_fields(&wire, "functionCall"));
        let mut carried = wire.clone();
        let signed = ["thoughtSignature", "thought_signature"];
        let unsigned = signed.iter().all(|name| wire.get(name).is_none());
        // Only the first of parallel calls carries a signature, so only it needs the stand-in.
        if self.signing == Signing::Sentinel && self.calls.is_empty() && unsigned {
            let name = names.spelled_name("thoughtSignature");
            carried.set(&name, Raw::string(UNSIGNED));
        }
        let part = wrap_part("functionCall", &names, inner, &carried);
        self.open_content(&wire).rest.push(part);
        self.calls.push(id.to_owned());
    }

    fn encode_output(&mut self, item: &FunctionCallOutput, entry: &PairedItem<'_>, path: &str) {
        report_foreign_fields(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire_fields(FORMAT);
        let names = SnakeCaseFields::from_wire(&wire);
        let id = entry.call_id();
        // The format wants a function's name here. An item has none, so the call's is used unless
        // the document had one.
        let own = hint(&wire, "~name");
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
        let name = NAME_RULE.sanitize_name(name.unwrap_or("unknown"), path, &mut self.losses);
        let (response, parts) = self.encode_response(item, &wire, path);
        let mut inner = ObjectWriter::new();
        // The document's response had no id, so none is made up for it.
        let own_id = wire.get(ID).is_none().then(|| encode_call_id(id)).flatten();
        inner.raw_if_some("id", own_id.or_else(|| empty_id(&wire)));
        inner
            .string("name", &name)
            .raw_if_some("response", response);
        inner.raw_if_some("parts", parts.map(json_array));
        inner.extra_fields(&media::nested_fields(&wire, "functionResponse"));
        let part = wrap_part("functionResponse", &names, inner, &wire);
        let placed = wire.get("~place").is_some();
        let group = self.open_content(&wire);
        // Results are written before the rest of the content; that is a change of order only if
        // something came earlier.
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
    fn encode_response(
        &mut self,
        item: &FunctionCallOutput,
        wire: &Extra,
        path: &str,
    ) -> (Option<String>, Option<Vec<String>>) {
        let wrap = hint(wire, "~wrap");
        let absent = wire.get("~response").is_some();
        let own = wire.get(output::VALUE);
        // The value that was read is written back as it is while the text still equals it;
        // otherwise it was edited.
        let object = |text: &str| match own.filter(|own| output::bare_value_text(own) == text) {
            Some(own) => own.get().to_owned(),
            None => output::encode_output(text, item.is_error, wrap.as_deref()),
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
                        media.extend(self.encode_part(part, &path));
                        continue;
                    }
                    if let Some(extra) = part.extra() {
                        report_foreign_fields(extra, FORMAT, &path, &mut self.losses);
                    }
                    // The response object comes first and media beside it, whatever the order of
                    // the parts was.
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
                // A response that came from this format had the array, even an empty one.
                let keep = !media.is_empty() || wire.get("~name").is_some();
                (response, keep.then_some(media))
            }
        }
    }

    fn encode_reasoning(&mut self, item: &Reasoning, path: &str) {
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
        report_foreign_fields(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire_fields(FORMAT);
        let names = SnakeCaseFields::from_wire(&wire);
        let text: String = item
            .content
            .iter()
            .flatten()
            .filter_map(Part::as_text)
            .collect();
        let mut object = ObjectWriter::new();
        object.string("text", &text).raw("thought", "true");
        if let Some(signature) = &item.signature {
            let name = names.spelled_name("thoughtSignature");
            object.raw_as("thoughtSignature", &name, &quote_json(signature));
        }
        object.extra_fields(&without_content_fields(wire.clone()));
        self.open_content(&wire).rest.push(object.finish());
    }

    fn encode_compaction(&mut self, item: &Compaction, path: &str) {
        report_foreign_fields(&item.extra, FORMAT, path, &mut self.losses);
        if let Some(text) = compaction_as_text(item, path, &mut self.losses) {
            let text = self.encode_text(&TextPart::new(text), path);
            self.open_content(&Extra::new()).rest.extend(text);
        }
    }

    fn encode_extension(&mut self, item: &Extension, path: &str) {
        // An item of ours, which no provider is sent; leaving it out is no loss to report.
        if item.kind.starts_with("ctx:") {
            return;
        }
        match own_part(&item.kind, &item.raw) {
            Some(part) => {
                let wire = item
                    .raw
                    .fields()
                    .map(Fields::into_extra)
                    .unwrap_or_default();
                self.open_content(&wire).rest.push(part);
            }
            None => {
                let why = format!("no word for an item of type `{}`", item.kind);
                self.losses.push(path, LossKind::Item, why);
            }
        }
    }
}

/// The id of a call or a response whose id came empty.
fn empty_id(wire: &Extra) -> Option<String> {
    (hint(wire, ID).as_deref() == Some(EMPTY)).then(|| quote_json(""))
}
