//! Making a history one that a provider accepts.
//!
//! Providers refuse histories that real sessions hold: calls without outputs, outputs out of place,
//! ids used twice, thoughts whose item is gone. [`repair`] mends a selected history just before it is
//! lowered; what is stored never changes. It is a function of its input, mends nothing twice, leaves a
//! legal history as it is, and names everything it does in an [`Issue`].
//!
//! Afterwards:
//! * every call has exactly one output, directly behind the model's step, in the order of the calls;
//! * a call nobody answered has the output [`NO_RESULT`], or is gone ([`Unanswered`]);
//! * an output without a call is gone, a second output of one call is a user message in its place;
//! * call ids are unique and fit the target; ids of items are unique where the target wants that;
//! * no message is empty, no call is half written, no thought stands without the item it led to;
//! * the history begins and ends with the user where the target wants that.
//!
//! Not here: which items are selected, what merges into one native message (lowering does), histories
//! whose beginning a provider keeps (`previous_response_id`): their outputs look like orphans.

mod ids;
mod rules;
mod settle;

use std::borrow::Cow;
use std::collections::BTreeMap;

use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Part, Role};

use crate::entry::{Entry, Side, side};

pub use rules::{CallIds, Charset, RepairRules, Unanswered};

/// The output of a call that nobody answered.
pub const NO_RESULT: &str = "[No tool result available]";
/// The user message before a history that begins with the model.
pub const BEGINNING: &str = "[The conversation begins here.]";
/// The user message after a history that ends with the model.
pub const CONTINUE: &str = "[Continue.]";

/// A history a provider accepts, and what was done to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired<'a> {
    /// The items, in order.
    pub items: Vec<RepairedItem<'a>>,
    /// What was done, in the order of the items concerned.
    pub issues: Vec<Issue>,
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
    /// A history that does not begin with the user.
    NoBeginning,
    /// A history that does not end with the user.
    NoEnd,
}

impl IssueKind {
    /// The word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UnansweredCall => "unanswered_call",
            Self::OrphanOutput => "orphan_output",
            Self::LateOutput => "late_output",
            Self::MisplacedOutput => "misplaced_output",
            Self::CallId => "call_id",
            Self::ItemId => "item_id",
            Self::DanglingReasoning => "dangling_reasoning",
            Self::Unfinished => "unfinished",
            Self::EmptyMessage => "empty_message",
            Self::NoBeginning => "no_beginning",
            Self::NoEnd => "no_end",
        }
    }
}

impl<'a> RepairedItem<'a> {
    fn kept(item: &'a Item, source: usize) -> Self {
        Self {
            item: Cow::Borrowed(item),
            source: Some(source),
            call_id: None,
        }
    }

    fn made_up(item: impl Into<Item>) -> Self {
        Self {
            item: Cow::Owned(item.into()),
            source: None,
            call_id: None,
        }
    }

    /// The item with the call id to write.
    #[must_use]
    pub fn into_item(self) -> Item {
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
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        let mut entries = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let mut entry = Entry {
                call_id: item.call_id.as_deref(),
                ..Entry::new(&item.item)
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

/// Makes a history one that a provider accepts; O(n log n) in the number of items.
#[must_use]
pub fn repair<'a>(items: &[&'a Item], rules: &RepairRules) -> Repaired<'a> {
    let mut issues = Vec::new();
    let mut settled = settle::settle(items, rules, &mut issues);
    ids::rewrite(&mut settled, rules, &mut issues);
    let mut items_out: Vec<RepairedItem<'a>> =
        settled.into_iter().map(|placed| placed.item).collect();
    close_ends(&mut items_out, items.len(), rules, &mut issues);
    issues.sort_by_key(|issue: &Issue| issue.index);
    Repaired {
        items: items_out,
        issues,
    }
}

/// A message of the user before and after a history that wants one.
fn close_ends(
    items: &mut Vec<RepairedItem<'_>>,
    length: usize,
    rules: &RepairRules,
    issues: &mut Vec<Issue>,
) {
    let speaks = |item: &&RepairedItem<'_>| side(&item.item).is_some();
    if rules.user_first
        && !items
            .iter()
            .find(speaks)
            .is_some_and(|item| opens(&item.item))
    {
        issues.push(Issue {
            kind: IssueKind::NoBeginning,
            index: 0,
            what: "the history does not begin with the user; a placeholder was put before it"
                .into(),
        });
        items.insert(
            0,
            RepairedItem::made_up(Message::text(Role::User, BEGINNING)),
        );
    }
    let last = items.iter().rfind(speaks).and_then(|item| side(&item.item));
    if rules.user_last && last == Some(Side::Model) {
        issues.push(Issue {
            kind: IssueKind::NoEnd,
            index: length,
            what: "the history ends with the model; a placeholder was put behind it".into(),
        });
        items.push(RepairedItem::made_up(Message::text(Role::User, CONTINUE)));
    }
}

/// Whether an item is, for every target, a message of the user.
fn opens(item: &Item) -> bool {
    match item {
        Item::Message(message) => message.role == Role::User,
        Item::Compaction(compaction) => {
            let says = compaction
                .summary
                .iter()
                .any(|part| part.as_text().is_some_and(|text| !text.is_empty()));
            says && side(item) == Some(Side::User)
        }
        _ => false,
    }
}

/// What a later output of an answered call becomes.
fn late_message(output: &FunctionCallOutput, function: &str) -> Message {
    let mut message = Message::text(
        Role::User,
        format!("[A later result of `{function}`, call {}:]", output.call_id),
    );
    match &output.output {
        Output::Text(text) => message.content.push(Part::input_text(text.clone())),
        Output::Parts(parts) => message.content.extend(parts.iter().cloned()),
    }
    message
}
