//! A UI message to items.
//!
//! Parts become items in their order, but the outputs of a step stand behind everything the model
//! said in it, as the SDK itself sends them: several calls of one step are parallel. A step ends at
//! `step-start` or at a steering message; in a message without any `step-start` also where text or
//! reasoning follows a call that has its output. What items have no field for is kept beside them
//! (`ctx:wire`, format `ui`); parts that have no item are `ctx:part`, the message's own fields
//! `ctx:message`, so that [`super::fold`] gives back the same message.

use std::collections::BTreeSet;

use contexture_ir::{
    Extension, Extra, Fields, Item, Message, Part, Raw, Role, UiMessage, UiRole, quote_json,
};

use super::reasoning::LiftedReasoning;
use super::schema::PartKind;
use super::unknown_fields::record_unknown;
use super::validate_part::{CheckedPart, CheckedValue, check_part, decode_string};
use super::{compaction, media, reasoning, text, tool};
use crate::model::loss::{Loss, LossKind, Losses};

/// A UI message as items.
#[derive(Clone, Debug, PartialEq)]
pub struct LiftedMessage {
    /// The message's id, as the client gave it; may be empty.
    pub message_id: String,
    /// Who it is from.
    pub role: UiRole,
    /// The items, in order; each belongs to this message.
    pub items: Vec<Item>,
    /// What items cannot express: parts that no AI SDK would accept, halves of surrogate pairs. Paths
    /// begin with `parts`.
    pub losses: Vec<Loss>,
}

/// Reads one UI message; [`super::fold`] of the items gives back the same message.
///
/// A part that validation would refuse is stored whole without being understood, with a loss.
#[must_use]
pub fn lift_message(message: &UiMessage) -> LiftedMessage {
    let mut lifter = Lifter::new(message);
    for (index, part) in message.parts.iter().enumerate() {
        lifter.lift_part(index, part);
    }
    lifter.finish(message)
}

/// Hint: whether a step begins with the item, where the surrounding items do not tell.
pub(super) const STEP: &str = "~step";
/// Hint: the id of the steering message that the item is.
pub(super) const STEERING: &str = "steering";

/// What is being put together from several parts.
enum OpenItem {
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
    open: Option<OpenItem>,
    /// A `step-start` was read and nothing begun since.
    step_pending: bool,
    /// The fold would begin a step here by itself: outputs stand between.
    step_implied: bool,
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
            step_implied: false,
            losses: Losses::default(),
        }
    }

    fn lift_part(&mut self, index: usize, part: &Raw) {
        let checked = Fields::parse(part.get()).ok().map(check_part);
        let Some(Ok(checked)) = checked else {
            let why = "not a part that the AI SDK accepts";
            self.losses
                .push(format!("parts[{index}]"), LossKind::Part, why);
            return self.add_unmapped_part(part);
        };
        // Halves of surrogate pairs can only come from escapes; most parts have none and are spared
        // the check.
        if part.get().contains("\\u") {
            self.report_replaced_surrogates(index, &checked);
        }
        let mut unknown = Extra::new();
        record_unknown(&mut unknown, part, &checked);
        match checked.kind {
            PartKind::Text => self.lift_text(&checked, unknown),
            PartKind::Reasoning => self.lift_reasoning(&checked, unknown),
            PartKind::File => self.lift_file(&checked, unknown),
            PartKind::Tool { dynamic, state } => {
                let mut lifted = tool::lift_tool(&checked, dynamic, state);
                lifted.hints.extend(unknown);
                self.add_tool(lifted);
            }
            PartKind::Steering => self.lift_steering(&checked, part, unknown),
            // The hint that stands for this part has no place for more.
            PartKind::StepStart if !unknown.is_empty() => {
                self.begin_step();
                self.step_pending = false;
                self.step_implied = false;
                self.items.push(unmapped_part_item(part));
            }
            PartKind::StepStart => self.begin_step(),
            PartKind::Plain => match compaction::lift_compaction(&checked) {
                Some(mut item) if self.role == Role::Assistant => {
                    let mut fields = item.extra.wire_fields("ui");
                    fields.extend(unknown);
                    item.extra.set_wire_fields("ui", fields);
                    self.add_item(item.into());
                }
                _ if unknown.is_empty() => self.add_unmapped_part(&checked.to_raw()),
                _ => self.add_unmapped_part(part),
            },
        }
    }

    fn report_replaced_surrogates(&mut self, index: usize, checked: &CheckedPart<'_>) {
        for (name, value) in &checked.members.list {
            let value = value.get();
            if value.starts_with('"') && !decode_string(value).1 {
                let why = "half of a surrogate pair is no text";
                self.losses
                    .push(format!("parts[{index}].{name}"), LossKind::Value, why);
            }
        }
    }

    fn lift_text(&mut self, checked: &CheckedPart<'_>, unknown: Extra) {
        let mut lifted = text::lift_text(checked, self.role);
        add_ui_fields(&mut lifted.part, unknown);
        self.end_step_by_order();
        if !self.step_pending
            && let Some(OpenItem::Message { message, texts, .. }) = &mut self.open
            // An item has one status and one id; texts that differ in them are separate items.
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

    fn lift_file(&mut self, checked: &CheckedPart<'_>, unknown: Extra) {
        let mut part = media::lift_file(checked);
        add_ui_fields(&mut part, unknown);
        if !self.step_pending
            && let Some(OpenItem::Message { message, .. }) = &mut self.open
        {
            message.content.push(part);
            return;
        }
        self.open_message(Message::new(self.role, vec![part]), 0);
    }

    fn open_message(&mut self, message: Message, texts: usize) {
        self.close_item();
        let hints = self.take_step_hint();
        self.open = Some(OpenItem::Message {
            message,
            hints,
            texts,
        });
    }

    fn lift_reasoning(&mut self, checked: &CheckedPart<'_>, unknown: Extra) {
        let mut lifted = reasoning::lift_reasoning(checked, unknown);
        self.end_step_by_order();
        if !self.step_pending
            && let Some(OpenItem::Reasoning { reasoning, .. }) = &mut self.open
        {
            match reasoning.try_join(lifted) {
                None => return,
                Some(other) => lifted = other,
            }
        }
        self.close_item();
        let hints = self.take_step_hint();
        self.open = Some(OpenItem::Reasoning {
            reasoning: lifted,
            hints,
        });
    }

    fn add_tool(&mut self, lifted: tool::LiftedTool) {
        self.close_item();
        // An output answers the nearest call of its id: it must not meet another one first.
        if self.answered.contains(&lifted.call.call_id) {
            self.flush_outputs();
        }
        let own = tool::is_provider_executed(&lifted.hints);
        let mut hints = self.take_step_hint();
        hints.extend(lifted.hints);
        let mut call = lifted.call;
        call.extra.set_wire_fields("ui", hints);
        self.items.push(call.into());
        self.items.extend(lifted.approval);
        if let Some(output) = lifted.output {
            // A provider's own tool answered within the step; a host's outputs come after all calls
            // of the step.
            if own {
                self.items.push(output.into());
            } else {
                self.answered.insert(output.call_id.clone());
                self.outputs.push(output.into());
            }
        }
    }

    /// A message that the user put between two steps of the model's.
    fn lift_steering(&mut self, checked: &CheckedPart<'_>, original: &Raw, unknown: Extra) {
        let parts = checked.get("parts").map_or("[]", CheckedValue::get);
        let parts: Vec<Raw> = serde_json::from_str(parts).unwrap_or_default();
        let mut content = Vec::with_capacity(parts.len());
        for part in &parts {
            let Some(Ok(part)) = Fields::parse(part.get()).ok().map(check_part) else {
                continue;
            };
            content.push(match part.kind {
                PartKind::File => media::lift_file(&part),
                _ => text::lift_text(&part, Role::User).part,
            });
        }
        // Inside a person's own message it would look like the rest of it.
        if self.role != Role::Assistant || content.len() != parts.len() {
            return match unknown.is_empty() {
                true => self.add_unmapped_part(&checked.to_raw()),
                false => self.add_unmapped_part(original),
            };
        }
        self.close_item();
        self.flush_outputs();
        self.flush_step_start();
        let mut message = Message::new(Role::User, content);
        let mut hints = Extra::new();
        if let Some(id) = checked.get("id") {
            hints.set(STEERING, id.to_raw());
        }
        hints.extend(unknown);
        message.extra.set_wire_fields("ui", hints);
        self.items.push(message.into());
    }

    fn begin_step(&mut self) {
        self.close_item();
        self.flush_outputs();
        self.flush_step_start();
        self.step_pending = true;
    }

    /// In a message without marks, what follows a call's output belongs to the next step.
    fn end_step_by_order(&mut self) {
        if !self.steps_marked && !self.outputs.is_empty() {
            self.close_item();
            self.flush_outputs();
        }
    }

    /// A part that has no item.
    fn add_unmapped_part(&mut self, part: &Raw) {
        self.add_item(unmapped_part_item(part));
    }

    /// An item that nothing joins.
    fn add_item(&mut self, item: Item) {
        self.close_item();
        self.flush_step_start();
        self.items.push(item);
    }

    /// Writes down a `step-start` that nothing can carry.
    fn flush_step_start(&mut self) {
        if std::mem::take(&mut self.step_pending) {
            self.items.push(unmapped_part_item(&step_start_part()));
            // The part that was written begins the step by itself.
            self.step_implied = false;
        }
    }

    /// The hint for the item that begins here.
    fn take_step_hint(&mut self) -> Extra {
        let wanted = std::mem::take(&mut self.step_pending);
        let derived = std::mem::take(&mut self.step_implied);
        let mut hints = Extra::new();
        // The hint is needed only where the order of the items would lead the fold to another step.
        if wanted != derived
            && let Ok(flag) = Raw::parse(wanted.to_string())
        {
            hints.set(STEP, flag);
        }
        hints
    }

    fn flush_outputs(&mut self) {
        if !self.outputs.is_empty() {
            self.step_implied = true;
            self.items.append(&mut self.outputs);
            self.answered.clear();
        }
    }

    fn close_item(&mut self) {
        match self.open.take() {
            None => {}
            Some(OpenItem::Message {
                mut message, hints, ..
            }) => {
                message.extra.set_wire_fields("ui", hints);
                self.items.push(message.into());
            }
            Some(OpenItem::Reasoning { reasoning, hints }) => {
                self.items.push(reasoning.finish(hints).into());
            }
        }
    }

    fn finish(mut self, message: &UiMessage) -> LiftedMessage {
        self.close_item();
        self.flush_outputs();
        self.flush_step_start();
        if message.metadata.is_some()
            || !message.extra.is_empty()
            || derived_role(self.items.iter()) != Some(message.role)
        {
            let own = message_fields_item(message, None);
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
    items.into_iter().find_map(item_role)
}

/// The role of the UI message that an item begins; `None` for our own bookkeeping.
pub(super) fn item_role(item: &Item) -> Option<UiRole> {
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
pub(super) fn message_fields_item(message: &UiMessage, followed_by: Option<usize>) -> Item {
    let mut raw = r#"{"type":"ctx:message""#.to_owned();
    let id = followed_by.map(|items| {
        raw.push_str(&format!(
            r#","id":{},"items":{items}"#,
            quote_json(&message.id)
        ));
        message.id.clone()
    });
    raw.push_str(&format!(r#","role":"{}""#, message.role.as_str()));
    if let Some(metadata) = &message.metadata {
        raw.push_str(&format!(r#","metadata":{}"#, metadata.get()));
    }
    if let Ok(extra) = Raw::from_value(&message.extra)
        && !message.extra.is_empty()
    {
        raw.push_str(&format!(r#","extra":{}"#, extra.get()));
    }
    raw.push('}');
    Item::Extension(Extension {
        kind: "ctx:message".to_owned(),
        id,
        raw: Raw::parse(raw).unwrap_or_else(|_| Raw::null()),
    })
}

/// Keeps fields of UI messages beside a part's own.
fn add_ui_fields(part: &mut Part, added: Extra) {
    if !added.is_empty()
        && let Some(extra) = part.extra_mut()
    {
        let mut fields = extra.wire_fields("ui");
        fields.extend(added);
        extra.set_wire_fields("ui", fields);
    }
}

fn unmapped_part_item(part: &Raw) -> Item {
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
pub(super) fn step_start_part() -> Raw {
    Raw::parse(r#"{"type":"step-start"}"#).unwrap_or_else(|_| Raw::null())
}
