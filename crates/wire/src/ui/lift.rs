//! A UI message to items.
//!
//! Parts become items in their order, but the outputs of a step stand behind everything the model
//! said in it, as the SDK itself sends them: several calls of one step are parallel. A step ends at
//! `step-start` or at a steering message; in a message without any `step-start` also where text or
//! reasoning follows a call that has its output. What items have no field for is kept beside them
//! (`ctx:wire`, format `ui`); parts that have no item are `ctx:part`, the message's own fields
//! `ctx:message`, so that [`super::fold`] gives back the same message.

use std::collections::BTreeSet;

use contexture_ir::{Extension, Extra, Fields, Item, Message, Raw, Role, UiMessage, UiRole, quote};

use super::check::{Checked, Val, check_part, decode};
use super::reasoning::LiftedReasoning;
use super::schema::PartKind;
use super::{compaction, media, reasoning, text, tool};
use crate::loss::{Loss, LossKind, Losses};

/// A UI message as items.
#[derive(Clone, Debug, PartialEq)]
pub struct LiftedMessage {
    /// The message's id, as the client gave it; may be empty.
    pub message_id: String,
    /// Who it is from.
    pub role: UiRole,
    /// The items, in order; each belongs to this message.
    pub items: Vec<Item>,
    /// What could not be kept: parts that no AI SDK would accept, halves of surrogate pairs. Paths
    /// begin with `parts`.
    pub losses: Vec<Loss>,
}

/// Reads one UI message; [`super::fold`] of the items gives back the same message.
///
/// A part that validation would refuse is kept but not understood, with a loss.
#[must_use]
pub fn lift_message(message: &UiMessage) -> LiftedMessage {
    let mut lifter = Lifter::new(message);
    for (index, part) in message.parts.iter().enumerate() {
        lifter.part(index, part);
    }
    lifter.finish(message)
}

/// Hint: whether a step begins with the item, where the surrounding items do not tell.
pub(super) const STEP: &str = "~step";
/// Hint: the id of the steering message that the item is.
pub(super) const STEERING: &str = "steering";

/// What is being put together from several parts.
enum Open {
    Message {
        message: Message,
        hints: Extra,
        texts: usize,
    },
    Reasoning {
        reasoning: LiftedReasoning,
        hints: Extra,
    },
}

struct Lifter {
    role: Role,
    steps_marked: bool,
    items: Vec<Item>,
    outputs: Vec<Item>,
    /// The calls that `outputs` answer.
    answered: BTreeSet<String>,
    open: Option<Open>,
    /// A `step-start` was read and nothing begun since.
    step_pending: bool,
    /// The fold would begin a step here by itself: outputs stand between.
    boundary: bool,
    losses: Losses,
}

impl Lifter {
    fn new(message: &UiMessage) -> Self {
        Self {
            role: match message.role {
                UiRole::System => Role::System,
                UiRole::User => Role::User,
                UiRole::Assistant => Role::Assistant,
            },
            steps_marked: message.parts.iter().any(is_step_start),
            items: Vec::with_capacity(message.parts.len()),
            outputs: Vec::new(),
            answered: BTreeSet::new(),
            open: None,
            step_pending: false,
            boundary: false,
            losses: Losses::default(),
        }
    }

    fn part(&mut self, index: usize, part: &Raw) {
        let checked = Fields::parse(part.get()).ok().map(check_part);
        let Some(Ok(checked)) = checked else {
            let why = "not a part that the AI SDK accepts";
            self.losses
                .push(format!("parts[{index}]"), LossKind::Part, why);
            return self.keep(part);
        };
        for name in &checked.members.dropped {
            let why = "a field that the AI SDK drops";
            self.losses
                .push(format!("parts[{index}].{name}"), LossKind::Field, why);
        }
        if part.get().contains("\\u") {
            self.note_mended(index, &checked);
        }
        match checked.kind {
            PartKind::Text => self.text(&checked),
            PartKind::Reasoning => self.reasoning(&checked),
            PartKind::File => self.file(&checked),
            PartKind::Tool { dynamic, state } => self.tool(tool::lift(&checked, dynamic, state)),
            PartKind::Steering => self.steering(&checked),
            PartKind::StepStart => self.step_start(),
            PartKind::Plain => match compaction::lift(&checked) {
                Some(item) if self.role == Role::Assistant => self.place(item.into()),
                _ => self.keep(&checked.to_raw()),
            },
        }
    }

    fn note_mended(&mut self, index: usize, checked: &Checked<'_>) {
        for (name, value) in &checked.members.list {
            let value = value.get();
            if value.starts_with('"') && !decode(value).1 {
                let why = "half of a surrogate pair is no text";
                self.losses
                    .push(format!("parts[{index}].{name}"), LossKind::Value, why);
            }
        }
    }

    fn text(&mut self, checked: &Checked<'_>) {
        let lifted = text::lift(checked, self.role);
        self.step_by_order();
        if !self.step_pending
            && let Some(Open::Message { message, texts, .. }) = &mut self.open
            && (*texts == 0 || (message.status == lifted.status && message.id == lifted.id))
        {
            message.status = lifted.status;
            message.id = lifted.id;
            message.content.push(lifted.part);
            *texts += 1;
            return;
        }
        let mut message = Message::new(self.role, vec![lifted.part]);
        message.status = lifted.status;
        message.id = lifted.id;
        self.open_message(message, 1);
    }

    fn file(&mut self, checked: &Checked<'_>) {
        let part = media::lift(checked);
        if !self.step_pending
            && let Some(Open::Message { message, .. }) = &mut self.open
        {
            message.content.push(part);
            return;
        }
        self.open_message(Message::new(self.role, vec![part]), 0);
    }

    fn open_message(&mut self, message: Message, texts: usize) {
        self.close();
        let hints = self.begin();
        self.open = Some(Open::Message {
            message,
            hints,
            texts,
        });
    }

    fn reasoning(&mut self, checked: &Checked<'_>) {
        let mut lifted = reasoning::lift(checked);
        self.step_by_order();
        if !self.step_pending
            && let Some(Open::Reasoning { reasoning, .. }) = &mut self.open
        {
            match reasoning.join(lifted) {
                None => return,
                Some(other) => lifted = other,
            }
        }
        self.close();
        let hints = self.begin();
        self.open = Some(Open::Reasoning {
            reasoning: lifted,
            hints,
        });
    }

    fn tool(&mut self, lifted: tool::LiftedTool) {
        self.close();
        // An output answers the nearest call of its id: it must not meet another one first.
        if self.answered.contains(&lifted.call.call_id) {
            self.flush_outputs();
        }
        let own = tool::is_provider_executed(&lifted.hints);
        let mut hints = self.begin();
        hints.extend(lifted.hints);
        let mut call = lifted.call;
        call.extra.set_wire("ui", hints);
        self.items.push(call.into());
        self.items.extend(lifted.approval);
        if let Some(output) = lifted.output {
            if own {
                self.items.push(output.into());
            } else {
                self.answered.insert(output.call_id.clone());
                self.outputs.push(output.into());
            }
        }
    }

    /// A message that the user put between two steps of the model's.
    fn steering(&mut self, checked: &Checked<'_>) {
        let parts = checked.get("parts").map_or("[]", Val::get);
        let parts: Vec<Raw> = serde_json::from_str(parts).unwrap_or_default();
        let mut content = Vec::with_capacity(parts.len());
        for part in &parts {
            let Some(Ok(part)) = Fields::parse(part.get()).ok().map(check_part) else {
                continue;
            };
            content.push(match part.kind {
                PartKind::File => media::lift(&part),
                _ => text::lift(&part, Role::User).part,
            });
        }
        // Inside a person's own message it would look like the rest of it.
        if self.role != Role::Assistant || content.len() != parts.len() {
            return self.keep(&checked.to_raw());
        }
        self.close();
        self.flush_outputs();
        self.mark_pending();
        let mut message = Message::new(Role::User, content);
        let mut hints = Extra::new();
        if let Some(id) = checked.get("id") {
            hints.set(STEERING, id.to_raw());
        }
        message.extra.set_wire("ui", hints);
        self.items.push(message.into());
    }

    fn step_start(&mut self) {
        self.close();
        self.flush_outputs();
        self.mark_pending();
        self.step_pending = true;
    }

    /// In a message without marks, what follows a call's output belongs to the next step.
    fn step_by_order(&mut self) {
        if !self.steps_marked && !self.outputs.is_empty() {
            self.close();
            self.flush_outputs();
        }
    }

    /// A part that has no item.
    fn keep(&mut self, part: &Raw) {
        self.place(kept(part));
    }

    /// An item that nothing joins.
    fn place(&mut self, item: Item) {
        self.close();
        self.mark_pending();
        self.items.push(item);
    }

    /// Writes down a `step-start` that nothing can carry.
    fn mark_pending(&mut self) {
        if std::mem::take(&mut self.step_pending) {
            self.items.push(kept(&step_start()));
            self.boundary = false;
        }
    }

    /// The hint for the item that begins here.
    fn begin(&mut self) -> Extra {
        let wanted = std::mem::take(&mut self.step_pending);
        let derived = std::mem::take(&mut self.boundary);
        let mut hints = Extra::new();
        if wanted != derived
            && let Ok(flag) = Raw::parse(wanted.to_string())
        {
            hints.set(STEP, flag);
        }
        hints
    }

    fn flush_outputs(&mut self) {
        if !self.outputs.is_empty() {
            self.boundary = true;
            self.items.append(&mut self.outputs);
            self.answered.clear();
        }
    }

    fn close(&mut self) {
        match self.open.take() {
            None => {}
            Some(Open::Message {
                mut message, hints, ..
            }) => {
                message.extra.set_wire("ui", hints);
                self.items.push(message.into());
            }
            Some(Open::Reasoning { reasoning, hints }) => {
                self.items.push(reasoning.finish(hints).into());
            }
        }
    }

    fn finish(mut self, message: &UiMessage) -> LiftedMessage {
        self.close();
        self.flush_outputs();
        self.mark_pending();
        if message.metadata.is_some() || derived_role(self.items.iter()) != Some(message.role) {
            let own = own_fields(message, None);
            self.items.insert(0, own);
        }
        LiftedMessage {
            message_id: message.id.clone(),
            role: message.role,
            items: self.items,
            losses: self.losses.into_vec(),
        }
    }
}

/// The role a message has by its items: that of the first that says something.
pub(super) fn derived_role<'a>(items: impl IntoIterator<Item = &'a Item>) -> Option<UiRole> {
    items.into_iter().find_map(role_of)
}

/// The role of the UI message that an item begins; `None` for our own bookkeeping.
pub(super) fn role_of(item: &Item) -> Option<UiRole> {
    match item {
        Item::Message(message) => Some(match message.role {
            Role::User => UiRole::User,
            Role::Assistant => UiRole::Assistant,
            Role::System | Role::Developer => UiRole::System,
        }),
        Item::Extension(extension) if extension.kind.starts_with("ctx:") => None,
        _ => Some(UiRole::Assistant),
    }
}

/// The message's own fields as an item; with the number of items that follow it, also its id.
pub(super) fn own_fields(message: &UiMessage, followed_by: Option<usize>) -> Item {
    let mut raw = r#"{"type":"ctx:message""#.to_owned();
    let id = followed_by.map(|items| {
        raw.push_str(&format!(r#","id":{},"items":{items}"#, quote(&message.id)));
        message.id.clone()
    });
    raw.push_str(&format!(r#","role":"{}""#, message.role.as_str()));
    if let Some(metadata) = &message.metadata {
        raw.push_str(&format!(r#","metadata":{}"#, metadata.get()));
    }
    raw.push('}');
    Item::Extension(Extension {
        kind: "ctx:message".to_owned(),
        id,
        raw: Raw::parse(raw).unwrap_or_else(|_| Raw::null()),
    })
}

fn kept(part: &Raw) -> Item {
    let raw = format!(r#"{{"type":"ctx:part","part":{}}}"#, part.get());
    Item::Extension(Extension {
        kind: "ctx:part".to_owned(),
        id: None,
        raw: Raw::parse(raw).unwrap_or_else(|_| Raw::null()),
    })
}

fn is_step_start(part: &Raw) -> bool {
    let fields = part.fields();
    fields.is_some_and(|part| {
        part.get(&["type"])
            .is_some_and(|t| t.get() == "\"step-start\"")
    })
}

/// The mark between two steps.
pub(super) fn step_start() -> Raw {
    Raw::parse(r#"{"type":"step-start"}"#).unwrap_or_else(|_| Raw::null())
}
