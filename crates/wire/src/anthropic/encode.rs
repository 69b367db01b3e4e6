//! Items, written as messages: one run becomes as few messages as the items allow.
//!
//! Results of tools lead their message, because the provider looks for them right behind the calls.

use contexture_ir::{
    Compaction, Extension, Extra, FunctionCall, FunctionCallOutput, Item, Message, Output, Part,
    Raw, Reasoning, Role, TextPart, quote_json,
};

use super::block::{BodyKind, block_fields, encode_text_block, own_block};
use super::media;
use super::message_builder::{EncodedBlock, MessageBuilder};
use super::spec::NAME_RULE;
use super::spec::{FORMAT, MESSAGE, STRUCTURE};
use crate::model::format_extras::{START, hint, report_foreign_fields};
use crate::model::json::{ObjectWriter, as_object, json_array};
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::{PairedItem, RoleRun, Side};
use crate::model::text_fallback::system_tag;
use crate::model::text_fallback::{compaction_as_text, is_in_assistant_turn};
use crate::{Chunk, Dialect};

/// The output of a failed tool that returned nothing: the provider refuses an empty error.
const NO_OUTPUT: &str = "(no output)";

/// Lowers one run.
pub(super) fn encode_run(dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
    let mut writer = MessageEncoder::new(dialect.mid_system, BodyKind::Request);
    for (index, entry) in run.entries.iter().enumerate() {
        writer.encode_item(index, entry);
    }
    // After the last item, because only then it is known whether there is a user's turn to stand behind.
    writer.place_host_messages(run.follows_user);
    let blocks = writer
        .messages
        .iter()
        .map(MessageBuilder::block_count)
        .sum();
    let messages = writer
        .messages
        .into_iter()
        .filter_map(MessageBuilder::finish);
    let ids = (writer.calls, writer.outputs);
    let mut chunk = Chunk::from_messages(run.side, messages, ids, writer.losses);
    chunk.facts.blocks = blocks;
    chunk
}

/// Writes the content of a response.
pub(super) fn encode_response_content<'a>(
    entries: impl Iterator<Item = PairedItem<'a>>,
) -> (String, Losses) {
    let mut writer = MessageEncoder::new(false, BodyKind::Response);
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
    // Results never get here: they are on the user's side, which the loop above leaves out.
    let blocks = writer
        .messages
        .into_iter()
        .flat_map(|group| group.rest)
        .map(|block| block.json);
    (json_array(blocks), writer.losses)
}

/// Writes `system`: text blocks, or one string if it came so; `None` without instructions.
pub(super) fn encode_system_prompt(
    instructions: &[Message],
    losses: &mut Losses,
) -> Option<String> {
    let mut blocks = Vec::new();
    let mut string = false;
    for (index, message) in instructions.iter().enumerate() {
        let path = format!("instructions[{index}]");
        report_foreign_fields(&message.extra, FORMAT, &path, losses);
        if message.role == Role::Developer {
            let why = "the format knows one kind of instruction, system";
            losses.push(format!("{path}.role"), LossKind::Role, why);
        }
        let wire = message.extra.wire_fields(FORMAT);
        // One message that was a string makes the whole `system` a string, if it is the only one.
        string |= hint(&wire, "~content").as_deref() == Some("string");
        for (at, part) in message.content.iter().enumerate() {
            let path = format!("{path}.content[{at}]");
            match part {
                Part::InputText(text) | Part::OutputText(text) => {
                    report_foreign_fields(&text.extra, FORMAT, &path, losses);
                    blocks.extend(encode_text_block(text, BodyKind::Request, &path, losses));
                }
                _ => losses.push(path, LossKind::Part, "instructions are text only"),
            }
        }
    }
    match blocks.as_slice() {
        [] => None,
        [
            EncodedBlock {
                plain: Some(text), ..
            },
        ] if string => Some(text.clone()),
        _ => Some(json_array(blocks.into_iter().map(|block| block.json))),
    }
}

struct MessageEncoder<'a> {
    mid_system: bool,
    purpose: BodyKind,
    messages: Vec<MessageBuilder>,
    /// The host's messages, with their indexes in the run.
    host_messages: Vec<(usize, &'a Message)>,
    /// The index of the last item that people or tools said.
    last_user_item: usize,
    losses: Losses,
    calls: Vec<String>,
    outputs: Vec<String>,
}

impl<'a> MessageEncoder<'a> {
    fn new(mid_system: bool, purpose: BodyKind) -> Self {
        Self {
            mid_system,
            purpose,
            messages: Vec::new(),
            host_messages: Vec::new(),
            last_user_item: 0,
            losses: Losses::default(),
            calls: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn encode_item(&mut self, index: usize, entry: &PairedItem<'a>) {
        let path = format!("[{index}]");
        match entry.item {
            Item::Message(message) if message.role.is_instruction() && self.mid_system => {
                return self.host_messages.push((index, message));
            }
            _ => self.last_user_item = index,
        }
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
    fn open_message(&mut self, role: &'static str, wire: &Extra) -> &mut MessageBuilder {
        // A response is one message whatever its items say; only a request has boundaries to keep.
        let fresh = self.purpose == BodyKind::Request
            && (hint(wire, START).is_some()
                || self.messages.last().is_none_or(|group| group.role != role));
        if fresh || self.messages.is_empty() {
            self.messages.push(MessageBuilder::new(role));
        }
        let last = self.messages.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "a group was just made sure of")]
        let group = &mut self.messages[last];
        if let Some(fields) = wire.get(MESSAGE).and_then(Raw::fields) {
            group.fields.extend(fields.into_extra());
        }
        group.string |= hint(wire, "~content").as_deref() == Some("string");
        group
    }

    fn encode_message(&mut self, message: &Message, path: &str) {
        let role = match message.role {
            Role::Assistant => "assistant",
            Role::User | Role::System | Role::Developer => "user",
        };
        self.write_message(message, role, path);
    }

    /// Writes the host's messages: as one system message behind the user's turn of the run, or as user text where there
    /// is none.
    ///
    /// The provider accepts a system message only right behind a user's turn, before the model's or at the end, and
    /// never two in a row (simonw/llm-anthropic#73).
    fn place_host_messages(&mut self, follows_user: bool) {
        let all = std::mem::take(&mut self.host_messages);
        let has_turn = follows_user || self.messages.iter().any(|group| group.block_count() > 0);
        for (nth, (index, message)) in all.into_iter().enumerate() {
            let path = format!("[{index}]");
            if !has_turn {
                self.write_message(message, "user", &path);
                continue;
            }
            let apart = hint(&message.extra.wire_fields(FORMAT), START).is_some();
            if (nth > 0 && !apart) || index < self.last_user_item {
                let why = "the host's words are one message behind the user's turn";
                self.losses.push(path.as_str(), LossKind::Order, why);
            }
            self.write_message(message, "system", &path);
        }
    }

    fn write_message(&mut self, message: &Message, role: &'static str, path: &str) {
        report_foreign_fields(&message.extra, FORMAT, path, &mut self.losses);
        let wire = message.extra.wire_fields(FORMAT);
        if message.role.is_instruction() {
            self.report_host_role(message, role, path);
        }
        // Without system messages inside a history the text goes to the user, in a tag that a
        // user's text cannot imitate.
        let tagged = message.role.is_instruction() && role == "user";
        let mut blocks = Vec::new();
        for (index, part) in message.content.iter().enumerate() {
            let path = format!("{path}.content[{index}]");
            blocks.extend(match part {
                Part::InputText(text) | Part::OutputText(text) if tagged => {
                    report_foreign_fields(&text.extra, FORMAT, &path, &mut self.losses);
                    let tagged = TextPart::new(system_tag(&text.text));
                    encode_text_block(&tagged, self.purpose, &path, &mut self.losses)
                }
                part => self.encode_part(part, message.role, &path),
            });
        }
        if message.content.is_empty() && hint(&wire, "~content").is_some() || blocks.is_empty() {
            // A message whose parts were all lost has been reported part by part already.
            if message.content.is_empty() {
                let why = "a message without content is refused";
                self.losses.push(path, LossKind::Item, why);
            }
            return;
        }
        self.open_message(role, &wire).rest.extend(blocks);
    }

    /// Reports what becomes of the host's role.
    fn report_host_role(&mut self, message: &Message, written: &str, path: &str) {
        let why = match (written, message.role) {
            ("user", _) => "inside a history the host's words are user text in a <system> tag",
            (_, Role::Developer) => "the format knows one kind of instruction, system",
            _ => return,
        };
        self.losses
            .push(format!("{path}.role"), LossKind::Role, why);
    }

    /// A part of a message or of a result.
    fn encode_part(&mut self, part: &Part, role: Role, path: &str) -> Option<EncodedBlock> {
        if let Some(extra) = part.extra() {
            report_foreign_fields(extra, FORMAT, path, &mut self.losses);
        }
        let losses = &mut self.losses;
        match part {
            Part::Refusal(text) => {
                losses.push(path, LossKind::Value, "a refusal is written as text");
                encode_text_block(text, self.purpose, path, losses)
            }
            Part::InputText(text)
            | Part::OutputText(text)
            | Part::SummaryText(text)
            | Part::ReasoningText(text) => encode_text_block(text, self.purpose, path, losses),
            // Media of an assistant or system message would make the provider refuse the whole
            // request.
            Part::InputImage(_) | Part::InputFile(_) if role != Role::User => {
                losses.push(
                    path,
                    LossKind::Part,
                    "only users and tools send pictures and files",
                );
                None
            }
            Part::InputImage(image) => {
                media::encode_image(image, path, losses).map(EncodedBlock::new)
            }
            Part::InputFile(file) => media::encode_file(file, path, losses).map(EncodedBlock::new),
            Part::Extension(part) => {
                let block = own_block(&part.kind, &part.raw);
                if block.is_none() {
                    let why = format!("no word for a part of type `{}`", part.kind);
                    losses.push(path, LossKind::Part, why);
                }
                block.map(EncodedBlock::new)
            }
        }
    }

    fn encode_call(&mut self, call: &FunctionCall, id: &str, path: &str) {
        report_foreign_fields(&call.extra, FORMAT, path, &mut self.losses);
        let wire = call.extra.wire_fields(FORMAT);
        let id = self.sanitize_call_id(id, path);
        // A call without arguments is common and loses nothing; anything else that is no object
        // does.
        let blank = call.arguments.trim().is_empty();
        let input = as_object(&call.arguments).unwrap_or_else(|| {
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
        let mut object = ObjectWriter::new();
        object
            .string("type", "tool_use")
            .string("id", &id)
            .string("name", &name);
        if hint(&wire, "~input").is_none() {
            object.raw("input", input);
        }
        object.extra_fields(&block_fields(&wire));
        let block = EncodedBlock::new(object.finish());
        self.open_message("assistant", &wire).rest.push(block);
        self.calls.push(id);
    }

    fn encode_output(&mut self, output: &FunctionCallOutput, id: &str, path: &str) {
        report_foreign_fields(&output.extra, FORMAT, path, &mut self.losses);
        let wire = output.extra.wire_fields(FORMAT);
        let id = self.sanitize_call_id(id, path);
        let content = self.encode_result_content(output, &wire, path);
        let mut object = ObjectWriter::new();
        object
            .string("type", "tool_result")
            .string("tool_use_id", &id);
        object.raw_if_some("content", content);
        // An absent flag stays absent: `false` written out would change the bytes of a document.
        let is_error = output
            .is_error
            .map(|flag| if flag { "true" } else { "false" });
        object
            .raw_if_some("is_error", is_error)
            .extra_fields(&block_fields(&wire));
        let block = EncodedBlock::new(object.finish());
        self.outputs.push(id);
        // The document had this result behind other blocks, and the provider accepted that: it is
        // written back in its place.
        if hint(&wire, "~place").is_some() {
            self.open_message("user", &wire).rest.push(block);
            return;
        }
        let group = self.open_message("user", &wire);
        group.results.push(block);
        // Results are written before everything else of their message, so this one changes places.
        if !group.rest.is_empty() {
            self.report_moved_result(path);
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
            Output::Text(text) if text.is_empty() && shape.as_deref() != Some("blocks") => {
                if output.is_error == Some(true) {
                    return Some(self.error_without_output(path));
                }
                (shape.as_deref() != Some("absent")).then(|| quote_json(""))
            }
            Output::Text(text) if shape.as_deref() == Some("blocks") => {
                let path = format!("{path}.output");
                let part = TextPart::new(text.as_str());
                let block = encode_text_block(&part, BodyKind::Request, &path, &mut self.losses);
                Some(self.encode_blocks(block.into_iter().collect(), output, &path))
            }
            Output::Text(text) => Some(quote_json(text)),
            Output::Parts(parts) => {
                let mut blocks = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    let path = format!("{path}.output[{index}]");
                    // A tool may return pictures and files, so its parts follow the rule for users.
                    blocks.extend(self.encode_part(part, Role::User, &path));
                }
                Some(self.encode_blocks(blocks, output, path))
            }
        }
    }

    fn encode_blocks(
        &mut self,
        blocks: Vec<EncodedBlock>,
        output: &FunctionCallOutput,
        path: &str,
    ) -> String {
        if blocks.is_empty() && output.is_error == Some(true) {
            return self.error_without_output(path);
        }
        json_array(blocks.into_iter().map(|block| block.json))
    }

    /// What a failed tool returned that returned nothing.
    fn error_without_output(&mut self, path: &str) -> String {
        let why = "an error without output is refused";
        self.losses
            .push(format!("{path}.output"), LossKind::Value, why);
        quote_json(NO_OUTPUT)
    }

    fn encode_reasoning(&mut self, item: &Reasoning, path: &str) {
        let own = item
            .format
            .as_deref()
            .is_some_and(|format| format.starts_with(FORMAT));
        if !own {
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
        let text: String = item
            .content
            .iter()
            .flatten()
            .filter_map(Part::as_text)
            .collect();
        let mut object = ObjectWriter::new();
        match (&item.signature, &item.encrypted_content) {
            // Encrypted content without a signature is a block that was redacted; it has no text.
            (None, Some(data)) => {
                object
                    .string("type", "redacted_thinking")
                    .string("data", data);
            }
            (None, None) if self.purpose == BodyKind::Request => {
                let why = "thinking without a signature is refused";
                self.losses.push(path, LossKind::Item, why);
                return;
            }
            (signature, _) => {
                object.string("type", "thinking").string("thinking", &text);
                object.string_if_some("signature", signature.as_deref());
            }
        }
        object.extra_fields(&block_fields(&wire));
        let block = EncodedBlock::new(object.finish());
        self.open_message("assistant", &wire).rest.push(block);
    }

    fn encode_compaction(&mut self, item: &Compaction, path: &str) {
        report_foreign_fields(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire_fields(FORMAT);
        if is_in_assistant_turn(item) {
            let texts: Vec<&str> = item.summary.iter().filter_map(Part::as_text).collect();
            let text = texts.join("\n");
            // What it came without is a text of ours, for others.
            let own = !text.is_empty() && hint(&wire, "~content").is_none();
            let mut object = ObjectWriter::new();
            object.string("type", "compaction");
            object.raw_if_some("content", own.then(|| quote_json(&text)));
            let encrypted = item.encrypted_content.as_deref().map(quote_json);
            object.raw_if_some("encrypted_content", encrypted);
            object.extra_fields(&block_fields(&wire));
            let block = EncodedBlock::new(object.finish());
            self.open_message("assistant", &wire).rest.push(block);
            return;
        }
        let text = compaction_as_text(item, path, &mut self.losses).map(TextPart::new);
        let block = text
            .and_then(|text| encode_text_block(&text, BodyKind::Request, path, &mut self.losses));
        if let Some(block) = block {
            self.open_message("user", &wire).rest.push(block);
        }
    }

    fn encode_extension(&mut self, item: &Extension, path: &str) {
        // An item of ours, which no provider is sent; leaving it out is no loss to report.
        if item.kind.starts_with("ctx:") {
            return;
        }
        match own_block(&item.kind, &item.raw) {
            Some(block) => {
                let wire = item
                    .raw
                    .fields()
                    .map(contexture_ir::Fields::into_extra)
                    .unwrap_or_default();
                self.open_message("assistant", &wire)
                    .rest
                    .push(EncodedBlock::new(block));
            }
            None => {
                let why = format!("no word for an item of type `{}`", item.kind);
                self.losses.push(path, LossKind::Item, why);
            }
        }
    }

    /// A call id as the provider accepts it: letters, digits, `_` and `-`.
    fn sanitize_call_id(&mut self, id: &str, path: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !id.is_empty() && id.chars().all(fits) {
            return id.to_owned();
        }
        let why = "ids hold letters, digits, `_` and `-` only";
        self.losses
            .push(format!("{path}.call_id"), LossKind::Value, why);
        let plain: String = id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
        // Two ids that differ in forbidden characters only must not become one.
        let hash = blake3::hash(id.as_bytes()).to_hex();
        format!("{plain}_{}", hash.get(..8).unwrap_or_default())
    }
}
