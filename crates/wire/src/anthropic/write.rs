//! Items, written as messages: one run becomes as few messages as the items allow.
//!
//! Results of tools lead their message, because the provider looks for them right behind the calls.

use contexture_ir::{
    Compaction, Extension, Extra, FunctionCall, FunctionCallOutput, Item, Message, Output, Part,
    Raw, Reasoning, Role, TextPart, quote,
};

use super::block::{Use, block_fields, own_block, text_block};
use super::group::{Block, Group};
use super::media;
use super::words::{FORMAT, MESSAGE};
use crate::carry::{START, hinted, tell_foreign};
use crate::compaction::{in_models_turn, retold};
use crate::entry::{Entry, Run, Side, side};
use crate::format::Format;
use crate::function_name::ANTHROPIC;
use crate::json::{Object, array, as_object};
use crate::loss::{LossKind, Losses};
use crate::system_tag::system_tag;
use crate::{Chunk, Dialect};

/// What a failed tool is said to have given back when it gave nothing: the provider refuses an empty
/// error.
const NO_OUTPUT: &str = "(no output)";

/// Lowers one run.
pub(super) fn run(dialect: &Dialect, run: &Run<'_, '_>) -> Chunk {
    let mut writer = Writer::new(dialect.mid_system, Use::Request);
    for (index, entry) in run.entries.iter().enumerate() {
        writer.entry(index, entry);
    }
    writer.settle();
    let blocks = writer.groups.iter().map(Group::blocks).sum();
    let messages = writer.groups.into_iter().filter_map(Group::finish);
    let ids = (writer.calls, writer.outputs);
    let mut chunk = Chunk::of_side(run.side, messages, ids, writer.losses);
    chunk.facts.blocks = blocks;
    chunk
}

/// The content of a response.
pub(super) fn answer<'a>(entries: impl Iterator<Item = Entry<'a>>) -> (String, Losses) {
    let mut writer = Writer::new(false, Use::Response);
    for (index, entry) in entries.enumerate() {
        if side(entry.item, Format::Anthropic) == Some(Side::User) {
            let why = "a response holds what the model said";
            writer
                .losses
                .push(format!("[{index}]"), LossKind::Item, why);
        } else {
            writer.entry(index, &entry);
        }
    }
    let blocks = writer
        .groups
        .into_iter()
        .flat_map(|group| group.rest)
        .map(|block| block.json);
    (array(blocks), writer.losses)
}

/// The text blocks of `system`, and whether it was one string.
pub(super) fn system(instructions: &[Message], losses: &mut Losses) -> Option<String> {
    let mut blocks = Vec::new();
    let mut string = false;
    for (index, message) in instructions.iter().enumerate() {
        let path = format!("instructions[{index}]");
        tell_foreign(&message.extra, FORMAT, &path, losses);
        if message.role == Role::Developer {
            let why = "the format knows one kind of instruction, system";
            losses.push(format!("{path}.role"), LossKind::Role, why);
        }
        let wire = message.extra.wire(FORMAT);
        string |= hinted(&wire, "~content").as_deref() == Some("string");
        for (at, part) in message.content.iter().enumerate() {
            let path = format!("{path}.content[{at}]");
            match part {
                Part::InputText(text) | Part::OutputText(text) => {
                    tell_foreign(&text.extra, FORMAT, &path, losses);
                    blocks.extend(text_block(text, Use::Request, &path, losses));
                }
                _ => losses.push(path, LossKind::Part, "instructions are text only"),
            }
        }
    }
    match blocks.as_slice() {
        [] => None,
        [
            Block {
                plain: Some(text), ..
            },
        ] if string => Some(text.clone()),
        _ => Some(array(blocks.into_iter().map(|block| block.json))),
    }
}

struct Writer {
    mid_system: bool,
    purpose: Use,
    groups: Vec<Group>,
    /// Whether a system message stands in this run.
    interrupted: bool,
    /// Results that came behind it and belong before it.
    late: Vec<Block>,
    losses: Losses,
    calls: Vec<String>,
    outputs: Vec<String>,
}

impl Writer {
    fn new(mid_system: bool, purpose: Use) -> Self {
        Self {
            mid_system,
            purpose,
            groups: Vec::new(),
            interrupted: false,
            late: Vec::new(),
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
            Item::FunctionCallOutput(output) => self.output(output, entry.call_id(), &path),
            Item::Reasoning(reasoning) => self.reasoning(reasoning, &path),
            Item::Compaction(compaction) => self.compaction(compaction, &path),
            Item::Extension(extension) => self.extension(extension, &path),
        }
    }

    /// The message that an item with these carried fields goes into.
    fn group(&mut self, role: &'static str, wire: &Extra) -> &mut Group {
        let fresh = self.purpose == Use::Request
            && (hinted(wire, START).is_some()
                || role == "system"
                || self.groups.last().is_none_or(|group| group.role != role));
        if fresh || self.groups.is_empty() {
            self.groups.push(Group::new(role));
        }
        let last = self.groups.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "a group was just made sure of")]
        let group = &mut self.groups[last];
        if let Some(fields) = wire.get(MESSAGE).and_then(Raw::fields) {
            group.fields.extend(fields.rest());
        }
        group.string |= hinted(wire, "~content").as_deref() == Some("string");
        group
    }

    fn message(&mut self, message: &Message, path: &str) {
        tell_foreign(&message.extra, FORMAT, path, &mut self.losses);
        let wire = message.extra.wire(FORMAT);
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System | Role::Developer => {
                self.host(message, path);
                if self.mid_system { "system" } else { "user" }
            }
        };
        let tagged = message.role.is_instruction() && !self.mid_system;
        let mut blocks = Vec::new();
        for (index, part) in message.content.iter().enumerate() {
            let path = format!("{path}.content[{index}]");
            blocks.extend(match part {
                Part::InputText(text) | Part::OutputText(text) if tagged => {
                    tell_foreign(&text.extra, FORMAT, &path, &mut self.losses);
                    let tagged = TextPart::new(system_tag(&text.text));
                    text_block(&tagged, self.purpose, &path, &mut self.losses)
                }
                part => self.part(part, message.role, &path),
            });
        }
        if message.content.is_empty() && hinted(&wire, "~content").is_some() || blocks.is_empty() {
            if message.content.is_empty() {
                let why = "a message without content is refused";
                self.losses.push(path, LossKind::Item, why);
            }
            return;
        }
        self.interrupted |= role == "system";
        self.group(role, &wire).rest.extend(blocks);
    }

    /// Tells what becomes of the host's role.
    fn host(&mut self, message: &Message, path: &str) {
        if !self.mid_system {
            let why = "inside a history the host's words are user text in a <system> tag";
            self.losses
                .push(format!("{path}.role"), LossKind::Role, why);
        } else if message.role == Role::Developer {
            let why = "the format knows one kind of instruction, system";
            self.losses
                .push(format!("{path}.role"), LossKind::Role, why);
        }
    }

    /// A part of a message or of a result.
    fn part(&mut self, part: &Part, role: Role, path: &str) -> Option<Block> {
        if let Some(extra) = part.extra() {
            tell_foreign(extra, FORMAT, path, &mut self.losses);
        }
        let losses = &mut self.losses;
        match part {
            Part::Refusal(text) => {
                losses.push(path, LossKind::Value, "a refusal is written as text");
                text_block(text, self.purpose, path, losses)
            }
            Part::InputText(text)
            | Part::OutputText(text)
            | Part::SummaryText(text)
            | Part::ReasoningText(text) => text_block(text, self.purpose, path, losses),
            Part::InputImage(_) | Part::InputFile(_) if role != Role::User => {
                losses.push(
                    path,
                    LossKind::Part,
                    "only users and tools send pictures and files",
                );
                None
            }
            Part::InputImage(image) => media::image(image, path, losses).map(Block::new),
            Part::InputFile(file) => media::file(file, path, losses).map(Block::new),
            Part::Extension(part) => {
                let block = own_block(&part.kind, &part.raw);
                if block.is_none() {
                    let why = format!("no word for a part of type `{}`", part.kind);
                    losses.push(path, LossKind::Part, why);
                }
                block.map(Block::new)
            }
        }
    }

    fn call(&mut self, call: &FunctionCall, id: &str, path: &str) {
        tell_foreign(&call.extra, FORMAT, path, &mut self.losses);
        let wire = call.extra.wire(FORMAT);
        let id = self.id(id, path);
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
            Use::Request => ANTHROPIC.write(&call.name, path, &mut self.losses),
            Use::Response => call.name.as_str().into(),
        };
        let mut object = Object::new();
        object
            .string("type", "tool_use")
            .string("id", &id)
            .string("name", &name);
        if hinted(&wire, "~input").is_none() {
            object.raw("input", input);
        }
        object.carried(&block_fields(&wire));
        let block = Block::new(object.finish());
        self.group("assistant", &wire).rest.push(block);
        self.calls.push(id);
    }

    fn output(&mut self, output: &FunctionCallOutput, id: &str, path: &str) {
        tell_foreign(&output.extra, FORMAT, path, &mut self.losses);
        let wire = output.extra.wire(FORMAT);
        let id = self.id(id, path);
        let content = self.result_content(output, &wire, path);
        let mut object = Object::new();
        object
            .string("type", "tool_result")
            .string("tool_use_id", &id);
        object.maybe("content", content.as_deref());
        let is_error = output
            .is_error
            .map(|flag| if flag { "true" } else { "false" });
        object
            .maybe("is_error", is_error)
            .carried(&block_fields(&wire));
        let block = Block::new(object.finish());
        self.outputs.push(id);
        if hinted(&wire, "~place").is_some() {
            self.group("user", &wire).rest.push(block);
            return;
        }
        if self.interrupted && hinted(&wire, START).is_none() {
            self.moved(path);
            self.late.push(block);
            return;
        }
        let group = self.group("user", &wire);
        group.results.push(block);
        if !group.rest.is_empty() {
            self.moved(path);
        }
    }

    /// Puts late results where the provider looks for them: into the run's first message.
    fn settle(&mut self) {
        if self.late.is_empty() {
            return;
        }
        if self.groups.first().is_none_or(|group| group.role != "user") {
            self.groups.insert(0, Group::new("user"));
        }
        if let Some(first) = self.groups.first_mut() {
            first.results.append(&mut self.late);
        }
    }

    fn moved(&mut self, path: &str) {
        let why = "results of tools lead the message behind the calls";
        self.losses.push(path, LossKind::Order, why);
    }

    /// The content of a result; `None` where it had none.
    fn result_content(
        &mut self,
        output: &FunctionCallOutput,
        wire: &Extra,
        path: &str,
    ) -> Option<String> {
        let shape = hinted(wire, "~content");
        match &output.output {
            Output::Text(text) if text.is_empty() && shape.as_deref() != Some("blocks") => {
                if output.is_error == Some(true) {
                    let why = "an error without output is refused";
                    self.losses
                        .push(format!("{path}.output"), LossKind::Value, why);
                    return Some(quote(NO_OUTPUT));
                }
                (shape.as_deref() != Some("absent")).then(|| quote(""))
            }
            Output::Text(text) if shape.as_deref() == Some("blocks") => {
                let path = format!("{path}.output");
                let part = TextPart::new(text.as_str());
                let block = text_block(&part, Use::Request, &path, &mut self.losses);
                Some(array(block.into_iter().map(|block| block.json)))
            }
            Output::Text(text) => Some(quote(text)),
            Output::Parts(parts) => {
                let mut blocks = Vec::new();
                for (index, part) in parts.iter().enumerate() {
                    let path = format!("{path}.output[{index}]");
                    blocks.extend(self.part(part, Role::User, &path));
                }
                Some(array(blocks.into_iter().map(|block| block.json)))
            }
        }
    }

    fn reasoning(&mut self, item: &Reasoning, path: &str) {
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
        tell_foreign(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire(FORMAT);
        let text: String = item
            .content
            .iter()
            .flatten()
            .filter_map(Part::as_text)
            .collect();
        let mut object = Object::new();
        match (&item.signature, &item.encrypted_content) {
            (None, Some(data)) => {
                object
                    .string("type", "redacted_thinking")
                    .string("data", data);
            }
            (None, None) if self.purpose == Use::Request => {
                let why = "thinking without a signature is refused";
                self.losses.push(path, LossKind::Item, why);
                return;
            }
            (signature, _) => {
                object.string("type", "thinking").string("thinking", &text);
                object.maybe("signature", signature.as_deref().map(quote).as_deref());
            }
        }
        object.carried(&block_fields(&wire));
        let block = Block::new(object.finish());
        self.group("assistant", &wire).rest.push(block);
    }

    fn compaction(&mut self, item: &Compaction, path: &str) {
        tell_foreign(&item.extra, FORMAT, path, &mut self.losses);
        let wire = item.extra.wire(FORMAT);
        if in_models_turn(item) {
            let texts: Vec<&str> = item.summary.iter().filter_map(Part::as_text).collect();
            let text = texts.join("\n");
            // What it came without is a text of ours, for others.
            let own = !text.is_empty() && hinted(&wire, "~content").is_none();
            let mut object = Object::new();
            object.string("type", "compaction");
            object.maybe("content", own.then(|| quote(&text)).as_deref());
            let encrypted = item.encrypted_content.as_deref().map(quote);
            object.maybe("encrypted_content", encrypted.as_deref());
            object.carried(&block_fields(&wire));
            let block = Block::new(object.finish());
            self.group("assistant", &wire).rest.push(block);
            return;
        }
        let text = retold(item, path, &mut self.losses).map(TextPart::new);
        let block = text.and_then(|text| text_block(&text, Use::Request, path, &mut self.losses));
        if let Some(block) = block {
            self.group("user", &wire).rest.push(block);
        }
    }

    fn extension(&mut self, item: &Extension, path: &str) {
        if item.kind.starts_with("ctx:") {
            return;
        }
        match own_block(&item.kind, &item.raw) {
            Some(block) => {
                let wire = item
                    .raw
                    .fields()
                    .map(contexture_ir::Fields::rest)
                    .unwrap_or_default();
                self.group("assistant", &wire).rest.push(Block::new(block));
            }
            None => {
                let why = format!("no word for an item of type `{}`", item.kind);
                self.losses.push(path, LossKind::Item, why);
            }
        }
    }

    /// A call id as the provider accepts it: letters, digits, `_` and `-`.
    fn id(&mut self, id: &str, path: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !id.is_empty() && id.chars().all(fits) {
            return id.to_owned();
        }
        let why = "ids hold letters, digits, `_` and `-` only";
        self.losses
            .push(format!("{path}.call_id"), LossKind::Value, why);
        let plain: String = id.chars().map(|c| if fits(c) { c } else { '_' }).collect();
        let hash = blake3::hash(id.as_bytes()).to_hex();
        format!("{plain}_{}", hash.get(..8).unwrap_or_default())
    }
}
