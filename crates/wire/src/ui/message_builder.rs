//! One UI message while it is put together: its parts in order, calls still waiting for answers.

use contexture_ir::{
    Extra, Item, Message, Part, Raw, ResponseId, Role, UiMessage, UiRole, quote_json,
};

use super::lift::{STEERING, STEP, step_start_part};
use super::text::IsRefusal;
use super::tool::ToolDraft;
use super::ui_only_fields::as_flag;
use super::unknown_fields::{UnknownFields, restore_noted, restore_unknown};
use super::{media, text};

/// A message being put together.
#[derive(Debug, Default)]
pub(super) struct UiMessageBuilder<'a> {
    pub(super) id: Option<&'a str>,
    /// Set by its own fields; otherwise by its first item.
    pub(super) role: Option<UiRole>,
    pub(super) metadata: Option<Raw>,
    pub(super) extra: Extra,
    unknown: UnknownFields,
    pub(super) explicit: bool,
    pub(super) slots: Vec<PartSlot<'a>>,
    sources: usize,
    /// Whether an output follows what the model said last.
    pub(super) boundary: bool,
    response: Option<ResponseId>,
}

/// A part, or a call that becomes one.
#[derive(Debug)]
pub(super) enum PartSlot<'a> {
    Part(Raw),
    Tool(Box<ToolDraft<'a>>),
}

impl<'a> UiMessageBuilder<'a> {
    pub(super) fn new(id: Option<&'a str>, unknown: UnknownFields) -> Self {
        Self {
            id,
            unknown,
            ..Self::default()
        }
    }

    /// Begins a step before an item, where one begins.
    pub(super) fn begin_step(&mut self, response: Option<ResponseId>, hints: &Extra) {
        let changed = match (self.response, response) {
            (Some(before), Some(now)) => before != now,
            _ => false,
        };
        let hinted = hints.get(STEP).and_then(as_flag);
        let begins = hinted.unwrap_or(self.boundary || changed);
        if begins {
            self.slots.push(PartSlot::Part(step_start_part()));
        }
        self.boundary = false;
        self.response = response.or(self.response);
    }

    pub(super) fn push_message(&mut self, message: &Message, shows: &dyn Fn(&str) -> bool) {
        let assistant = message.role == Role::Assistant;
        let id = message.id.as_deref().filter(|_| assistant);
        for part in &message.content {
            let folded = match part {
                Part::InputImage(image) => media::fold_image(image),
                Part::InputFile(file) => media::fold_file(file),
                Part::Extension(other) if shows(&other.kind) => {
                    data_part_of_kind(&other.kind, None, &other.raw)
                }
                Part::Extension(_) => continue,
                Part::Refusal(text) => text::fold_text(text, message.status, id, IsRefusal::Yes),
                Part::InputText(text)
                | Part::OutputText(text)
                | Part::SummaryText(text)
                | Part::ReasoningText(text) => {
                    let folded = text::fold_text(text, message.status, id, IsRefusal::No);
                    let folded = restore_unknown(folded, Some(&text.extra), self.unknown);
                    self.slots.push(PartSlot::Part(folded));
                    let sources = text::source_parts(text, self.sources + 1);
                    self.sources += sources.len();
                    self.slots.extend(sources.into_iter().map(PartSlot::Part));
                    continue;
                }
            };
            let folded = restore_unknown(folded, part.extra(), self.unknown);
            self.slots.push(PartSlot::Part(folded));
        }
    }

    pub(super) fn finish(self, role: UiRole, index: usize) -> UiMessage {
        let parts = self.slots.into_iter().map(|slot| match slot {
            PartSlot::Part(part) => part,
            PartSlot::Tool(draft) => restore_noted(draft.fold_part(), &draft.hints, self.unknown),
        });
        UiMessage {
            id: self
                .id
                .map_or_else(|| format!("msg-{index}"), str::to_owned),
            role,
            metadata: self.metadata,
            parts: parts.collect(),
            extra: self.extra,
        }
    }
}

/// A person's message inside the model's: what came while it worked.
pub(super) fn steering_part(message: &Message, hints: &Extra, unknown: UnknownFields) -> Raw {
    let parts = message.content.iter().filter_map(|part| match part {
        Part::InputImage(image) => Some(media::fold_image(image)),
        Part::InputFile(file) => Some(media::fold_file(file)),
        Part::Refusal(text) => Some(text::fold_text(text, None, None, text::IsRefusal::Yes)),
        Part::InputText(text) | Part::OutputText(text) => {
            Some(text::fold_text(text, None, None, text::IsRefusal::No))
        }
        _ => None,
    });
    let parts: Vec<Raw> = parts.collect();
    let parts = Raw::from_value(&parts).unwrap_or_else(|_| Raw::null());
    let id = match hints.get(STEERING) {
        Some(id) => id.clone(),
        None => Raw::string(message.id.as_deref().unwrap_or_default()),
    };
    let json = format!(
        r#"{{"type":"steering-message","id":{},"parts":{}}}"#,
        id.get(),
        parts.get()
    );
    let folded = Raw::parse(json).unwrap_or_else(|_| Raw::null());
    restore_noted(folded, hints, unknown)
}

/// An item that UI messages have no part for, as data.
pub(super) fn data_part(item: &Item) -> Raw {
    let json = Raw::parse(item.to_json()).unwrap_or_else(|_| Raw::null());
    data_part_of_kind(item.kind(), item.id(), &json)
}

fn data_part_of_kind(kind: &str, id: Option<&str>, value: &Raw) -> Raw {
    let id = id
        .map(|id| format!(r#""id":{},"#, quote_json(id)))
        .unwrap_or_default();
    let name = quote_json(&format!("data-{}", kind.replace([':', '_'], "-")));
    Raw::parse(format!(r#"{{"type":{name},{id}"data":{}}}"#, value.get()))
        .unwrap_or_else(|_| Raw::null())
}
