//! The items that stay, in their final order.

use std::borrow::Cow;
use std::collections::BTreeSet;

use contexture_ir::{FunctionCallOutput, Item, Output};

use super::fates::Fates;
use super::repaired::{Issue, IssueKind, RepairedItem};
use super::rules::{NO_RESULT, RepairRules};
use super::silent::is_silent;
use crate::carry::START;
use crate::entry::{Side, side};
use crate::format::Format;
use crate::half::{Half, half};

/// An item in its place; calls and outputs know their call's index in the input.
pub(super) struct Placed<'a> {
    pub(super) item: RepairedItem<'a>,
    pub(super) call: Option<usize>,
}

/// Decides and orders.
pub(super) fn settle<'a>(
    items: &[&'a Item],
    rules: &RepairRules,
    issues: &mut Vec<Issue>,
) -> Vec<Placed<'a>> {
    let mut fates = Fates::new(items);
    fates.pair(items, rules, issues);
    fates.judge(items, rules, issues);
    let mut line = Line {
        items,
        target: rules.target,
        fates: &mut fates,
        issues,
        out: Vec::with_capacity(items.len()),
        waiting: BTreeSet::new(),
        group: Group::default(),
        gone: BTreeSet::new(),
        emitted: vec![false; items.len()],
        next: 0,
    };
    for index in 0..items.len() {
        line.take(index);
    }
    line.answer();
    let Line { out, gone, .. } = line;
    let stays = |(at, placed): (usize, Placed<'a>)| (!gone.contains(&at)).then_some(placed);
    out.into_iter().enumerate().filter_map(stays).collect()
}

/// Whether Chat writes the item as a new message, which may not stand between calls and outputs.
fn begins_message(item: &Item) -> bool {
    let wire = item
        .extra()
        .map(|extra| extra.wire(Format::OpenAiChat.as_str()));
    wire.is_some_and(|wire| wire.get(START).is_some())
}

/// Thoughts, and the items they led to.
#[derive(Default)]
struct Group {
    /// Places in the output, with the index in the input.
    thoughts: Vec<(usize, usize)>,
    led_to: usize,
    kept: usize,
}

/// The items in their final order, while it is made.
struct Line<'l, 'a> {
    items: &'l [&'a Item],
    target: Format,
    fates: &'l mut Fates,
    issues: &'l mut Vec<Issue>,
    out: Vec<Placed<'a>>,
    /// Calls of the current step, to be answered when it ends.
    waiting: BTreeSet<usize>,
    group: Group,
    /// Places in the output that are taken out again.
    gone: BTreeSet<usize>,
    emitted: Vec<bool>,
    /// No item before this one is still to come.
    next: usize,
}

impl<'a> Line<'_, 'a> {
    fn take(&mut self, index: usize) {
        if self.emitted.get(index) == Some(&true) {
            return;
        }
        let Some(item) = self.items.get(index).copied() else {
            return;
        };
        let replaced = self.fates.replaced.get(&index);
        let own_side = side(replaced.unwrap_or(item), self.target);
        if self.fates.is_dropped(index) {
            if own_side == Some(Side::Model) && !matches!(item, Item::Reasoning(_)) {
                self.lead(false);
            }
            return;
        }
        if own_side == Some(Side::Model) && !self.waiting.is_empty() && begins_message(item) {
            self.answer();
        }
        let paired = self.fates.partner(index);
        match (half(item, self.target), paired) {
            (Half::Output(..), Some(call)) => {
                if self.waiting.contains(&call) {
                    self.answer();
                }
                return;
            }
            (Half::Call(..), _) => {
                self.waiting.insert(index);
            }
            _ => {}
        }
        match own_side {
            Some(Side::User) => self.answer(),
            Some(Side::Model) if matches!(item, Item::Reasoning(_)) => self.think(index),
            // A thought leads to what the target is told.
            Some(Side::Model) if is_silent(item, self.target) => {}
            Some(Side::Model) => self.lead(true),
            None => {}
        }
        let call = matches!(half(item, self.target), Half::Call(..)).then_some(index);
        self.emit(index, call);
    }

    /// Ends the model's step: the outputs of its calls, in the order of the calls.
    fn answer(&mut self) {
        self.close();
        for call in std::mem::take(&mut self.waiting) {
            match self.fates.partner(call) {
                Some(output) => self.place_output(call, output),
                None => self.make_up(call),
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
            self.emit(self.next, None);
        }
        if self.next != output {
            self.issues.push(Issue {
                kind: IssueKind::MisplacedOutput,
                index: output,
                what: "an output that did not stand behind its call in order; moved there"
                    .to_owned(),
            });
        }
        self.emit(output, Some(call));
    }

    fn make_up(&mut self, index: usize) {
        let Some(Item::FunctionCall(call)) = self.items.get(index).copied() else {
            return;
        };
        self.issues.push(Issue {
            kind: IssueKind::UnansweredCall,
            index,
            what: "a call without an output; a placeholder was put behind it".to_owned(),
        });
        self.out.push(Placed {
            item: RepairedItem::made_up(FunctionCallOutput::new(
                call.call_id.clone(),
                Output::Text(NO_RESULT.to_owned()),
            )),
            call: Some(index),
        });
    }

    fn emit(&mut self, index: usize, call: Option<usize>) {
        let Some(item) = self.items.get(index).copied() else {
            return;
        };
        let mut kept = RepairedItem::kept(item, index);
        if let Some(other) = self.fates.replaced.remove(&index) {
            kept.item = Cow::Owned(other);
        }
        self.out.push(Placed { item: kept, call });
        if let Some(emitted) = self.emitted.get_mut(index) {
            *emitted = true;
        }
        self.advance();
    }

    fn advance(&mut self) {
        while self.next < self.items.len()
            && (self.fates.is_dropped(self.next) || self.emitted.get(self.next) == Some(&true))
        {
            self.next += 1;
        }
    }

    fn think(&mut self, index: usize) {
        if self.group.led_to > 0 {
            self.close();
        }
        self.group.thoughts.push((self.out.len(), index));
    }

    /// Notes an item of the model's that the thoughts before it led to.
    fn lead(&mut self, kept: bool) {
        self.group.led_to += 1;
        self.group.kept += usize::from(kept);
    }

    /// Ends a group: thoughts that led to nothing that stays are taken out.
    fn close(&mut self) {
        let group = std::mem::take(&mut self.group);
        if group.kept > 0 {
            return;
        }
        for (place, index) in group.thoughts {
            self.gone.insert(place);
            self.issues.push(Issue {
                kind: IssueKind::DanglingReasoning,
                index,
                what: "a thought without the item it led to; taken out".to_owned(),
            });
        }
    }
}
