//! What repair gives back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use contexture_ir::{FunctionCall, FunctionCallOutput, Item};

use crate::model::call_ids::with_call_id;
use crate::model::paired_item::PairedItem;

/// A history a provider accepts, and what was done to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired<'a> {
    /// The items, in order.
    pub items: Vec<RepairedItem<'a>>,
    /// What was done, in the order of the items concerned.
    pub issues: Vec<Issue>,
    /// Whether the history is accepted only by a request that does not have its model think: an open round of tools did
    /// not begin with a thought.
    pub refuses_thinking: bool,
}

/// An item of a repaired history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedItem<'a> {
    /// The item: borrowed unless it was changed or made up.
    pub item: Cow<'a, Item>,
    /// Its index in the input; `None` for an item that was made up.
    pub source: Option<usize>,
    /// The call id to write instead of the item's own.
    pub call_id: Option<String>,
}

/// Something that was done to a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// What was wrong.
    pub kind: IssueKind,
    /// The index of the item concerned in the input; the length of the input for its end.
    pub index: usize,
    /// What was wrong and what was done, in a sentence fragment without a full stop.
    pub what: String,
}

impl Issue {
    /// Returns the issue of a history that was given a beginning, as the target demands that the user speaks first.
    #[must_use]
    pub fn no_beginning() -> Self {
        Self {
            kind: IssueKind::NoBeginning,
            index: 0,
            what: "the history does not begin with the user; a placeholder was put before it"
                .to_owned(),
        }
    }

    /// Returns the issue of a history of so many items that was given an end, as the target demands that the user speaks
    /// last.
    #[must_use]
    pub fn no_end(items: usize) -> Self {
        Self {
            kind: IssueKind::NoEnd,
            index: items,
            what: "the history ends with the model; a placeholder was put behind it".to_owned(),
        }
    }
}

/// The kinds of issues, a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IssueKind {
    /// A call without an output.
    UnansweredCall,
    /// An output without a call.
    OrphanOutput,
    /// A second output of one call.
    LateOutput,
    /// An output that did not stand behind its call.
    MisplacedOutput,
    /// A call of a kind that the target does not know, written as a function's.
    CustomCall,
    /// A call id that is used twice, or that the target refuses.
    CallId,
    /// An item's id that is used twice.
    ItemId,
    /// A thought without the item it led to.
    DanglingReasoning,
    /// An item that was never finished.
    Unfinished,
    /// A message that says nothing.
    EmptyMessage,
    /// An item that the target refuses as it is.
    RefusedItem,
    /// A field of an item that the target refuses.
    RefusedField,
    /// A text behind the calls of its turn, where it separates them from their outputs.
    MisplacedText,
    /// A call in a further message of the model's.
    SplitTurn,
    /// A thought that does not lead its turn.
    MisplacedThought,
    /// A thought in a begun answer, of a request that has its model think nothing.
    RefusedThought,
    /// A begun answer that ends with white space.
    BlankEnd,
    /// A history that does not begin with the user.
    NoBeginning,
    /// A history that does not end with the user.
    NoEnd,
}

impl IssueKind {
    /// All kinds, in the order of the variants.
    pub const ALL: [Self; 19] = [
        Self::UnansweredCall,
        Self::OrphanOutput,
        Self::LateOutput,
        Self::MisplacedOutput,
        Self::CustomCall,
        Self::CallId,
        Self::ItemId,
        Self::DanglingReasoning,
        Self::Unfinished,
        Self::EmptyMessage,
        Self::RefusedItem,
        Self::RefusedField,
        Self::MisplacedText,
        Self::SplitTurn,
        Self::MisplacedThought,
        Self::RefusedThought,
        Self::BlankEnd,
        Self::NoBeginning,
        Self::NoEnd,
    ];

    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnansweredCall => "unanswered_call",
            Self::OrphanOutput => "orphan_output",
            Self::LateOutput => "late_output",
            Self::MisplacedOutput => "misplaced_output",
            Self::CustomCall => "custom_call",
            Self::CallId => "call_id",
            Self::ItemId => "item_id",
            Self::DanglingReasoning => "dangling_reasoning",
            Self::Unfinished => "unfinished",
            Self::EmptyMessage => "empty_message",
            Self::RefusedItem => "refused_item",
            Self::RefusedField => "refused_field",
            Self::MisplacedText => "misplaced_text",
            Self::SplitTurn => "split_turn",
            Self::MisplacedThought => "misplaced_thought",
            Self::RefusedThought => "refused_thought",
            Self::BlankEnd => "blank_end",
            Self::NoBeginning => "no_beginning",
            Self::NoEnd => "no_end",
        }
    }
}

impl<'a> RepairedItem<'a> {
    pub(super) fn from_source(item: &'a Item, source: usize) -> Self {
        Self {
            item: Cow::Borrowed(item),
            source: Some(source),
            call_id: None,
        }
    }

    pub(super) fn placeholder(item: impl Into<Item>) -> Self {
        Self {
            item: Cow::Owned(item.into()),
            source: None,
            call_id: None,
        }
    }

    /// Has the item written under another call id.
    pub(super) fn set_call_id(&mut self, id: &str) {
        match &*self.item {
            // Writers take its bytes as they are.
            Item::Extension(own) => {
                if let Some(own) = with_call_id(own, id) {
                    self.item = Cow::Owned(Item::Extension(own));
                }
            }
            _ => self.call_id = Some(id.to_owned()),
        }
    }

    /// The item with the call id to write.
    #[must_use]
    pub(crate) fn into_item(self) -> Item {
        let mut item = self.item.into_owned();
        if let Some(id) = self.call_id {
            match &mut item {
                Item::FunctionCall(FunctionCall { call_id, .. })
                | Item::FunctionCallOutput(FunctionCallOutput { call_id, .. }) => *call_id = id,
                _ => {}
            }
        }
        item
    }
}

impl Repaired<'_> {
    /// The items as lowering wants them, outputs knowing their function's name.
    #[must_use]
    pub fn paired_items(&self) -> Vec<PairedItem<'_>> {
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        let mut entries = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let mut entry = PairedItem {
                call_id: item.call_id.as_deref(),
                ..PairedItem::new(&item.item)
            };
            match &*item.item {
                Item::FunctionCall(call) => {
                    names.insert(entry.call_id(), &call.name);
                }
                Item::FunctionCallOutput(_) => entry.function = names.get(entry.call_id()).copied(),
                _ => {}
            }
            entries.push(entry);
        }
        entries
    }

    /// The items by value, with the call ids to write.
    #[must_use]
    pub fn into_items(self) -> Vec<Item> {
        self.items
            .into_iter()
            .map(RepairedItem::into_item)
            .collect()
    }
}
