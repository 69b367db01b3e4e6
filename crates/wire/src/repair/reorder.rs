//! Reordering: the items that stay, each output directly after the step of its call.

use std::borrow::Cow;
use std::collections::BTreeSet;

use contexture_ir::{FunctionCallOutput, Item, Output};

use super::decide::RepairDecisions;
use super::repaired::{Issue, IssueKind, RepairedItem};
use crate::model::call_ids::{CallSide, call_side};
use crate::model::format::Format;
use crate::model::format_extras::START;
use crate::model::paired_item::Side;
use crate::model::repair_rules::{NO_RESULT, RepairRules};
use crate::silence::is_silent;
use crate::turns::side;

/// An item in its place; calls and outputs know their call's index in the input.
pub(super) struct OrderedItem<'a> {
    pub(super) item: RepairedItem<'a>,
    pub(super) call: Option<usize>,
}

/// Decides what becomes of each item, and puts those that stay into their final order.
pub(super) fn decide_and_order<'a>(
    items: &[&'a Item],
    rules: &RepairRules,
    issues: &mut Vec<Issue>,
) -> Vec<OrderedItem<'a>> {
    let mut decisions = RepairDecisions::new(items);
    decisions.pair_outputs(items, rules, issues);
    decisions.resolve_invalid_items(items, rules, issues);
    let mut reorderer = ItemReorderer {
        items,
        target: rules.target,
        decisions: &mut decisions,
        issues,
        out: Vec::with_capacity(items.len()),
        open_calls: BTreeSet::new(),
        group: ThoughtGroup::default(),
        removed: BTreeSet::new(),
        emitted: vec![false; items.len()],
        next: 0,
    };
    for index in 0..items.len() {
        reorderer.visit_item(index);
    }
    // The history may end with open calls, which still need their outputs.
    reorderer.end_step();
    let ItemReorderer {
        out, removed: gone, ..
    } = reorderer;
    // Taken out at the end only: removing from the middle would shift the places that thoughts are
    // noted by.
    let stays = |(at, placed): (usize, OrderedItem<'a>)| (!gone.contains(&at)).then_some(placed);
    out.into_iter().enumerate().filter_map(stays).collect()
}

/// Whether the item began a message in the document of the format that it came from.
pub(super) fn begins_message(item: &Item, format: Format) -> bool {
    let extra = item.extra().filter(|extra| !extra.is_empty());
    let wire = extra.map(|extra| extra.wire_fields(format.as_str()));
    wire.is_some_and(|wire| wire.get(START).is_some())
}

/// Thoughts, and the items they led to.
#[derive(Default)]
struct ThoughtGroup {
    /// Places in the output, with the index in the input.
    thoughts: Vec<(usize, usize)>,
    followers: usize,
    kept_followers: usize,
}

/// The items in their final order, while it is made.
struct ItemReorderer<'l, 'a> {
    items: &'l [&'a Item],
    target: Format,
    decisions: &'l mut RepairDecisions,
    issues: &'l mut Vec<Issue>,
    out: Vec<OrderedItem<'a>>,
    /// Calls of the current step, to be answered when it ends.
    open_calls: BTreeSet<usize>,
    group: ThoughtGroup,
    /// Places in the output that are taken out again.
    removed: BTreeSet<usize>,
    emitted: Vec<bool>,
    /// No item before this one is still to come.
    next: usize,
}

impl<'a> ItemReorderer<'_, 'a> {
    fn visit_item(&mut self, index: usize) {
        if self.emitted.get(index) == Some(&true) {
            return;
        }
        let Some(item) = self.items.get(index).copied() else {
            return;
        };
        // A late output has become a user message, so the side is that of the replacement.
        let replaced = self.decisions.replaced.get(&index);
        let own_side = side(replaced.unwrap_or(item), self.target);
        if self.decisions.is_dropped(index) {
            // A dropped item still counts as what a thought led to: if all of those are gone, the
            // thought goes too.
            if own_side == Some(Side::Model) && !matches!(item, Item::Reasoning(_)) {
                self.record_follower(false);
            }
            return;
        }
        // A new message of the model between calls and outputs would separate them in Chat, so the
        // outputs come first.
        if own_side == Some(Side::Model)
            && !self.open_calls.is_empty()
            && begins_message(item, Format::OpenAiChat)
        {
            self.end_step();
        }
        let paired = self.decisions.partner(index);
        match (call_side(item, self.target.spec().structure()), paired) {
            (CallSide::Output(..), Some(call)) => {
                // The first output of a step ends it; all outputs of the step are written now, this
                // one among them.
                if self.open_calls.contains(&call) {
                    self.end_step();
                }
                return;
            }
            (CallSide::Call(..), _) => {
                self.open_calls.insert(index);
            }
            _ => {}
        }
        match own_side {
            // The user's side may speak only when all calls of the step are answered.
            Some(Side::User) => self.end_step(),
            Some(Side::Model) if matches!(item, Item::Reasoning(_)) => self.add_thought(index),
            // A thought leads to what the target is told.
            Some(Side::Model) if is_silent(item, self.target) => {}
            Some(Side::Model) => self.record_follower(true),
            None => {}
        }
        // Paired outputs returned above: what is left is a call or belongs to no pair.
        let call = matches!(
            call_side(item, self.target.spec().structure()),
            CallSide::Call(..)
        )
        .then_some(index);
        self.emit_item(index, call);
    }

    /// Ends the model's step: the outputs of its calls, in the order of the calls.
    fn end_step(&mut self) {
        self.close_thought_group();
        // A sorted set: outputs are written in the order of their calls.
        for call in std::mem::take(&mut self.open_calls) {
            match self.decisions.partner(call) {
                Some(output) => self.place_output(call, output),
                None => self.push_placeholder_output(call),
            }
        }
    }

    fn place_output(&mut self, call: usize, output: usize) {
        // Bookkeeping between outputs stays between them.
        while self.next < output
            && self
                .items
                .get(self.next)
                .is_some_and(|item| side(item, self.target).is_none())
        {
            self.emit_item(self.next, None);
        }
        if self.next != output {
            self.issues.push(Issue {
                kind: IssueKind::MisplacedOutput,
                index: output,
                what: "an output that did not stand behind its call in order; moved there"
                    .to_owned(),
            });
        }
        self.emit_item(output, Some(call));
    }

    fn push_placeholder_output(&mut self, index: usize) {
        // Calls of other kinds without an output were dropped when pairs were decided.
        let Some(Item::FunctionCall(call)) = self.items.get(index).copied() else {
            return;
        };
        self.issues.push(Issue {
            kind: IssueKind::UnansweredCall,
            index,
            what: "a call without an output; a placeholder was put behind it".to_owned(),
        });
        self.out.push(OrderedItem {
            item: RepairedItem::placeholder(FunctionCallOutput::new(
                call.call_id.clone(),
                Output::Text(NO_RESULT.to_owned()),
            )),
            call: Some(index),
        });
    }

    fn emit_item(&mut self, index: usize, call: Option<usize>) {
        let Some(item) = self.items.get(index).copied() else {
            return;
        };
        let mut emitted_item = RepairedItem::from_source(item, index);
        // Removed and not cloned: every item is emitted once.
        if let Some(other) = self.decisions.replaced.remove(&index) {
            emitted_item.item = Cow::Owned(other);
        }
        self.out.push(OrderedItem {
            item: emitted_item,
            call,
        });
        if let Some(emitted) = self.emitted.get_mut(index) {
            *emitted = true;
        }
        self.skip_emitted();
    }

    fn skip_emitted(&mut self) {
        // `next` only grows, so all calls together cost one pass over the items.
        while self.next < self.items.len()
            && (self.decisions.is_dropped(self.next) || self.emitted.get(self.next) == Some(&true))
        {
            self.next += 1;
        }
    }

    fn add_thought(&mut self, index: usize) {
        // A thought behind an item begins a new group; thoughts in a row share one fate.
        if self.group.followers > 0 {
            self.close_thought_group();
        }
        self.group.thoughts.push((self.out.len(), index));
    }

    /// Notes an item of the model's that the thoughts before it led to.
    fn record_follower(&mut self, is_kept: bool) {
        self.group.followers += 1;
        self.group.kept_followers += usize::from(is_kept);
    }

    /// Ends a group: thoughts that led to nothing that stays are taken out.
    fn close_thought_group(&mut self) {
        let group = std::mem::take(&mut self.group);
        // One item that stays is enough: the provider wants a thought to be followed by something
        // it led to.
        if group.kept_followers > 0 {
            return;
        }
        for (place, index) in group.thoughts {
            self.removed.insert(place);
            self.issues.push(Issue {
                kind: IssueKind::DanglingReasoning,
                index,
                what: "a thought without the item it led to; taken out".to_owned(),
            });
        }
    }
}
