//! Items, written as messages: one run becomes as few messages as the items allow.
//!
//! Results of tools lead their message, because the provider looks for them right behind the calls.

use contexture_ir::{
    Compaction, Extension, Extra, FunctionCall, FunctionCallOutput, Item, Message, Output, Part,
    Raw, Reasoning, Role, TextPart, quote_json,
};

use super::block::{BodyKind, block_fields, encode_text_block, opaque_fields, own_block};
use super::media;
use super::message::{NativeMessage, push_block};
use super::spec::{FORMAT, MAKER, MAX_ID_BYTES, MESSAGE, NAME_RULE, STRUCTURE};
use crate::model::format_extras::{START, hint, report_foreign_fields};
use crate::model::json::{ObjectWriter, as_object, json_array};
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::{PairedItem, RoleRun, Side};
use crate::model::text_fallback::{compaction_as_text, system_tag};
use crate::{Chunk, Dialect};

/// The output of a tool that returned nothing: the provider refuses blank text.
const NO_OUTPUT: &str = "(no output)";

/// Lowers one run.
pub(super) fn encode_run(dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
    let mut writer = BlockWriter::new(dialect.mid_system, BodyKind::Request);
    for (index, entry) in run.entries.iter().enumerate() {
        writer.encode_item(index, entry);
    }
    // After the last item, because only then the first message of the run is known to exist.
    writer.place_late_results();
    let blocks = writer.messages.iter().map(NativeMessage::block_count).sum();
    let messages = writer
        .messages
        .into_iter()
        .filter_map(NativeMessage::finish);
    let ids = (writer.calls, writer.outputs);
    let mut chunk = Chunk::from_messages(run.side, messages, ids, writer.losses);
    chunk.facts.blocks = blocks;
    chunk
}

/// Writes the content of a response.
pub(super) fn encode_response_content<'a>(
    entries: impl Iterator<Item = PairedItem<'a>>,
) -> (String, Losses) {
    let mut writer = BlockWriter::new(false, BodyKind::Response);
    for (index, entry) in entries.enumerate() {
        if STRUCTURE.side(entry.item) == Some(Side::User) {
            let why = "a response holds what the model said";
            let path = format!("[{index}]");
            writer.losses.push(path, LossKind::Item, why);
        } else {
            writer.encode_item(index, &entry);
        }
    }
    // Results never get here: they are on the user's side, which the loop above leaves out.
    let messages = writer.messages.into_iter();
    let blocks = messages.flat_map(|message| message.rest);
    (json_array(blocks), writer.losses)
}

/// Writes `system`; `None` without instructions.
pub(super) fn encode_system_prompt(
    instructions: &[Message],
    losses: &mut Losses,
) -> Option<String> {
    let mut blocks = Vec::new();
    for (index, message) in instructions.iter().enumerate() {
        let path = format!("instructions[{index}]");
        report_foreign_fields(&message.extra, FORMAT, &path, losses);
        if message.role == Role::Developer {
            let why = "the format knows one kind of instruction, system";
            losses.push(format!("{path}.role"), LossKind::Role, why);
        }
        for (at, part) in message.content.iter().enumerate() {
            let path = format!("{path}.content[{at}]");
            encode_instruction(part, &path, &mut blocks, losses);
        }
    }
    (!blocks.is_empty()).then(|| json_array(blocks))
}

fn encode_instruction(part: &Part, path: &str, blocks: &mut Vec<String>, losses: &mut Losses) {
    match part {
        Part::InputText(text) | Part::OutputText(text) => {
            report_foreign_fields(&text.extra, FORMAT, path, losses);
            if let Some(block) = encode_text_block(text, BodyKind::Request, path, losses) {
                push_block(blocks, block, &text.extra.wire_fields(FORMAT));
            }
        }
        Part::Extension(part) => match own_block(&part.kind, &part.raw) {
            Some(block) => push_block(blocks, block, &opaque_fields(&part.raw)),
            None => losses.push(path, LossKind::Part, "instructions are text only"),
        },
        _ => losses.push(path, LossKind::Part, "instructions are text only"),
    }
}

struct BlockWriter {
    mid_system: bool,
    purpose: BodyKind,
    messages: Vec<NativeMessage>,
    /// Whether a system message stands in this run.
    interrupted: bool,
    /// Results that came behind it and belong before it.
    late_results: Vec<String>,
    losses: Losses,
    calls: Vec<String>,
    outputs: Vec<String>,
}

impl BlockWriter {
    fn new(mid_system: bool, purpose: BodyKind) -> Self {
        Self {
            mid_system,
            purpose,
            messages: Vec::new(),
            interrupted: false,
            late_results: Vec::new(),
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
            Item::FunctionCallOutput(output) => self.encode_output(output, entry.call_id(), &path),
            Item::Reasoning(reasoning) => self.encode_reasoning(reasoning, &path),
            Item::Compaction(compaction) => self.encode_compaction(compaction, &path),
            Item::Extension(extension) => self.encode_extension(extension, &path),
        }
    }

    /// The message that an item with these carried fields goes into.
    fn open_message(&mut self, role: &'static str, wire: &Extra) -> &mut NativeMessage {
        // A response is one message whatever its items say; only a request has boundaries to keep.
        let is_new = self.purpose == BodyKind::Request
            && (hint(wire, START).is_some()
                || role == "system"
                || self.messages.last().is_none_or(|last| last.role != role));
        if is_new || self.messages.is_empty() {
            self.messages.push(NativeMessage::new(role));
        }
        let last = self.messages.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "a message was just made sure of")]
        let message = &mut self.messages[last];
        if let Some(fields) = wire.get(MESSAGE).and_then(Raw::fields) {
            message.fields.extend(fields.into_extra());
        }
        message
    }

    /// Adds a block of the model's to the message it belongs to.
    fn push_model_block(&mut self, block: String, wire: &Extra) {
        let message = self.open_message("assistant", wire);
        push_block(&mut message.rest, block, wire);
    }

    fn encode_message(&mut self, message: &Message, path: &str) {
        report_foreign_fields(&message.extra, FORMAT, path, &mut self.losses);
        let wire = message.extra.wire_fields(FORMAT);
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System | Role::Developer => {
                self.report_host_role(message, path);
                if self.mid_system { "system" } else { "user" }
            }
        };
        // Without system messages inside a history the text goes to the user, in a tag that a user's text cannot imitate.
        let is_tagged = message.role.is_instruction() && !self.mid_system;
        let mut blocks = Vec::new();
        for (index, part) in message.content.iter().enumerate() {
            let path = format!("{path}.content[{index}]");
            match part {
                Part::InputText(text) | Part::OutputText(text) if is_tagged => {
                    report_foreign_fields(&text.extra, FORMAT, &path, &mut self.losses);
                    let tagged = TextPart::new(system_tag(&text.text));
                    blocks.extend(encode_text_block(
                        &tagged,
                        self.purpose,
                        &path,
                        &mut self.losses,
                    ));
                }
                part => self.encode_part(part, message.role, &path, &mut blocks),
            }
        }
        if blocks.is_empty() {
            // A message whose parts were all lost has been reported part by part already.
            if message.content.is_empty() {
                let why = "a message without content is refused";
                self.losses.push(path, LossKind::Item, why);
            }
            return;
        }
        // Results that come after it belong before it; `place_late_results` puts them there.
        self.interrupted |= role == "system";
        self.open_message(role, &wire).rest.extend(blocks);
    }

    /// Reports what becomes of the host's role.
    fn report_host_role(&mut self, message: &Message, path: &str) {
        let why = if !self.mid_system {
            "inside a history the host's words are user text in a <system> tag"
        } else if message.role == Role::Developer {
            "the format knows one kind of instruction, system"
        } else {
            return;
        };
        self.losses
            .push(format!("{path}.role"), LossKind::Role, why);
    }

    /// Adds the blocks of a part of a message or of a result.
    fn encode_part(&mut self, part: &Part, role: Role, path: &str, blocks: &mut Vec<String>) {
        if let Some(extra) = part.extra() {
            report_foreign_fields(extra, FORMAT, path, &mut self.losses);
        }
        let losses = &mut self.losses;
        let block = match part {
            Part::Refusal(text) => {
                losses.push(path, LossKind::Value, "a refusal is written as text");
                encode_text_block(text, self.purpose, path, losses)
            }
            Part::InputText(text)
            | Part::OutputText(text)
            | Part::SummaryText(text)
            | Part::ReasoningText(text) => encode_text_block(text, self.purpose, path, losses),
            Part::InputImage(_) | Part::InputFile(_) if role != Role::User => {
                let why = "only users and tools send pictures and files";
                losses.push(path, LossKind::Part, why);
                None
            }
            Part::InputImage(image) => media::encode_image(image, path, losses),
            Part::InputFile(file) => media::encode_file(file, path, losses),
            Part::Extension(part) => {
                let block = own_block(&part.kind, &part.raw);
                if block.is_none() {
                    let why = format!("no word for a part of type `{}`", part.kind);
                    losses.push(path, LossKind::Part, why);
                }
                block
            }
        };
        let wire = match part {
            Part::Extension(part) => opaque_fields(&part.raw),
            part => part
                .extra()
                .map(|extra| extra.wire_fields(FORMAT))
                .unwrap_or_default(),
        };
        if let Some(block) = block {
            push_block(blocks, block, &wire);
        }
    }

    fn encode_call(&mut self, call: &FunctionCall, id: &str, path: &str) {
        report_foreign_fields(&call.extra, FORMAT, path, &mut self.losses);
        let wire = call.extra.wire_fields(FORMAT);
        let id = self.sanitize_call_id(id, path);
        let shape = hint(&wire, "~input");
        let is_value = shape.as_deref() == Some("value");
        let own = is_value.then(|| Raw::parse(call.arguments.as_str()).ok());
        let own = own.flatten();
        // A call without arguments is common and loses nothing; anything else that is no object does.
        let input = own.as_ref().map(Raw::get).or(as_object(&call.arguments));
        if input.is_none() && !call.arguments.trim().is_empty() {
            let why = "arguments that are not a JSON object become {}";
            self.losses
                .push(format!("{path}.arguments"), LossKind::Value, why);
        }
        let name = match self.purpose {
            BodyKind::Request => NAME_RULE.sanitize_name(&call.name, path, &mut self.losses),
            // A response repeats what the model said; only a request is checked by the provider.
            BodyKind::Response => call.name.as_str().into(),
        };
        let mut object = ObjectWriter::new();
        object.string("toolUseId", &id).string("name", &name);
        if shape.as_deref() != Some("absent") {
            object.raw("input", input.unwrap_or("{}"));
        }
        object.extra_fields(&block_fields(&wire));
        let block = format!(r#"{{"toolUse":{}}}"#, object.finish());
        self.push_model_block(block, &wire);
        self.calls.push(id);
    }

    fn encode_output(&mut self, output: &FunctionCallOutput, id: &str, path: &str) {
        report_foreign_fields(&output.extra, FORMAT, path, &mut self.losses);
        let wire = output.extra.wire_fields(FORMAT);
        let id = self.sanitize_call_id(id, path);
        let mut object = ObjectWriter::new();
        object.string("toolUseId", &id);
        object.raw_if_some("content", self.encode_result_content(output, &wire, path));
        // An absent status stays absent: `success` written out would change the bytes of a document.
        let status = output
            .is_error
            .map(|failed| if failed { "error" } else { "success" });
        object
            .string_if_some("status", status)
            .extra_fields(&block_fields(&wire));
        let block = format!(r#"{{"toolResult":{}}}"#, object.finish());
        self.outputs.push(id);
        // The document had this result behind other blocks, and the provider accepted that: it is written back in its place.
        if hint(&wire, "~place").is_some() {
            let message = self.open_message("user", &wire);
            push_block(&mut message.rest, block, &wire);
            return;
        }
        // Results must follow their calls directly; a system message in between would separate them.
        if self.interrupted && hint(&wire, START).is_none() {
            self.report_moved_result(path);
            push_block(&mut self.late_results, block, &wire);
            return;
        }
        let message = self.open_message("user", &wire);
        push_block(&mut message.results, block, &wire);
        // Results are written before everything else of their message, so this one changes places.
        if !message.rest.is_empty() {
            self.report_moved_result(path);
        }
    }

    /// Puts late results where the provider looks for them: into the run's first message.
    fn place_late_results(&mut self) {
        if self.late_results.is_empty() {
            return;
        }
        let first = self.messages.first();
        // A run may begin with the system message, with no user message before it yet.
        if first.is_none_or(|message| message.role != "user") {
            self.messages.insert(0, NativeMessage::new("user"));
        }
        if let Some(first) = self.messages.first_mut() {
            first.results.append(&mut self.late_results);
        }
    }

    fn report_moved_result(&mut self, path: &str) {
        let why = "results of tools lead the message behind the calls";
        self.losses.push(path, LossKind::Order, why);
    }

    /// The content of a result; `None` where it had none.
    fn encode_result_content(
        &mut self,
        output: &FunctionCallOutput,
        wire: &Extra,
        path: &str,
    ) -> Option<String> {
        let shape = hint(wire, "~content");
        match &output.output {
            Output::Text(text) if text.is_empty() && shape.as_deref() == Some("absent") => None,
            Output::Text(text) if text.is_empty() && shape.as_deref() == Some("empty") => {
                Some("[]".to_owned())
            }
            Output::Text(text) if text.trim().is_empty() => {
                let why = "an output of blank text is refused";
                self.losses
                    .push(format!("{path}.output"), LossKind::Value, why);
                Some(format!(r#"[{{"text":{}}}]"#, quote_json(NO_OUTPUT)))
            }
            Output::Text(text) => {
                // The text counts as JSON only while it is some: a program may have changed it.
                let is_json = shape.as_deref() == Some("json");
                let json = is_json.then(|| Raw::parse(text.as_str()).ok()).flatten();
                Some(match json {
                    Some(json) => format!(r#"[{{"json":{}}}]"#, json.get()),
                    None => format!(r#"[{{"text":{}}}]"#, quote_json(text)),
                })
            }
            Output::Parts(parts) => {
                let mut blocks = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    let path = format!("{path}.output[{index}]");
                    self.encode_result_part(part, &path, &mut blocks);
                }
                Some(json_array(blocks))
            }
        }
    }

    fn encode_result_part(&mut self, part: &Part, path: &str, blocks: &mut Vec<String>) {
        if let Part::InputText(text) = part {
            let wire = text.extra.wire_fields(FORMAT);
            let is_json = hint(&wire, "~block").is_some();
            if let Some(json) = is_json
                .then(|| Raw::parse(text.text.as_str()).ok())
                .flatten()
            {
                return push_block(blocks, format!(r#"{{"json":{}}}"#, json.get()), &wire);
            }
        }
        let before = blocks.len();
        // A tool may return pictures and files, so its parts follow the rule for users.
        self.encode_part(part, Role::User, path, blocks);
        // The one kind that a user may send and a tool may not return.
        if blocks
            .get(before)
            .is_some_and(|block| media::is_audio(block))
        {
            blocks.truncate(before);
            let why = "tools do not return sounds";
            self.losses.push(path, LossKind::Part, why);
        }
    }

    fn encode_reasoning(&mut self, item: &Reasoning, path: &str) {
        let maker = item.format.as_deref();
        if !maker.is_some_and(|format| format.starts_with(MAKER)) {
            self.report_foreign_reasoning(item, path);
            return;
        }
        report_foreign_fields(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire_fields(FORMAT);
        let parts = item.content.iter().flatten();
        let text: String = parts.filter_map(Part::as_text).collect();
        let mut inner = ObjectWriter::new();
        // Encrypted content without text is a block that was redacted.
        let content = match &item.encrypted_content {
            Some(data) if text.is_empty() && item.signature.is_none() => {
                inner.string("redactedContent", data);
                inner.extra_fields(&block_fields(&wire));
                inner.finish()
            }
            _ => {
                inner.string("text", &text);
                inner.string_if_some("signature", item.signature.as_deref());
                inner.extra_fields(&block_fields(&wire));
                format!(r#"{{"reasoningText":{}}}"#, inner.finish())
            }
        };
        self.push_model_block(format!(r#"{{"reasoningContent":{content}}}"#), &wire);
    }

    fn report_foreign_reasoning(&mut self, item: &Reasoning, path: &str) {
        let why = "another provider's reasoning";
        self.losses.push(path, LossKind::Item, why);
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
    }

    fn encode_compaction(&mut self, item: &Compaction, path: &str) {
        report_foreign_fields(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire_fields(FORMAT);
        let text = compaction_as_text(item, path, &mut self.losses).map(TextPart::new);
        let block = text
            .and_then(|text| encode_text_block(&text, BodyKind::Request, path, &mut self.losses));
        if let Some(block) = block {
            let message = self.open_message("user", &wire);
            push_block(&mut message.rest, block, &wire);
        }
    }

    fn encode_extension(&mut self, item: &Extension, path: &str) {
        // An item of ours, which no provider is sent; leaving it out is no loss to report.
        if item.kind.starts_with("ctx:") {
            return;
        }
        match own_block(&item.kind, &item.raw) {
            Some(block) => self.push_model_block(block, &opaque_fields(&item.raw)),
            None => {
                let why = format!("no word for an item of type `{}`", item.kind);
                self.losses.push(path, LossKind::Item, why);
            }
        }
    }

    /// A call id as the provider accepts it: letters, digits, `_ . : -`, at most 64 bytes.
    fn sanitize_call_id(&mut self, id: &str, path: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
        if !id.is_empty() && id.len() <= MAX_ID_BYTES && id.chars().all(fits) {
            return id.to_owned();
        }
        let why = "ids hold 64 letters, digits, `_`, `.`, `:` and `-` at most";
        self.losses
            .push(format!("{path}.call_id"), LossKind::Value, why);
        let plain = id.chars().map(|c| if fits(c) { c } else { '_' });
        let stem: String = plain.take(48).collect();
        // Two ids that differ in forbidden characters only must not become one.
        let hash = blake3::hash(id.as_bytes()).to_hex();
        format!("{stem}_{}", hash.get(..8).unwrap_or_default())
    }
}
