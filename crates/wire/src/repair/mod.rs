//! Making a history one that a provider accepts.
//!
//! Providers refuse histories that real sessions hold: calls without outputs, outputs out of place,
//! ids used twice, thoughts whose item is gone. [`repair()`] mends a selected history just before it is
//! lowered; what is stored never changes. It is a function of its input, mends nothing twice, leaves a
//! legal history as it is, and names everything it does in an [`Issue`].
//!
//! Afterwards:
//! * every call has exactly one output, directly behind the model's step, in the order of the calls;
//! * a call nobody answered has the output [`NO_RESULT`](crate::NO_RESULT), or is gone ([`Unanswered`](crate::Unanswered));
//! * an output without a call is gone, a second output of one call is a user message in its place;
//! * a custom tool's call and output are a function's where the target knows functions only, and so is a function's call
//!   under a type that nobody knows;
//! * an item of a type that the provider would refuse is gone;
//! * call ids, those of providers' own calls among them, are unique and fit the target; ids of items are unique where the target wants that;
//! * no message is empty, or empty once the target's writer has left out what it has no words for; no
//!   call is half written, no thought stands without the item it led to;
//! * a turn of the model's that waits for its tools began with a thought where the request demands it, or
//!   [`Repaired::refuses_thinking`] says that it did not;
//! * the history begins and ends with the user where the target wants that.
//!
//! Where a provider keeps the beginning of the history ([`RepairRules::kept_beginning`]), an output without a call stays.
//!
//! Not here: which items are selected, what merges into one native message (lowering does).

mod decide;
mod ids;
mod model_turns;
mod reorder;
mod repaired;
mod tools;

use std::borrow::Cow;

use contexture_ir::{Item, Message, Part, Role, Transcript};

use crate::custom_calls::as_functions;
use crate::model::format::Format;
use crate::model::loss::{Loss, LossKind};
use crate::model::paired_item::Side;
use crate::model::repair_rules::{BEGINNING, CONTINUE, RepairRules};
use crate::silence::is_silent;
use crate::turns::side;

pub use repaired::{Issue, IssueKind, Repaired, RepairedItem};
pub use tools::{RepairedTools, forget_tool_shapes, remove_empty_tools, repair_tools};

/// Makes a history one that a provider accepts; O(n log n) in the number of items.
#[must_use]
pub fn repair<'a>(items: &[&'a Item], rules: &RepairRules) -> Repaired<'a> {
    let functions = as_functions(items.iter().copied(), rules.target, true);
    if functions.iter().all(Option::is_none) {
        return repair_functions(items, rules, Vec::new());
    }
    // First of all, so that a function's rules hold for them, and a call that nobody answered can be answered.
    let calls = functions.iter().enumerate();
    let issues = calls.filter_map(|(index, function)| {
        Some(Issue {
            kind: IssueKind::CustomCall,
            index,
            what: function.as_ref()?.what?.to_owned(),
        })
    });
    let list = items.iter().zip(&functions);
    let list: Vec<&Item> = list
        .map(|(item, own)| own.as_ref().map_or(*item, |own| &own.item))
        .collect();
    let repaired = repair_functions(&list, rules, issues.collect());
    let borrow_from_input = |entry: RepairedItem<'_>| RepairedItem {
        item: match (entry.source.and_then(|at| items.get(at)), entry.item) {
            (Some(item), Cow::Borrowed(own)) if std::ptr::eq(*item, own) => Cow::Borrowed(*item),
            (_, own) => Cow::Owned(own.into_owned()),
        },
        source: entry.source,
        call_id: entry.call_id,
    };
    Repaired {
        items: repaired.items.into_iter().map(borrow_from_input).collect(),
        issues: repaired.issues,
        refuses_thinking: repaired.refuses_thinking,
    }
}

/// Repairs a history whose calls the target knows; `issues` are what was done to it already.
fn repair_functions<'a>(
    items: &[&'a Item],
    rules: &RepairRules,
    mut issues: Vec<Issue>,
) -> Repaired<'a> {
    // Order matters: ids are made unique only among the items that stay, in their final order, and
    // the ends are judged last.
    let mut settled = reorder::decide_and_order(items, rules, &mut issues);
    let refuses_thinking = model_turns::settle_model_turns(&mut settled, rules, &mut issues);
    ids::rewrite_call_ids(&mut settled, rules, &mut issues);
    let mut items_out: Vec<RepairedItem<'a>> =
        settled.into_iter().map(|placed| placed.item).collect();
    ensure_user_ends(&mut items_out, items.len(), rules, &mut issues);
    // Stable: issues of one item stay in the order they were found.
    issues.sort_by_key(|issue: &Issue| issue.index);
    Repaired {
        items: items_out,
        issues,
        refuses_thinking,
    }
}

/// Takes the thinking out of a request whose history refuses it ([`Repaired::refuses_thinking`]), and returns what is
/// lost.
pub fn remove_thinking(target: Format, request: &mut Transcript) -> Loss {
    target.spec().remove_thinking(request);
    Loss {
        path: "options.reasoning".to_owned(),
        what: LossKind::Option,
        why: "the model called tools without a thought; until the round ends it does not think"
            .into(),
    }
}

/// A message of the user before and after a history that wants one.
fn ensure_user_ends(
    items: &mut Vec<RepairedItem<'_>>,
    length: usize,
    rules: &RepairRules,
    issues: &mut Vec<Issue>,
) {
    let speaks = |item: &&RepairedItem<'_>| {
        side(&item.item, rules.target).is_some() && !is_silent(&item.item, rules.target)
    };
    if rules.user_first
        && !items
            .iter()
            .find(speaks)
            .is_some_and(|item| is_user_opening(&item.item, rules.target))
    {
        issues.push(Issue::no_beginning());
        items.insert(
            0,
            RepairedItem::placeholder(Message::text(Role::User, BEGINNING)),
        );
    }
    let Some(last) = items.iter_mut().rfind(|item| speaks(&&**item)) else {
        return;
    };
    if side(&last.item, rules.target) != Some(Side::Model) {
        return;
    }
    if rules.prefill {
        trim_begun_answer(last, issues);
    }
    if rules.user_last {
        issues.push(Issue::no_end(length));
        items.push(RepairedItem::placeholder(Message::text(
            Role::User,
            CONTINUE,
        )));
    }
}

/// Takes away the white space that a begun answer ends with.
fn trim_begun_answer(last: &mut RepairedItem<'_>, issues: &mut Vec<Issue>) {
    let ends_blank = match &*last.item {
        Item::Message(message) => message
            .content
            .last()
            .and_then(Part::as_text)
            .is_some_and(|text| text.ends_with(char::is_whitespace)),
        _ => false,
    };
    let (true, Some(index)) = (ends_blank, last.source) else {
        return;
    };
    if let Item::Message(message) = last.item.to_mut() {
        // A part of nothing but white space is not written, so the part before it is then the end.
        for part in message.content.iter_mut().rev() {
            let (Part::InputText(text) | Part::OutputText(text)) = part else {
                break;
            };
            text.text.truncate(text.text.trim_end().len());
            if !text.text.is_empty() {
                break;
            }
        }
    }
    issues.push(Issue {
        kind: IssueKind::BlankEnd,
        index,
        what: "a begun answer that ends with white space; written without it".to_owned(),
    });
}

/// Whether an item that says something is, for every target, a message of the user.
fn is_user_opening(item: &Item, target: Format) -> bool {
    match item {
        Item::Message(message) => message.role == Role::User,
        Item::Compaction(_) => side(item, target) == Some(Side::User),
        _ => false,
    }
}
