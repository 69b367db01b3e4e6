//! A run of items, written as messages.

use contexture_ir::{
    Compaction, Extension, Extra, FunctionCallOutput, Item, Message, Output, Part, Reasoning, Role,
    Status, quote_json,
};

use super::assistant_message::{AssistantCall, AssistantMessage, BodyKind};
use super::content::CONTENT;
use super::custom::{self, ExtensionSide};
use super::message::THOUGHTS;
use super::message_boundary::OpenMessage;
use super::parse_calls::LEGACY;
use super::part::{self, EncodedPart};
use super::spec::{FORMAT, NAME, STRUCTURE};
use crate::model::chunk::{Chunk, Dialect};
use crate::model::format_extras::{START, hint, report_foreign_fields};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::{PairedItem, RoleRun, Side};
use crate::model::text_fallback::compaction_as_text;
use crate::model::text_fallback::system_tag;
use crate::openai::shared::NAME_RULE;
use crate::openai::shared::options::OMITTED;

/// What stands in a tool's message whose whole output is in the user message after it.
const ATTACHED: &str = "[The output is attached to the next user message.]";

pub(super) fn encode_run(dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
    let mut writer = RunEncoder {
        dialect,
        chunk: Chunk::default(),
        elements: Vec::new(),
        losses: Losses::default(),
        assistant: AssistantMessage::default(),
        open: OpenMessage::Nothing,
        attached_parts: Vec::new(),
    };
    for (index, entry) in run.entries.iter().enumerate() {
        writer.push_item(index, entry);
    }
    // The run may end with a message that is still open.
    writer.flush_pending();
    writer.finish()
}

/// One system or developer message that leads.
pub(super) fn encode_instruction(
    dialect: &Dialect,
    index: usize,
    message: &Message,
    losses: &mut Losses,
) -> Option<String> {
    let role = instruction_role(dialect, message.role);
    if role != message.role {
        losses.push(
            format!("instructions[{index}]"),
            LossKind::Role,
            "the model knows no developer",
        );
    }
    encode_message(
        role.as_str(),
        message,
        None,
        &format!("instructions[{index}]"),
        losses,
    )
}

fn instruction_role(dialect: &Dialect, role: Role) -> Role {
    if role == Role::Developer && !dialect.developer_role {
        Role::System
    } else {
        role
    }
}

struct RunEncoder<'r, 'a> {
    dialect: &'r Dialect,
    chunk: Chunk,
    elements: Vec<String>,
    losses: Losses,
    assistant: AssistantMessage<'a>,
    open: OpenMessage,
    /// Parts of tools' outputs that go into a user message.
    attached_parts: Vec<String>,
}

impl<'a> RunEncoder<'_, 'a> {
    fn finish(self) -> Chunk {
        let mut chunk = self.chunk;
        chunk.facts.elements = self.elements.len();
        chunk.json = self.elements.join(",");
        chunk.losses = self.losses.into_vec();
        chunk
    }

    fn push_element(&mut self, side: Side, json: String) {
        self.elements.push(json);
        self.chunk.facts.first.get_or_insert(side);
        self.chunk.facts.last = Some(side);
    }

    /// Writes what is still open: a message of the model, or parts of tools' outputs.
    fn flush_pending(&mut self) {
        self.open = OpenMessage::Nothing;
        let step = std::mem::take(&mut self.assistant);
        if !step.is_empty()
            && let Some(json) = step.encode_message(BodyKind::Request, &mut self.losses)
        {
            self.push_element(Side::Model, json);
        }
        // All outputs of a step must follow its calls directly, so media waits for the last one.
        if !self.attached_parts.is_empty() {
            let parts = std::mem::take(&mut self.attached_parts);
            let mut object = ObjectWriter::new();
            object.string("role", "user").array("content", parts);
            self.push_element(Side::User, object.finish());
        }
    }

    fn push_item(&mut self, index: usize, entry: &PairedItem<'a>) {
        match entry.item {
            Item::Message(message) if message.role == Role::Assistant => {
                self.report_status(index, message.status);
                // Items of one native message become one again, unless a hint says that the
                // document had two.
                if self.starts_new_message(entry.item, &message.extra) {
                    self.flush_pending();
                }
                // Chat has one text and then calls in a message; the order cannot be written.
                let late =
                    self.open == OpenMessage::Calls && message.content.iter().any(has_content);
                if late {
                    let why = "text after a call is written before it";
                    self.losses.push(format!("[{index}]"), LossKind::Order, why);
                }
                report_foreign_fields(
                    &message.extra,
                    NAME,
                    &format!("[{index}]"),
                    &mut self.losses,
                );
                self.open = self.open.after_item(entry.item);
                self.assistant.messages.push((index, message));
            }
            Item::Message(message) => self.push_message(index, message),
            Item::Reasoning(reasoning) => self.push_reasoning(index, entry.item, reasoning),
            Item::FunctionCall(call) => {
                if self.starts_new_message(entry.item, &call.extra) {
                    self.flush_pending();
                }
                self.open = self.open.after_item(entry.item);
                self.chunk.facts.record_call_id(entry, &STRUCTURE);
                self.assistant
                    .calls
                    .push((index, AssistantCall::Function(call, entry.call_id())));
            }
            Item::FunctionCallOutput(output) => self.push_output(index, entry, output),
            Item::Compaction(compaction) => self.push_compaction(index, compaction),
            Item::Extension(extension) => self.push_extension(index, entry, extension),
        }
    }

    fn starts_new_message(&self, item: &Item, extra: &Extra) -> bool {
        if self.open == OpenMessage::Nothing || !self.open.can_join(item) {
            return true;
        }
        !extra.is_empty() && hint(&extra.wire_fields(NAME), START).is_some()
    }

    /// A whole item is the rule; that one was cut off has no place in a message.
    fn report_status(&mut self, index: usize, status: Option<Status>) {
        if status.is_some_and(|status| status != Status::Completed) {
            let why = "a message has no status";
            self.losses
                .push(format!("[{index}].status"), LossKind::Field, why);
        }
    }

    fn push_reasoning(&mut self, index: usize, item: &'a Item, reasoning: &'a Reasoning) {
        let path = format!("[{index}]");
        // Only a Chat host that sent thoughts accepts them back, and only in the field it used.
        if hint(&reasoning.extra.wire_fields(NAME), THOUGHTS).is_none() {
            let opaque = reasoning.encrypted_content.is_some() || reasoning.signature.is_some();
            let what = if opaque {
                LossKind::Opaque
            } else {
                LossKind::Item
            };
            self.losses.push(path, what, "thoughts of another provider");
            return;
        }
        if self.starts_new_message(item, &reasoning.extra) {
            self.flush_pending();
        }
        self.open = self.open.after_item(item);
        self.assistant.thoughts.push((index, reasoning));
    }

    fn push_message(&mut self, index: usize, message: &Message) {
        self.flush_pending();
        let path = format!("[{index}]");
        self.report_status(index, message.status);
        // The `<system>` tag keeps the host's authority visible where the role cannot.
        if message.role.is_instruction() && !self.dialect.mid_system {
            self.losses.push(
                &path,
                LossKind::Role,
                "the model takes no system message here",
            );
            report_foreign_fields(&message.extra, NAME, &path, &mut self.losses);
            let texts: Vec<&str> = message.content.iter().filter_map(Part::as_text).collect();
            let mut object = ObjectWriter::new();
            object
                .string("role", "user")
                .string("content", &system_tag(&texts.join("\n")));
            return self.push_element(Side::User, object.finish());
        }
        let role = instruction_role(self.dialect, message.role);
        if role != message.role {
            self.losses
                .push(&path, LossKind::Role, "the model knows no developer");
        }
        // The user's turn stays, even if nothing of it can be shown: without it two answers would
        // follow each other.
        let placeholder = (role == Role::User).then_some(OMITTED);
        if let Some(json) =
            encode_message(role.as_str(), message, placeholder, &path, &mut self.losses)
        {
            self.push_element(Side::User, json);
        }
    }

    fn push_compaction(&mut self, index: usize, compaction: &Compaction) {
        self.flush_pending();
        let path = format!("[{index}]");
        report_foreign_fields(&compaction.extra, NAME, &path, &mut self.losses);
        let Some(text) = compaction_as_text(compaction, &path, &mut self.losses) else {
            return;
        };
        let mut object = ObjectWriter::new();
        object.string("role", "user").string("content", &text);
        self.push_element(Side::User, object.finish());
    }

    fn push_extension(&mut self, index: usize, entry: &PairedItem<'a>, extension: &'a Extension) {
        let (item, kind) = (entry.item, extension.kind.as_str());
        let path = format!("[{index}]");
        match custom::extension_side(extension) {
            // An item of ours, which no provider is sent; leaving it out is no loss to report.
            _ if kind.starts_with("ctx:") => {}
            Some(ExtensionSide::Call) => {
                if self.open == OpenMessage::Nothing || !self.open.can_join(item) {
                    self.flush_pending();
                }
                self.open = self.open.after_item(item);
                self.chunk.facts.record_call_id(entry, &STRUCTURE);
                self.assistant
                    .calls
                    .push((index, AssistantCall::Other(extension)));
            }
            Some(ExtensionSide::Output) => {
                self.flush_assistant_message();
                self.chunk.facts.record_call_id(entry, &STRUCTURE);
                let json = custom::encode_custom_output(extension, &path, &mut self.losses);
                self.push_element(Side::User, json);
            }
            None => {
                let why = format!("{FORMAT} has no word for `{kind}`");
                self.losses.push(path, LossKind::Item, why);
            }
        }
    }

    fn flush_assistant_message(&mut self) {
        // Not without a message to write: the flush would put attached parts between two outputs.
        if !self.assistant.is_empty() {
            self.flush_pending();
        }
    }

    fn push_output(&mut self, index: usize, entry: &PairedItem<'_>, output: &FunctionCallOutput) {
        self.flush_assistant_message();
        let path = format!("[{index}]");
        self.report_status(index, output.status);
        report_foreign_fields(&output.extra, NAME, &path, &mut self.losses);
        if output.is_error == Some(true) {
            let why = "a tool's message does not say that the tool failed";
            self.losses
                .push(format!("{path}.is_error"), LossKind::Field, why);
        }
        let wire = output.extra.wire_fields(NAME);
        let shape = hint(&wire, CONTENT);
        let (natives, empty) = self.encode_output_parts(entry.call_id(), output, &path);
        let mut object = ObjectWriter::new();
        // The older form of a result names the function and has no id.
        let legacy = hint(&wire, LEGACY);
        object.string("role", if legacy.is_some() { "function" } else { "tool" });
        match &legacy {
            Some(name) => object.string(
                "name",
                &NAME_RULE.sanitize_name(name, &path, &mut self.losses),
            ),
            None => object.string("tool_call_id", entry.call_id()),
        };
        // A tool's message must have content, and the model should know where to look.
        let none = quote_json(if empty { "" } else { ATTACHED });
        object.raw_if_some(
            "content",
            part::encode_content(&natives, shape.as_deref(), &none),
        );
        if let Some(name) = hint(&wire, "~name") {
            // The call tells of a name that had to change.
            let name = NAME_RULE.sanitize_name(&name, &path, &mut Losses::default());
            object.string("name", &name);
        }
        object.extra_fields(&wire);
        self.chunk.facts.record_call_id(entry, &STRUCTURE);
        self.push_element(Side::User, object.finish());
    }

    /// The text of an output; what is not text is put aside. Also whether nothing was put aside.
    fn encode_output_parts(
        &mut self,
        id: &str,
        output: &FunctionCallOutput,
        path: &str,
    ) -> (Vec<EncodedPart>, bool) {
        let parts = match &output.output {
            Output::Text(text) if text.is_empty() => return (Vec::new(), true),
            Output::Text(text) => return (vec![encode_plain_text(text)], true),
            Output::Parts(parts) => parts,
        };
        let mut natives = Vec::new();
        let mut aside = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let path = format!("{path}.output[{at}]");
            match part {
                Part::InputImage(_) | Part::InputFile(_) => {
                    if let Some(native) = part::encode_media(part, &path, &mut self.losses) {
                        let why = "what is not text stands in a user message after the outputs";
                        self.losses.push(path, LossKind::Order, why);
                        aside.push(native.json);
                    }
                }
                part => natives.extend(encode_part(part, &path, &mut self.losses)),
            }
        }
        let empty = aside.is_empty();
        if !empty {
            self.attached_parts
                // The user message holds media of several calls; the line says whose they are.
                .push(encode_plain_text(&format!("Output of tool call {id}:")).json);
            self.attached_parts.extend(aside);
        }
        (natives, empty)
    }
}

/// Whether a part has something to say.
fn has_content(part: &Part) -> bool {
    part.as_text().is_none_or(|text| !text.is_empty())
}

fn encode_plain_text(text: &str) -> EncodedPart {
    let mut object = ObjectWriter::new();
    object.string("type", "text").string("text", text);
    EncodedPart {
        json: object.finish(),
        plain: Some(text.to_owned()),
    }
}

fn encode_part(part: &Part, path: &str, losses: &mut Losses) -> Option<EncodedPart> {
    match part {
        Part::InputText(part)
        | Part::OutputText(part)
        | Part::Refusal(part)
        | Part::SummaryText(part)
        | Part::ReasoningText(part) => part::encode_text(part, path, losses),
        Part::InputImage(_) | Part::InputFile(_) => part::encode_media(part, path, losses),
        Part::Extension(part) => part::encode_extension(part, path, losses),
    }
}

/// A message of the user's side. `placeholder` stands where parts were lost and nothing is left.
fn encode_message(
    role: &str,
    message: &Message,
    placeholder: Option<&str>,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    report_foreign_fields(&message.extra, NAME, path, losses);
    let wire = message.extra.wire_fields(NAME);
    let shape = hint(&wire, CONTENT);
    let mut natives = Vec::new();
    for (at, part) in message.content.iter().enumerate() {
        let path = format!("{path}.content[{at}]");
        let media = matches!(part, Part::InputImage(_) | Part::InputFile(_));
        if media && role != "user" {
            losses.push(path, LossKind::Part, "a system message takes text only");
        } else {
            natives.extend(encode_part(part, &path, losses));
        }
    }
    let lost = message.content.iter().any(has_content);
    if natives.is_empty() && lost {
        natives.extend(placeholder.map(encode_plain_text));
    }
    if natives.is_empty() && shape.is_none() {
        return None;
    }
    let mut object = ObjectWriter::new();
    object.string("role", role);
    object.raw_if_some(
        "content",
        part::encode_content(&natives, shape.as_deref(), "\"\""),
    );
    object.extra_fields(&wire);
    Some(object.finish())
}
