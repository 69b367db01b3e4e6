//! A run of items, written as messages.

use contexture_ir::{
    Compaction, Extension, Extra, FunctionCallOutput, Item, Message, Output, Part, Reasoning, Role,
    Status, quote,
};

use super::call::LEGACY;
use super::content::CONTENT;
use super::custom::{self, Half};
use super::message::THOUGHTS;
use super::open::Open;
use super::part::{self, Native};
use super::step::{Call, Place, Step};
use super::words::{FORMAT, NAME};
use crate::carry::{START, hinted, tell_foreign};
use crate::chunk::{Chunk, Dialect};
use crate::compaction::retold;
use crate::entry::{Entry, Run, Side};
use crate::function_name::OPENAI;
use crate::json::{Object, array};
use crate::loss::{LossKind, Losses};
use crate::openai::OMITTED;
use crate::system_tag::system_tag;

/// What stands in a tool's message whose whole output is in the user message after it.
const ATTACHED: &str = "[The output is attached to the next user message.]";

pub(super) fn lower(dialect: &Dialect, run: &Run<'_, '_>) -> Chunk {
    let mut writer = Writer {
        dialect,
        chunk: Chunk::default(),
        elements: Vec::new(),
        losses: Losses::default(),
        step: Step::default(),
        open: Open::Nothing,
        attached: Vec::new(),
    };
    for (index, entry) in run.entries.iter().enumerate() {
        writer.entry(index, entry);
    }
    writer.flush();
    writer.finish()
}

/// One system or developer message that leads.
pub(super) fn instruction(
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
    write_message(
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

struct Writer<'r, 'a> {
    dialect: &'r Dialect,
    chunk: Chunk,
    elements: Vec<String>,
    losses: Losses,
    step: Step<'a>,
    open: Open,
    /// Parts of tools' outputs that go into a user message.
    attached: Vec<String>,
}

impl<'a> Writer<'_, 'a> {
    fn finish(self) -> Chunk {
        let mut chunk = self.chunk;
        chunk.facts.elements = self.elements.len();
        chunk.json = self.elements.join(",");
        chunk.losses = self.losses.into_vec();
        chunk
    }

    fn element(&mut self, side: Side, json: String) {
        self.elements.push(json);
        self.chunk.facts.first.get_or_insert(side);
        self.chunk.facts.last = Some(side);
    }

    /// Writes what is still open: a message of the model, or parts of tools' outputs.
    fn flush(&mut self) {
        self.open = Open::Nothing;
        let step = std::mem::take(&mut self.step);
        if !step.is_empty()
            && let Some(json) = step.write(Place::Request, &mut self.losses)
        {
            self.element(Side::Model, json);
        }
        if !self.attached.is_empty() {
            let parts = std::mem::take(&mut self.attached);
            let mut object = Object::new();
            object.string("role", "user").raw("content", &array(parts));
            self.element(Side::User, object.finish());
        }
    }

    fn entry(&mut self, index: usize, entry: &Entry<'a>) {
        match entry.item {
            Item::Message(message) if message.role == Role::Assistant => {
                self.tell_status(index, message.status);
                if self.begins(entry.item, &message.extra) {
                    self.flush();
                }
                let late = self.open == Open::Calls && message.content.iter().any(says);
                if late {
                    let why = "text after a call is written before it";
                    self.losses.push(format!("[{index}]"), LossKind::Order, why);
                }
                tell_foreign(
                    &message.extra,
                    NAME,
                    &format!("[{index}]"),
                    &mut self.losses,
                );
                self.open = self.open.with(entry.item);
                self.step.said.push((index, message));
            }
            Item::Message(message) => self.message(index, message),
            Item::Reasoning(reasoning) => self.reasoning(index, entry.item, reasoning),
            Item::FunctionCall(call) => {
                if self.begins(entry.item, &call.extra) {
                    self.flush();
                }
                self.open = self.open.with(entry.item);
                self.chunk.facts.note(entry, FORMAT);
                self.step
                    .calls
                    .push((index, Call::Function(call, entry.call_id())));
            }
            Item::FunctionCallOutput(output) => self.output(index, entry, output),
            Item::Compaction(compaction) => self.compaction(index, compaction),
            Item::Extension(extension) => self.extension(index, entry, extension),
        }
    }

    fn begins(&self, item: &Item, extra: &Extra) -> bool {
        if self.open == Open::Nothing || !self.open.takes(item) {
            return true;
        }
        !extra.is_empty() && hinted(&extra.wire(NAME), START).is_some()
    }

    /// A whole item is the rule; that one was cut off has no place in a message.
    fn tell_status(&mut self, index: usize, status: Option<Status>) {
        if status.is_some_and(|status| status != Status::Completed) {
            let why = "a message has no status";
            self.losses
                .push(format!("[{index}].status"), LossKind::Field, why);
        }
    }

    fn reasoning(&mut self, index: usize, item: &'a Item, reasoning: &'a Reasoning) {
        let path = format!("[{index}]");
        if hinted(&reasoning.extra.wire(NAME), THOUGHTS).is_none() {
            let opaque = reasoning.encrypted_content.is_some() || reasoning.signature.is_some();
            let what = if opaque {
                LossKind::Opaque
            } else {
                LossKind::Item
            };
            self.losses.push(path, what, "thoughts of another provider");
            return;
        }
        if self.begins(item, &reasoning.extra) {
            self.flush();
        }
        self.open = self.open.with(item);
        self.step.thoughts.push((index, reasoning));
    }

    fn message(&mut self, index: usize, message: &Message) {
        self.flush();
        let path = format!("[{index}]");
        self.tell_status(index, message.status);
        if message.role.is_instruction() && !self.dialect.mid_system {
            self.losses.push(
                &path,
                LossKind::Role,
                "the model takes no system message here",
            );
            tell_foreign(&message.extra, NAME, &path, &mut self.losses);
            let texts: Vec<&str> = message.content.iter().filter_map(Part::as_text).collect();
            let mut object = Object::new();
            object
                .string("role", "user")
                .string("content", &system_tag(&texts.join("\n")));
            return self.element(Side::User, object.finish());
        }
        let role = instruction_role(self.dialect, message.role);
        if role != message.role {
            self.losses
                .push(&path, LossKind::Role, "the model knows no developer");
        }
        let placeholder = (role == Role::User).then_some(OMITTED);
        if let Some(json) =
            write_message(role.as_str(), message, placeholder, &path, &mut self.losses)
        {
            self.element(Side::User, json);
        }
    }

    fn compaction(&mut self, index: usize, compaction: &Compaction) {
        self.flush();
        let path = format!("[{index}]");
        tell_foreign(&compaction.extra, NAME, &path, &mut self.losses);
        let Some(text) = retold(compaction, &path, &mut self.losses) else {
            return;
        };
        let mut object = Object::new();
        object.string("role", "user").string("content", &text);
        self.element(Side::User, object.finish());
    }

    fn extension(&mut self, index: usize, entry: &Entry<'a>, extension: &'a Extension) {
        let (item, kind) = (entry.item, extension.kind.as_str());
        let path = format!("[{index}]");
        match custom::half_of(extension) {
            _ if kind.starts_with("ctx:") => {}
            Some(Half::Call) => {
                if self.open == Open::Nothing || !self.open.takes(item) {
                    self.flush();
                }
                self.open = self.open.with(item);
                self.chunk.facts.note(entry, FORMAT);
                self.step.calls.push((index, Call::Other(extension)));
            }
            Some(Half::Output) => {
                self.flush_step();
                self.chunk.facts.note(entry, FORMAT);
                let json = custom::write_output(extension, &path, &mut self.losses);
                self.element(Side::User, json);
            }
            None => {
                let why = format!("{FORMAT} has no word for `{kind}`");
                self.losses.push(path, LossKind::Item, why);
            }
        }
    }

    fn flush_step(&mut self) {
        if !self.step.is_empty() {
            self.flush();
        }
    }

    fn output(&mut self, index: usize, entry: &Entry<'_>, output: &FunctionCallOutput) {
        self.flush_step();
        let path = format!("[{index}]");
        self.tell_status(index, output.status);
        tell_foreign(&output.extra, NAME, &path, &mut self.losses);
        if output.is_error == Some(true) {
            let why = "a tool's message does not say that the tool failed";
            self.losses
                .push(format!("{path}.is_error"), LossKind::Field, why);
        }
        let wire = output.extra.wire(NAME);
        let shape = hinted(&wire, CONTENT);
        let (natives, empty) = self.output_parts(entry.call_id(), output, &path);
        let mut object = Object::new();
        let legacy = hinted(&wire, LEGACY);
        object.string("role", if legacy.is_some() { "function" } else { "tool" });
        match &legacy {
            Some(name) => object.string("name", &OPENAI.write(name, &path, &mut self.losses)),
            None => object.string("tool_call_id", entry.call_id()),
        };
        let none = quote(if empty { "" } else { ATTACHED });
        object.maybe(
            "content",
            part::write(&natives, shape.as_deref(), &none).as_deref(),
        );
        if let Some(name) = hinted(&wire, "~name") {
            // The call tells of a name that had to change.
            let name = OPENAI.write(&name, &path, &mut Losses::default());
            object.string("name", &name);
        }
        object.carried(&wire);
        self.chunk.facts.note(entry, FORMAT);
        self.element(Side::User, object.finish());
    }

    /// The text of an output; what is not text is put aside. Also whether nothing was put aside.
    fn output_parts(
        &mut self,
        id: &str,
        output: &FunctionCallOutput,
        path: &str,
    ) -> (Vec<Native>, bool) {
        let parts = match &output.output {
            Output::Text(text) if text.is_empty() => return (Vec::new(), true),
            Output::Text(text) => return (vec![plain(text)], true),
            Output::Parts(parts) => parts,
        };
        let mut natives = Vec::new();
        let mut aside = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let path = format!("{path}.output[{at}]");
            match part {
                Part::InputImage(_) | Part::InputFile(_) => {
                    if let Some(native) = part::write_media(part, &path, &mut self.losses) {
                        let why = "what is not text stands in a user message after the outputs";
                        self.losses.push(path, LossKind::Order, why);
                        aside.push(native.json);
                    }
                }
                part => natives.extend(write_readable(part, &path, &mut self.losses)),
            }
        }
        let empty = aside.is_empty();
        if !empty {
            self.attached
                .push(plain(&format!("Output of tool call {id}:")).json);
            self.attached.extend(aside);
        }
        (natives, empty)
    }
}

/// Whether a part has something to say.
fn says(part: &Part) -> bool {
    part.as_text().is_none_or(|text| !text.is_empty())
}

fn plain(text: &str) -> Native {
    let mut object = Object::new();
    object.string("type", "text").string("text", text);
    Native {
        json: object.finish(),
        plain: Some(text.to_owned()),
    }
}

fn write_readable(part: &Part, path: &str, losses: &mut Losses) -> Option<Native> {
    match part {
        Part::InputText(part)
        | Part::OutputText(part)
        | Part::Refusal(part)
        | Part::SummaryText(part)
        | Part::ReasoningText(part) => part::write_text(part, path, losses),
        Part::InputImage(_) | Part::InputFile(_) => part::write_media(part, path, losses),
        Part::Extension(part) => part::write_extension(part, path, losses),
    }
}

/// A message of the user's side. `placeholder` stands where parts were lost and nothing is left.
fn write_message(
    role: &str,
    message: &Message,
    placeholder: Option<&str>,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    tell_foreign(&message.extra, NAME, path, losses);
    let wire = message.extra.wire(NAME);
    let shape = hinted(&wire, CONTENT);
    let mut natives = Vec::new();
    for (at, part) in message.content.iter().enumerate() {
        let path = format!("{path}.content[{at}]");
        let media = matches!(part, Part::InputImage(_) | Part::InputFile(_));
        if media && role != "user" {
            losses.push(path, LossKind::Part, "a system message takes text only");
        } else {
            natives.extend(write_readable(part, &path, losses));
        }
    }
    let lost = message.content.iter().any(says);
    if natives.is_empty() && lost {
        natives.extend(placeholder.map(plain));
    }
    if natives.is_empty() && shape.is_none() {
        return None;
    }
    let mut object = Object::new();
    object.string("role", role);
    object.maybe(
        "content",
        part::write(&natives, shape.as_deref(), "\"\"").as_deref(),
    );
    object.carried(&wire);
    Some(object.finish())
}
