//! Repair decisions: which pair an item belongs to, whether it stays, what replaces it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{FunctionCallOutput, Item, Message, Output, Part, Role, Status};

use super::repaired::{Issue, IssueKind};
use crate::model::call_ids::{CallSide, HostedHalf, call_side};
use crate::model::pairing::{OpenCalls, OutputMatch};
use crate::model::repair_rules::{ItemRepair, RepairRules, Unanswered};
use crate::silence::is_silent;
use crate::turns::ends_step;

/// The decisions on every item of a history, by its index.
pub(super) struct RepairDecisions {
    /// For each call its output, for each output its call.
    partner: Vec<Option<usize>>,
    dropped: Vec<bool>,
    pub(super) replaced: BTreeMap<usize, Item>,
}

impl RepairDecisions {
    pub(super) fn new(items: &[&Item]) -> Self {
        Self {
            partner: vec![None; items.len()],
            dropped: vec![false; items.len()],
            replaced: BTreeMap::new(),
        }
    }

    pub(super) fn is_dropped(&self, index: usize) -> bool {
        self.dropped.get(index).copied().unwrap_or_default()
    }

    pub(super) fn partner(&self, index: usize) -> Option<usize> {
        self.partner.get(index).copied().flatten()
    }

    fn drop_item(&mut self, index: usize, kind: IssueKind, what: &str, issues: &mut Vec<Issue>) {
        if let Some(dropped) = self.dropped.get_mut(index) {
            *dropped = true;
        }
        let what = what.to_owned();
        issues.push(Issue { kind, index, what });
    }

    /// Pairs outputs with calls, see [`crate::model::pairing`].
    pub(super) fn pair_outputs(
        &mut self,
        items: &[&Item],
        rules: &RepairRules,
        issues: &mut Vec<Issue>,
    ) {
        let mut open: OpenCalls<(&str, Cow<'_, str>)> = OpenCalls::default();
        let mut names: BTreeMap<Cow<'_, str>, &str> = BTreeMap::new();
        let mut calls = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if ends_step(item, rules.target) {
                open.end_step();
            }
            match call_side(item, rules.target.spec().structure()) {
                CallSide::Neither => {}
                CallSide::Call(kind, id) => {
                    calls.push(index);
                    // Kept for late outputs, whose replacement names the function that was called.
                    if let Item::FunctionCall(call) = item {
                        names.insert(id.clone(), &call.name);
                    }
                    // The kind is part of the key: an output of a shell call does not answer a
                    // function's call of the same id.
                    open.add_call((kind, id), index);
                }
                CallSide::Output(kind, id) => match open.match_output(&(kind, id.clone()), index) {
                    OutputMatch::Call => {}
                    OutputMatch::Late => match item {
                        Item::FunctionCallOutput(output) => {
                            let name = names.get(&id).copied().unwrap_or_default();
                            self.replace_late_output(index, output, name, issues);
                        }
                        // The output of another kind of call is the provider's own JSON and cannot
                        // be retold as text.
                        _ => {
                            let what = "a second output; taken out";
                            self.drop_item(index, IssueKind::LateOutput, what, issues);
                        }
                    },
                    OutputMatch::Unknown if rules.kept_beginning => {}
                    OutputMatch::Unknown => {
                        let what = "an output whose call is not there; taken out";
                        self.drop_item(index, IssueKind::OrphanOutput, what, issues);
                    }
                },
            }
        }
        // Pairs are known only at the end: with fewer outputs than calls of one id, the last calls
        // are the answered ones.
        for (call, output) in open.into_pairs() {
            self.link_pair(call, output);
        }
        for index in calls {
            self.decide_unpaired_call(index, items, rules, issues);
        }
    }

    fn link_pair(&mut self, call: usize, output: usize) {
        if let Some(slot) = self.partner.get_mut(call) {
            *slot = Some(output);
        }
        if let Some(slot) = self.partner.get_mut(output) {
            *slot = Some(call);
        }
    }

    fn replace_late_output(
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
    fn decide_unpaired_call(
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
                return self.drop_item(index, IssueKind::UnansweredCall, what, issues);
            }
        };
        // Its arguments may be half a JSON text, which no provider accepts, so even a placeholder
        // would not help.
        if is_unfinished(call.status) {
            self.drop_item(
                index,
                IssueKind::Unfinished,
                "a call that was never finished; taken out",
                issues,
            );
        } else if rules.unanswered == Unanswered::Strip {
            // Under the other rule it stays; its placeholder is made when its step is put in order.
            self.drop_item(
                index,
                IssueKind::UnansweredCall,
                "a call without an output; taken out",
                issues,
            );
        }
    }

    /// Messages that say nothing, thoughts that were cut off, ids that stand twice.
    pub(super) fn resolve_invalid_items(
        &mut self,
        items: &[&Item],
        rules: &RepairRules,
        issues: &mut Vec<Issue>,
    ) {
        let mut seen = BTreeSet::new();
        let mut hosted = BTreeSet::new();
        let mut repairs = rules.target.spec().repair_items(items);
        for (index, item) in items.iter().enumerate() {
            if self.is_dropped(index)
                || self.drop_orphaned_result(index, item, rules, &mut hosted, issues)
                || self.apply_item_repair(index, repairs.remove(&index), issues)
            {
                continue;
            }
            match item {
                Item::Message(message) if is_empty(message) || is_silent(item, rules.target) => {
                    self.drop_item(
                        index,
                        IssueKind::EmptyMessage,
                        "a message that says nothing; taken out",
                        issues,
                    );
                    continue;
                }
                Item::Reasoning(reasoning) if is_unfinished(reasoning.status) => {
                    self.drop_item(
                        index,
                        IssueKind::Unfinished,
                        "a thought that was cut off; taken out",
                        issues,
                    );
                    continue;
                }
                _ => {}
            }
            if let Some(item) = rules.target.spec().without_refused_nulls(item) {
                self.replaced.entry(index).or_insert(item);
            }
            // The first item keeps the id; items that were dropped above never claim it.
            if rules.unique_item_ids && item.id().is_some_and(|id| !seen.insert(id)) {
                self.resolve_repeated_id(index, item, issues);
            }
        }
    }

    /// Takes out a result of the provider's own call that is not there, and returns whether it was one.
    fn drop_orphaned_result(
        &mut self,
        index: usize,
        item: &Item,
        rules: &RepairRules,
        calls: &mut BTreeSet<String>,
        issues: &mut Vec<Issue>,
    ) -> bool {
        match rules.target.spec().hosted_half(item) {
            Some(HostedHalf::Call(id)) => {
                calls.insert(id);
                false
            }
            // The call may stand in what the provider keeps.
            Some(HostedHalf::Result(_)) if rules.kept_beginning => false,
            Some(HostedHalf::Result(id)) if !calls.contains(&id) => {
                let what = "a result of a call of the provider's that is not there; taken out";
                self.drop_item(index, IssueKind::OrphanOutput, what, issues);
                true
            }
            _ => false,
        }
    }

    /// Does what the target's format says about the item, and returns whether the item is gone.
    fn apply_item_repair(
        &mut self,
        index: usize,
        repair: Option<ItemRepair>,
        issues: &mut Vec<Issue>,
    ) -> bool {
        match repair {
            None => false,
            Some(ItemRepair::Remove(what)) => {
                self.drop_item(index, IssueKind::RefusedItem, what, issues);
                true
            }
            Some(ItemRepair::Replace(other, what)) => {
                // A late output is a message of ours by now, which needs no repair.
                self.replaced.entry(index).or_insert(other);
                issues.push(Issue {
                    kind: IssueKind::RefusedField,
                    index,
                    what: what.to_owned(),
                });
                false
            }
        }
    }

    fn resolve_repeated_id(&mut self, index: usize, item: &Item, issues: &mut Vec<Issue>) {
        let mut nameless = self.replaced.get(&index).unwrap_or(item).clone();
        match &mut nameless {
            Item::Message(item) => item.id = None,
            Item::FunctionCall(item) => item.id = None,
            Item::FunctionCallOutput(item) => item.id = None,
            Item::Compaction(item) => item.id = None,
            Item::Reasoning(_) => {
                return self.drop_item(
                    index,
                    IssueKind::ItemId,
                    "a thought that stands twice; taken out",
                    issues,
                );
            }
            // Its bytes are the provider's own.
            // Dropping one half of a pair would leave the other half alone.
            Item::Extension(_) if self.partner(index).is_some() => return,
            Item::Extension(_) => {
                return self.drop_item(
                    index,
                    IssueKind::ItemId,
                    "an item that stands twice; taken out",
                    issues,
                );
            }
        }
        self.replaced.insert(index, nameless);
        issues.push(Issue {
            kind: IssueKind::ItemId,
            index,
            what: "the item's id stands twice; written without it".to_owned(),
        });
    }
}

fn is_unfinished(status: Option<Status>) -> bool {
    status.is_some_and(|status| status != Status::Completed)
}

fn is_empty(message: &Message) -> bool {
    // Without parts a message is empty too; a part that is not text always says something.
    message
        .content
        .iter()
        .all(|part| part.as_text().is_some_and(str::is_empty))
}

/// Makes a user message of a later output of a call that is answered already.
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
