//! Items to UI messages.
//!
//! Items of one message id are one message. Without ids, the longest run of the model's items is one
//! message, each message of a person or the host one. Outputs and approvals join the part of their
//! call wherever they stand. Between two steps stands a `step-start`: where the response changes, or
//! where the model speaks after an output. Each item is looked at once.

use std::collections::BTreeMap;

use contexture_ir::{
    Audience, Extension, Fields, FunctionCallOutput, Item, Raw, ResponseId, UiMessage, UiRole,
};

use super::lift::item_role;
use super::message_builder::{PartSlot, UiMessageBuilder, data_part, steering_part};
use super::tool::{ToolDraft, is_provider_executed};
use super::ui_only_fields::part_hints;
use super::unknown_fields::{UnknownFields, restore_unknown};
use super::validate_part::{check_part, decode_string};
use super::{compaction, reasoning};
use crate::model::paired_item::partner_indices;

/// An item with what its store knows about it.
#[derive(Clone, Copy, Debug)]
pub struct FoldItem<'a> {
    /// The item to fold.
    pub item: &'a Item,
    /// The message it belongs to, if known.
    pub message_id: Option<&'a str>,
    /// The model call that made it, if known.
    pub response: Option<ResponseId>,
    /// For an output: the index of the call it answers among the items, if known. Otherwise it
    /// answers the nearest call before it with its call id that is still unanswered.
    pub answers: Option<usize>,
    /// Who may see it.
    pub audience: Audience,
}

impl<'a> FoldItem<'a> {
    /// Wraps an item about which nothing else is known and which everyone may see.
    #[must_use]
    pub const fn new(item: &'a Item) -> Self {
        Self {
            item,
            message_id: None,
            response: None,
            answers: None,
            audience: Audience::ALL,
        }
    }
}

/// The audience for which items are folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FoldAudience {
    /// People: items that they may see.
    #[default]
    User,
    /// Models: items that they may see.
    Model,
    /// Everyone: all items, whoever may see them.
    Everyone,
}

/// Which extension items become `data-…` parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extensions<'a> {
    /// No extension items.
    #[default]
    Hidden,
    /// Extension items of these types.
    Listed(&'a [&'a str]),
    /// All extension items but Contexture's own bookkeeping (`ctx:…`).
    Shown,
}

/// How items become messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldOptions<'a> {
    /// The audience of the messages; default: people.
    pub audience: FoldAudience,
    /// Whether system messages are included; default: no.
    pub include_system: bool,
    /// Which extension items, compactions and outputs without a call are shown; default: none.
    pub extensions: Extensions<'a>,
    /// Whether fields that the AI SDK does not know are there; default: no.
    pub unknown_fields: UnknownFields,
}

/// Folds items, in path order, into UI messages; every one of them passes [`super::validate`].
///
/// ```
/// use contexture_ir::{Item, Message, Role};
/// use contexture_wire::ui::{FoldItem, FoldOptions, fold};
/// let item = Item::from(Message::text(Role::User, "hello"));
/// let messages = fold(&[FoldItem::new(&item)], &FoldOptions::default());
/// assert_eq!(messages[0].joined_text(), "hello");
/// ```
#[must_use]
pub fn fold(items: &[FoldItem<'_>], options: &FoldOptions<'_>) -> Vec<UiMessage> {
    let partners = answered_calls(items);
    let mut folder = Folder::new(*options);
    for (index, item) in items.iter().enumerate() {
        let partner = partners.get(index).copied().flatten();
        folder.push(&FoldItem {
            answers: item.answers.or(partner),
            ..*item
        });
    }
    folder.finish()
}

/// A message id in a map of many: its end, in which ids differ most, is compared before the whole.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IdKey<'a>(u64, &'a str);

impl<'a> IdKey<'a> {
    fn from_id(id: &'a str) -> Self {
        // Ids of one store begin alike; comparing from the front would touch most bytes of both.
        let end = id.as_bytes().last_chunk::<8>();
        Self(end.map_or(0, |end| u64::from_be_bytes(*end)), id)
    }
}

/// Returns the index of each item's partner, see [`partner_indices`]; empty if every output already names its call.
fn answered_calls(items: &[FoldItem<'_>]) -> Vec<Option<usize>> {
    let open = |item: &FoldItem<'_>| {
        matches!(item.item, Item::FunctionCallOutput(_)) && item.answers.is_none()
    };
    // Pairing costs a pass over the path; stores that name the calls spare it.
    if items.iter().any(open) {
        partner_indices(items.iter().map(|item| item.item))
    } else {
        Vec::new()
    }
}

/// [`fold`] piece by piece, for a path that is still being read.
///
/// An output whose call is not named answers the latest call of its id, if that is unanswered.
/// [`fold`], which sees all items at once, also knows which of several calls of one id in one step
/// is meant.
#[derive(Debug)]
pub struct Folder<'a, 'o> {
    options: FoldOptions<'o>,
    /// The number of items taken so far.
    count: usize,
    groups: Vec<UiMessageBuilder<'a>>,
    by_id: BTreeMap<IdKey<'a>, usize>,
    /// Where each call's part is, by the call's index.
    calls: BTreeMap<usize, (usize, usize)>,
    /// The same of the latest call of an id, for approvals.
    last_call: BTreeMap<&'a str, (usize, usize)>,
    current: Option<usize>,
    /// How many of the next items belong to the current message, as its own fields said.
    announced: usize,
}

impl<'a, 'o> Folder<'a, 'o> {
    /// Creates a folder that has taken no item yet.
    #[must_use]
    pub const fn new(options: FoldOptions<'o>) -> Self {
        Self {
            options,
            count: 0,
            groups: Vec::new(),
            by_id: BTreeMap::new(),
            calls: BTreeMap::new(),
            last_call: BTreeMap::new(),
            current: None,
            announced: 0,
        }
    }

    /// Takes the path's next item.
    pub fn push(&mut self, entry: &FoldItem<'a>) {
        let index = self.count;
        self.count += 1;
        match entry.item {
            Item::Extension(extension) if extension.kind.starts_with("ctx:") => {
                self.apply_bookkeeping(entry, extension);
            }
            item if self.is_hidden(entry) => {
                // An unseen item still ends a run of the other side.
                // Otherwise two answers around an unseen question would become one message.
                if entry.message_id.is_none() && item_role(item) != Some(UiRole::Assistant) {
                    self.current = None;
                }
            }
            Item::FunctionCallOutput(output) => self.push_output(entry, output),
            _ => {
                let group = self.locate_message(entry, true);
                self.push_content(index, group, entry);
            }
        }
        if !matches!(entry.item, Item::Extension(e) if e.kind == "ctx:message") {
            self.announced = self.announced.saturating_sub(1);
        }
    }

    fn is_hidden(&self, entry: &FoldItem<'_>) -> bool {
        match self.options.audience {
            FoldAudience::User => !entry.audience.user,
            FoldAudience::Model => !entry.audience.model,
            FoldAudience::Everyone => false,
        }
    }

    /// Returns the index of the message an item belongs to; `speaks` if the item has content of its own.
    fn locate_message(&mut self, entry: &FoldItem<'a>, speaks: bool) -> usize {
        if let Some(id) = entry.message_id {
            return self.message_with_id(id);
        }
        if let Some(current) = self.current
            && let Some(group) = self.groups.get(current)
        {
            let role = item_role(entry.item);
            let continues =
                role == Some(UiRole::Assistant) && group.role == Some(UiRole::Assistant);
            if self.announced > 0 || !speaks || (group.id.is_none() && continues) {
                return current;
            }
        }
        self.open_message(None)
    }

    fn message_with_id(&mut self, id: &'a str) -> usize {
        if let Some(current) = self.current
            && self
                .groups
                .get(current)
                .is_some_and(|group| group.id == Some(id))
        {
            return current;
        }
        // Another message begins, so the rest of an announcement no longer counts.
        self.announced = 0;
        let next = self.groups.len();
        let known = *self.by_id.entry(IdKey::from_id(id)).or_insert(next);
        if known == next {
            let unknown = self.options.unknown_fields;
            self.groups.push(UiMessageBuilder::new(Some(id), unknown));
        }
        self.current = Some(known);
        known
    }

    fn open_message(&mut self, id: Option<&'a str>) -> usize {
        let unknown = self.options.unknown_fields;
        self.groups.push(UiMessageBuilder::new(id, unknown));
        let index = self.groups.len() - 1;
        self.current = Some(index);
        index
    }

    /// Applies an item of Contexture's own bookkeeping.
    fn apply_bookkeeping(&mut self, entry: &FoldItem<'a>, extension: &'a Extension) {
        let Some(fields) = extension.raw.fields() else {
            return;
        };
        match extension.kind.as_str() {
            "ctx:message" => self.apply_message_fields(entry, extension, &fields),
            "ctx:approval" => {
                let id = fields
                    .get(&["call_id"])
                    .map(|raw| decode_string(raw.get()).0);
                let at = id.and_then(|id| self.last_call.get(&*id).copied());
                if let Some(draft) = at.and_then(|at| self.tool_draft_mut(at)) {
                    draft.approval = Some(&extension.raw);
                }
            }
            "ctx:part" => {
                let part = fields
                    .get(&["part"])
                    .and_then(|raw| Some((raw, Fields::parse(raw.get()).ok()?)));
                let Some((original, Ok(part))) = part.map(|(raw, part)| (raw, check_part(part)))
                else {
                    return;
                };
                let folded = match self.options.unknown_fields {
                    UnknownFields::Kept if !part.members.dropped.is_empty() => Raw::from(original),
                    _ => part.to_raw(),
                };
                let group = self.locate_message(entry, false);
                if let Some(group) = self.groups.get_mut(group) {
                    if part.type_name == "step-start" {
                        group.boundary = false;
                    }
                    group.explicit = true;
                    group.slots.push(PartSlot::Part(folded));
                }
            }
            _ => {}
        }
    }

    fn apply_message_fields(
        &mut self,
        entry: &FoldItem<'a>,
        extension: &'a Extension,
        fields: &Fields<'_>,
    ) {
        let group = match (entry.message_id, extension.id.as_deref()) {
            (Some(id), _) => self.message_with_id(id),
            (None, Some(id)) => {
                let items = fields.get(&["items"]).map(|raw| raw.get().parse());
                self.announced = items.and_then(Result::ok).unwrap_or(0);
                self.open_message(Some(id))
            }
            (None, None) => self.locate_message(entry, false),
        };
        let Some(group) = self.groups.get_mut(group) else {
            return;
        };
        group.explicit = true;
        if let Some(raw) = fields.get(&["role"]) {
            group.role = UiRole::from_wire(raw.get().trim_matches('"')).or(group.role);
        }
        if let Some(metadata) = fields.get(&["metadata"]) {
            group.metadata = Some(Raw::from(metadata));
        }
        if self.options.unknown_fields == UnknownFields::Kept
            && let Some(extra) = fields.get(&["extra"])
            && let Ok(extra) = Fields::parse(extra.get())
        {
            group.extra = extra.into_extra();
        }
    }

    fn tool_draft_mut(&mut self, at: (usize, usize)) -> Option<&mut ToolDraft<'a>> {
        match self.groups.get_mut(at.0)?.slots.get_mut(at.1)? {
            PartSlot::Tool(draft) => Some(draft),
            PartSlot::Part(_) => None,
        }
    }

    fn push_output(&mut self, entry: &FoldItem<'a>, output: &'a FunctionCallOutput) {
        let at = match entry.answers {
            Some(call) => self.calls.get(&call).copied(),
            None => self.last_call.get(&*output.call_id).copied(),
        };
        if let Some(at) = at
            && let Some(draft) = self.tool_draft_mut(at)
            && draft.output.is_none()
        {
            draft.output = Some(output);
            // A provider's own tool answers within the step; only a host's output ends it.
            let inside = is_provider_executed(&draft.hints);
            if let Some(group) = self.groups.get_mut(at.0) {
                group.boundary |= !inside;
            }
        } else if is_kind_visible(&self.options, "function_call_output") {
            let group = self.locate_message(entry, true);
            self.add_part(group, UiRole::Assistant, data_part(entry.item));
        }
    }

    fn add_part(&mut self, group: usize, role: UiRole, part: Raw) {
        if let Some(group) = self.groups.get_mut(group) {
            group.role.get_or_insert(role);
            group.slots.push(PartSlot::Part(part));
        }
    }

    /// Adds an item with content of its own to its message.
    fn push_content(&mut self, index: usize, at: usize, entry: &FoldItem<'a>) {
        let Some(group) = self.groups.get_mut(at) else {
            return;
        };
        let role = item_role(entry.item).unwrap_or(UiRole::Assistant);
        let own_role = *group.role.get_or_insert(role);
        let unknown = self.options.unknown_fields;
        match entry.item {
            Item::Message(message) => {
                let hints = part_hints(&message.extra);
                if own_role == UiRole::Assistant && role == UiRole::User {
                    group
                        .slots
                        .push(PartSlot::Part(steering_part(message, &hints, unknown)));
                    return;
                }
                if own_role == UiRole::Assistant && role == UiRole::System {
                    return;
                }
                group.begin_step(entry.response, &hints);
                let shows = |kind: &str| is_kind_visible(&self.options, kind);
                group.push_message(message, &shows);
            }
            Item::FunctionCall(call) => {
                let hints = part_hints(&call.extra);
                group.begin_step(entry.response, &hints);
                let slot = (at, group.slots.len());
                group.slots.push(PartSlot::Tool(Box::new(ToolDraft {
                    call,
                    hints,
                    approval: None,
                    output: None,
                })));
                self.calls.insert(index, slot);
                self.last_call.insert(&call.call_id, slot);
            }
            Item::Reasoning(item) => {
                let hints = part_hints(&item.extra);
                group.begin_step(entry.response, &hints);
                let parts = reasoning::fold_reasoning(item, &hints, unknown);
                group.slots.extend(parts.into_iter().map(PartSlot::Part));
            }
            Item::Compaction(_) | Item::Extension(_) => {
                if let Item::Compaction(item) = entry.item
                    && let Some(part) = compaction::compaction_part(item)
                {
                    let part = restore_unknown(part, Some(&item.extra), unknown);
                    group.slots.push(PartSlot::Part(part));
                } else if is_kind_visible(&self.options, entry.item.kind()) {
                    group.slots.push(PartSlot::Part(data_part(entry.item)));
                }
            }
            Item::FunctionCallOutput(_) => {}
        }
    }

    /// Returns the messages in the order in which they begin.
    #[must_use]
    pub fn finish(self) -> Vec<UiMessage> {
        let include_system = self.options.include_system;
        let messages = self
            .groups
            .into_iter()
            .enumerate()
            .filter_map(|(index, group)| {
                let role = group.role.unwrap_or(UiRole::Assistant);
                let shown = match role {
                    UiRole::System => include_system && !group.slots.is_empty(),
                    UiRole::User => !group.slots.is_empty(),
                    UiRole::Assistant => group.explicit || !group.slots.is_empty(),
                };
                shown.then(|| group.finish(role, index))
            });
        messages.collect()
    }
}

fn is_kind_visible(options: &FoldOptions<'_>, kind: &str) -> bool {
    match options.extensions {
        Extensions::Hidden => false,
        Extensions::Listed(kinds) => kinds.contains(&kind),
        Extensions::Shown => true,
    }
}
