//! The order of what the model says within its turn, and its thoughts, as far as the request's thinking demands or
//! forbids them.
//!
//! All of it concerns formats that write one message for a whole turn; elsewhere nothing is moved.

use std::ops::Range;

use contexture_ir::Item;

use super::reorder::{OrderedItem, begins_message};
use super::repaired::{Issue, IssueKind};
use crate::model::call_ids::{CallSide, call_side};
use crate::model::format::Format;
use crate::model::format_extras::START;
use crate::model::paired_item::Side;
use crate::model::repair_rules::{RepairRules, Thinking};
use crate::silence::is_silent;
use crate::turns::spoken_side;

/// Puts the model's turns in order, and returns whether the history refuses a request that has its model think.
pub(super) fn settle_model_turns(
    items: &mut Vec<OrderedItem<'_>>,
    rules: &RepairRules,
    issues: &mut Vec<Issue>,
) -> bool {
    let target = rules.target;
    if target.spec().structure().merged_parts.is_some() {
        join_split_turns(items, target, issues);
    }
    if target.spec().structure().alternating_turns {
        join_neighbours(items, target, issues);
    }
    if rules.calls_open_turns {
        join_calling_turns(items, target, issues);
    }
    match rules.thinking {
        Thinking::Budgeted => !open_round_begins_with_thought(items, target, issues),
        Thinking::Off if rules.prefill => {
            drop_begun_thoughts(items, target, issues);
            false
        }
        Thinking::Off | Thinking::Adaptive => false,
    }
}

/// Makes one message of those of one side that came in a row, where the provider refuses that.
fn join_neighbours(items: &mut [OrderedItem<'_>], target: Format, issues: &mut Vec<Issue>) {
    let mut before = None;
    for element in items {
        let own = spoken_side(&element.item.item, target);
        if own.is_some() && own == before && begins_message(&element.item.item, target) {
            unmark(element, target);
            issues.extend(element.item.source.map(|index| Issue {
                kind: IssueKind::SplitTurn,
                index,
                what: "a further message of the same side; written in one with it".to_owned(),
            }));
        }
        before = own.or(before);
    }
}

/// Makes one message of the model's turns that came as several with calls in a later one.
///
/// Gemini refuses a call that does not follow the user's side directly (lobehub/lobehub#10049); the others join such
/// messages by themselves.
fn join_calling_turns(items: &mut [OrderedItem<'_>], target: Format, issues: &mut Vec<Issue>) {
    // Where further messages of the turn begin.
    let mut begun: Vec<usize> = Vec::new();
    for at in 0..items.len() {
        let Some(item) = items.get(at).map(|element| &*element.item.item) else {
            continue;
        };
        match spoken_side(item, target) {
            Some(Side::User) => begun.clear(),
            Some(Side::Model) if begins_message(item, target) => begun.push(at),
            Some(Side::Model) | None => {}
        }
        if !is_call(item, target) {
            continue;
        }
        for start in begun.drain(..) {
            let Some(element) = items.get_mut(start) else {
                continue;
            };
            unmark(element, target);
            issues.extend(element.item.source.map(|index| Issue {
                kind: IssueKind::SplitTurn,
                index,
                what:
                    "a call in a further message of the model's; written in one with it".to_owned(),
            }));
        }
    }
}

/// Moves what the model said in a further message behind its calls before them: as one message, the calls must come
/// last, for their outputs follow.
fn join_split_turns(items: &mut [OrderedItem<'_>], target: Format, issues: &mut Vec<Issue>) {
    let mut calls_from = None;
    let mut in_later_message = false;
    for at in 0..items.len() {
        let Some(item) = items.get(at).map(|element| &*element.item.item) else {
            continue;
        };
        match (spoken_side(item, target), calls_from) {
            (Some(Side::User), _) => (calls_from, in_later_message) = (None, false),
            (Some(Side::Model), _) if is_call(item, target) => {
                calls_from.get_or_insert(at);
            }
            (Some(Side::Model), Some(place)) => {
                in_later_message |= begins_message(item, target);
                let is_text = matches!(item, Item::Message(_));
                if in_later_message && (is_text || is_thought(item, target)) {
                    let source = items.get(at).and_then(|element| element.item.source);
                    if let Some(moved) = items.get_mut(place..=at) {
                        moved.rotate_right(1);
                        moved
                            .iter_mut()
                            .take(1)
                            .for_each(|first| unmark(first, target));
                    }
                    calls_from = Some(place + 1);
                    issues.extend(source.filter(|_| is_text).map(|index| {
                        Issue {
                            kind: IssueKind::MisplacedText,
                            index,
                            what: "a text between calls and their outputs; moved before the calls"
                                .to_owned(),
                        }
                    }));
                }
            }
            (Some(Side::Model) | None, _) => {}
        }
    }
}

/// Takes away the mark that the item begins a message of its own.
fn unmark(element: &mut OrderedItem<'_>, target: Format) {
    if let Some(extra) = element.item.item.to_mut().extra_mut() {
        let mut own = extra.wire_fields(target.as_str());
        own.remove(START);
        extra.set_wire_fields(target.as_str(), own);
    }
}

/// Whether the model's turn that called the newest tools began with a thought, or nothing waits for such a turn.
/// Thoughts that stand behind other words of their message are moved before them.
///
/// Providers demand it of the turn as a whole: a model that thinks once goes on after outputs without thinking again.
fn open_round_begins_with_thought(
    items: &mut [OrderedItem<'_>],
    target: Format,
    issues: &mut Vec<Issue>,
) -> bool {
    let mut end = items.len();
    loop {
        let Some((Side::User, run)) = last_run(items, end, target) else {
            // The model speaks last: no outputs wait to be answered.
            return end == items.len();
        };
        let is_output = |element: &OrderedItem<'_>| is_output(&element.item.item, target);
        if !items
            .get(run.clone())
            .unwrap_or_default()
            .iter()
            .any(is_output)
        {
            return end == items.len();
        }
        let Some((_, turn)) = last_run(items, run.start, target) else {
            return false;
        };
        if lead_with_thought(items, turn.clone(), target, issues) {
            return true;
        }
        end = turn.start;
    }
}

/// Moves the thoughts of a turn to its beginning; returns whether there are any.
fn lead_with_thought(
    items: &mut [OrderedItem<'_>],
    turn: Range<usize>,
    target: Format,
    issues: &mut Vec<Issue>,
) -> bool {
    let Some(turn) = items.get_mut(turn) else {
        return false;
    };
    let speaks = |element: &OrderedItem<'_>| !is_silent(&element.item.item, target);
    let thinks = |element: &OrderedItem<'_>| is_thought(&element.item.item, target);
    let Some(thought) = turn.iter().position(thinks) else {
        return false;
    };
    if turn.iter().position(speaks) == Some(thought) {
        return true;
    }
    let group = turn
        .iter()
        .skip(thought)
        .take_while(|element| thinks(element));
    let end = thought + group.count();
    let source = turn.get(thought).and_then(|element| element.item.source);
    if let Some(moved) = turn.get_mut(..end) {
        moved.rotate_left(thought);
    }
    issues.extend(source.map(|index| Issue {
        kind: IssueKind::MisplacedThought,
        index,
        what: "a thought behind other words of its turn; moved before them".to_owned(),
    }));
    true
}

/// Takes the thoughts out of a beginning of the model's answer, where the request has it think nothing.
fn drop_begun_thoughts(items: &mut Vec<OrderedItem<'_>>, target: Format, issues: &mut Vec<Issue>) {
    let Some((Side::Model, run)) = last_run(items, items.len(), target) else {
        return;
    };
    let mut at = 0;
    items.retain(|element| {
        let refused = run.contains(&at) && is_thought(&element.item.item, target);
        at += 1;
        issues.extend(element.item.source.filter(|_| refused).map(|index| {
            Issue {
                kind: IssueKind::RefusedThought,
                index,
                what: "a thought in a begun answer, and the model is to think nothing; taken out"
                    .to_owned(),
            }
        }));
        !refused
    });
}

/// The last items before `end` that one side says, whose side it is, and what stands silently among them.
fn last_run(items: &[OrderedItem<'_>], end: usize, target: Format) -> Option<(Side, Range<usize>)> {
    let mut side = None;
    let mut start = end;
    for (at, element) in items.get(..end)?.iter().enumerate().rev() {
        match (spoken_side(&element.item.item, target), side) {
            (Some(own), Some(other)) if own != other => break,
            (Some(own), _) => side = Some(own),
            (None, _) => {}
        }
        start = at;
    }
    Some((side?, start..end))
}

fn is_call(item: &Item, target: Format) -> bool {
    let half = call_side(item, target.spec().structure());
    matches!(half, CallSide::Call(..))
}

fn is_output(item: &Item, target: Format) -> bool {
    let half = call_side(item, target.spec().structure());
    matches!(half, CallSide::Output(..)) && !is_silent(item, target)
}

/// Whether the item is a thought that the target is sent.
fn is_thought(item: &Item, target: Format) -> bool {
    matches!(item, Item::Reasoning(_)) && !is_silent(item, target)
}
