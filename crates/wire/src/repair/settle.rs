//! Which items stay, and in what order.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use contexture_ir::{Extension, FunctionCallOutput, Item, Message, Output, Status};

use super::rules::Unanswered;
use super::{Issue, IssueKind, NO_RESULT, RepairRules, RepairedItem, late_message};
use crate::carry::START;
use crate::entry::{Side, side};
use crate::format::Format;

/// Calls that are no function's, and whose outputs the host owes under the type `<call>_output`.
const EXTENSION_CALLS: [&str; 5] = [
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];

/// An item in its place; calls and outputs know their call's index in the input.
pub(super) struct Placed<'a> {
    pub(super) item: RepairedItem<'a>,
    pub(super) call: Option<usize>,
}

/// What an item is in a pair.
enum Half<'a> {
    Call(&'a str, Cow<'a, str>),
    Output(&'a str, Cow<'a, str>),
    Neither,
}

fn half(item: &Item) -> Half<'_> {
    match item {
        Item::FunctionCall(call) => Half::Call("", Cow::Borrowed(&call.call_id)),
        Item::FunctionCallOutput(output) => Half::Output("", Cow::Borrowed(&output.call_id)),
        Item::Extension(item) => {
            let (kind, output) = match item.kind.strip_suffix("_output") {
                Some(kind) => (kind, true),
                None => (item.kind.as_str(), false),
            };
            let Some(kind) = EXTENSION_CALLS.into_iter().find(|known| *known == kind) else {
                return Half::Neither;
            };
            match extension_call_id(item) {
                Some(id) if output => Half::Output(kind, Cow::Owned(id)),
                Some(id) => Half::Call(kind, Cow::Owned(id)),
                None => Half::Neither,
            }
        }
        _ => Half::Neither,
    }
}

/// The call id inside a provider's own item.
pub(super) fn extension_call_id(item: &Extension) -> Option<String> {
    let fields = item.raw.fields()?;
    serde_json::from_str(fields.get(&["call_id"])?.get()).ok()
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

/// Unanswered calls of one id, by step.
#[derive(Default)]
struct Waiting(Vec<(usize, VecDeque<usize>)>);

impl Waiting {
    fn push(&mut self, step: usize, call: usize) {
        match self.0.last_mut() {
            Some((last, calls)) if *last == step => calls.push_back(call),
            _ => self.0.push((step, VecDeque::from([call]))),
        }
    }

    fn pop(&mut self) -> Option<usize> {
        let (_, calls) = self.0.last_mut()?;
        let call = calls.pop_front();
        if calls.is_empty() {
            self.0.pop();
        }
        call
    }
}

/// What becomes of each item.
struct Fates {
    /// The other half of a pair.
    partner: Vec<Option<usize>>,
    dropped: Vec<bool>,
    replaced: BTreeMap<usize, Item>,
}

impl Fates {
    fn new(items: &[&Item]) -> Self {
        Self {
            partner: vec![None; items.len()],
            dropped: vec![false; items.len()],
            replaced: BTreeMap::new(),
        }
    }

    fn is_dropped(&self, index: usize) -> bool {
        self.dropped.get(index).copied().unwrap_or_default()
    }

    fn partner(&self, index: usize) -> Option<usize> {
        self.partner.get(index).copied().flatten()
    }

    fn drop(&mut self, index: usize, kind: IssueKind, what: &str, issues: &mut Vec<Issue>) {
        if let Some(dropped) = self.dropped.get_mut(index) {
            *dropped = true;
        }
        let what = what.to_owned();
        issues.push(Issue { kind, index, what });
    }

    /// Pairs each output with the nearest call of its id before it that is still unanswered; among
    /// calls of one step with the first, because outputs of parallel calls come in their order.
    fn pair(&mut self, items: &[&Item], rules: &RepairRules, issues: &mut Vec<Issue>) {
        let mut open: BTreeMap<(&str, Cow<'_, str>), Waiting> = BTreeMap::new();
        let mut step = 0;
        let mut names: BTreeMap<Cow<'_, str>, &str> = BTreeMap::new();
        let mut calls = Vec::new();
        for (index, item) in items.iter().enumerate() {
            step += usize::from(side(item) == Some(Side::User));
            match half(item) {
                Half::Neither => {}
                Half::Call(kind, id) => {
                    calls.push(index);
                    if let Item::FunctionCall(call) = item {
                        names.insert(id.clone(), &call.name);
                    }
                    open.entry((kind, id)).or_default().push(step, index);
                }
                Half::Output(kind, id) => match open.get_mut(&(kind, id.clone())) {
                    Some(waiting) => {
                        if let Some(call) = waiting.pop() {
                            self.join(call, index);
                        } else if let Item::FunctionCallOutput(output) = item {
                            let name = names.get(&id).copied().unwrap_or_default();
                            self.late(index, output, name, issues);
                        } else {
                            self.drop(
                                index,
                                IssueKind::LateOutput,
                                "a second output; taken out",
                                issues,
                            );
                        }
                    }
                    None => {
                        let what = "an output whose call is not there; taken out";
                        self.drop(index, IssueKind::OrphanOutput, what, issues);
                    }
                },
            }
        }
        for index in calls {
            self.judge_call(index, items, rules, issues);
        }
    }

    fn join(&mut self, call: usize, output: usize) {
        if let Some(slot) = self.partner.get_mut(call) {
            *slot = Some(output);
        }
        if let Some(slot) = self.partner.get_mut(output) {
            *slot = Some(call);
        }
    }

    fn late(
        &mut self,
        index: usize,
        output: &FunctionCallOutput,
        name: &str,
        issues: &mut Vec<Issue>,
    ) {
        self.replaced
            .insert(index, late_message(output, name).into());
        issues.push(Issue {
            kind: IssueKind::LateOutput,
            index,
            what: "a second output of one call; written as a user message".to_owned(),
        });
    }

    /// A call without an output: half written, to be taken out, or to be answered in its step.
    fn judge_call(
        &mut self,
        index: usize,
        items: &[&Item],
        rules: &RepairRules,
        issues: &mut Vec<Issue>,
    ) {
        if self.partner(index).is_some() {
            return;
        }
        let call = match items.get(index) {
            Some(Item::FunctionCall(call)) => call,
            _ => {
                let what = "a call without an output, and none can be made up; taken out";
                return self.drop(index, IssueKind::UnansweredCall, what, issues);
            }
        };
        if unfinished(call.status) {
            self.drop(
                index,
                IssueKind::Unfinished,
                "a call that was never finished; taken out",
                issues,
            );
        } else if rules.unanswered == Unanswered::Strip {
            self.drop(
                index,
                IssueKind::UnansweredCall,
                "a call without an output; taken out",
                issues,
            );
        }
    }

    /// Messages that say nothing, thoughts that were cut off, ids that stand twice.
    fn judge(&mut self, items: &[&Item], rules: &RepairRules, issues: &mut Vec<Issue>) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if self.is_dropped(index) {
                continue;
            }
            match item {
                Item::Message(message) if is_empty(message) => {
                    self.drop(
                        index,
                        IssueKind::EmptyMessage,
                        "a message that says nothing; taken out",
                        issues,
                    );
                    continue;
                }
                Item::Reasoning(reasoning) if unfinished(reasoning.status) => {
                    self.drop(
                        index,
                        IssueKind::Unfinished,
                        "a thought that was cut off; taken out",
                        issues,
                    );
                    continue;
                }
                _ => {}
            }
            if rules.unique_item_ids && item.id().is_some_and(|id| !seen.insert(id)) {
                self.repeated_id(index, item, issues);
            }
        }
    }

    fn repeated_id(&mut self, index: usize, item: &Item, issues: &mut Vec<Issue>) {
        let mut nameless = item.clone();
        match &mut nameless {
            Item::Message(item) => item.id = None,
            Item::FunctionCall(item) => item.id = None,
            Item::FunctionCallOutput(item) => item.id = None,
            Item::Compaction(item) => item.id = None,
            Item::Reasoning(_) => {
                return self.drop(
                    index,
                    IssueKind::ItemId,
                    "a thought that stands twice; taken out",
                    issues,
                );
            }
            // Its bytes are the provider's own.
            Item::Extension(_) if self.partner(index).is_some() => return,
            Item::Extension(_) => {
                return self.drop(
                    index,
                    IssueKind::ItemId,
                    "an item that stands twice; taken out",
                    issues,
                );
            }
        }
        self.replaced.entry(index).or_insert(nameless);
        issues.push(Issue {
            kind: IssueKind::ItemId,
            index,
            what: "the item's id stands twice; written without it".to_owned(),
        });
    }
}

/// Whether Chat writes the item as a new message, which may not stand between calls and outputs.
fn begins_message(item: &Item) -> bool {
    let wire = item
        .extra()
        .map(|extra| extra.wire(Format::OpenAiChat.as_str()));
    wire.is_some_and(|wire| wire.get(START).is_some())
}

fn unfinished(status: Option<Status>) -> bool {
    status.is_some_and(|status| status != Status::Completed)
}

fn is_empty(message: &Message) -> bool {
    message
        .content
        .iter()
        .all(|part| part.as_text().is_some_and(str::is_empty))
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
        let replaced = self.fates.replaced.get(&index).map(side);
        let own_side = replaced.unwrap_or_else(|| side(item));
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
        match (half(item), paired) {
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
            Some(Side::Model) => self.lead(true),
            None => {}
        }
        let call = matches!(half(item), Half::Call(..)).then_some(index);
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
                .is_some_and(|item| side(item).is_none())
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
