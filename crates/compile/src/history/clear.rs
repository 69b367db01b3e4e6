//! Clears old content: outputs become placeholders, old thoughts are left out.
//!
//! What is cleared follows from the frontier of the plan and the policy alone. So it stays cleared, and
//! nothing else is, until [`advance_frontier`] moves the frontier.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Output, canonical_json};

use crate::blocks::{ShownAs, ViewEntry, calls_by_output};
use crate::budget::per_cent;
use crate::history::rounds::History;
use crate::input::{ClearFrontier, ClearPolicy};
use contexture_report::OmitReason;
use contexture_text::glob_matches;

/// What stands for an output that was cleared. Other systems look for these words.
pub(crate) const CLEARED: &str = "[Old tool result content cleared]";
/// What stands for an output whose call was made again.
const REPEATED: &str = "[Old tool result content cleared: the same call was made again later]";

/// Clears what is before the frontier, where the placeholder is shorter. Entries are in the order of
/// the view.
pub(crate) fn clear_entries(
    entries: Vec<ViewEntry>,
    frontier: &ClearFrontier,
    policy: &ClearPolicy,
    mut weigh: impl FnMut(&ViewEntry) -> u64,
) -> (Vec<ViewEntry>, Vec<(usize, OmitReason)>) {
    let fates = clear_actions(&entries, frontier, policy);
    let mut hidden = Vec::new();
    let mut kept = Vec::with_capacity(entries.len());
    let mut replaced = |entry: ViewEntry, text: &str, shown: ShownAs| {
        let short = entry.with_output(text, shown);
        // A short output may weigh less than its placeholder.
        let is_shorter = weigh(&short) < weigh(&entry);
        if is_shorter { short } else { entry }
    };
    for (entry, fate) in entries.into_iter().zip(fates) {
        kept.push(match fate {
            ClearAction::Unchanged => entry,
            ClearAction::Cleared => replaced(entry, CLEARED, ShownAs::Cleared),
            ClearAction::Repeated => replaced(entry, REPEATED, ShownAs::Repeated),
            ClearAction::Removed(index) => {
                hidden.push((index, OmitReason::Cleared));
                continue;
            }
        });
    }
    (kept, hidden)
}

/// What becomes of an entry.
enum ClearAction {
    Unchanged,
    Cleared,
    Repeated,
    Removed(usize),
}

fn clear_actions(
    entries: &[ViewEntry],
    frontier: &ClearFrontier,
    policy: &ClearPolicy,
) -> Vec<ClearAction> {
    let calls = calls_by_output(entries);
    // Only calls before the frontier count as repeated: a call that is made again later must not
    // change what was already sent.
    let repeated = superseded_outputs(entries, &calls, frontier.repeats, policy);
    let fate = |(at, entry): (usize, &ViewEntry)| {
        // Pinned items stay as they are, and what repair made up has nothing to clear.
        let (Some(index), false) = (entry.source, entry.pinned) else {
            return ClearAction::Unchanged;
        };
        match &*entry.item {
            Item::Reasoning(_) if index < frontier.reasoning => ClearAction::Removed(index),
            Item::FunctionCallOutput(_) if repeated.contains(&at) => ClearAction::Repeated,
            Item::FunctionCallOutput(output) if index < frontier.outputs => {
                let name = calls.get(&at).map(|call| call.name.as_str());
                if can_clear(output, name, policy) {
                    ClearAction::Cleared
                } else {
                    ClearAction::Unchanged
                }
            }
            _ => ClearAction::Unchanged,
        }
    };
    entries.iter().enumerate().map(fate).collect()
}

/// The history against its room, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HistorySize {
    pub(crate) history: u64,
    pub(crate) room: u64,
    /// Below that the request is too short to be cached.
    pub(crate) floor: u64,
}

impl HistorySize {
    /// Whether it does not fit.
    pub(crate) const fn exceeds_budget(&self) -> bool {
        self.history > self.room
    }

    /// What is to be saved to reach the low-water mark, if the trigger has fired.
    pub(crate) fn excess_tokens(&self, policy: &ClearPolicy) -> Option<u64> {
        let fired = self.history > per_cent(self.room, policy.trigger);
        // Below the trigger, or clearing would be due again at once; above the floor, or nothing would
        // be cached any more.
        let mark = per_cent(self.room, policy.low_water.min(policy.trigger)).max(self.floor);
        fired.then(|| self.history.saturating_sub(mark).max(1))
    }
}

/// A further frontier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrontierMove {
    pub(crate) frontier: ClearFrontier,
    /// The tokens it saves, with those of thinking that it takes along.
    pub(crate) saved: u64,
    /// The first entry that it changes.
    pub(crate) first: usize,
}

/// How far the frontier would have to move to save `excess` tokens, and what that saves: less if
/// there is not so much to clear, `None` if there is nothing. `is_lost` tells thinking that does not survive an edit
/// before it.
pub(crate) fn advance_frontier(
    history: &History,
    current: &ClearFrontier,
    policy: &ClearPolicy,
    excess: u64,
    is_lost: impl Fn(&ViewEntry) -> bool,
    mut weigh: impl FnMut(&ViewEntry) -> u64,
) -> Option<FrontierMove> {
    let entries = &history.entries;
    // The last round is required whole: nothing in it is cleared.
    let last = history.first_source(history.last)?;
    let reasoning = match policy.keep_reasoning {
        None => 0,
        Some(0) => last,
        Some(turns) => {
            let start = history.turn_entry(turns).and_then(|at| entries.get(at));
            start
                .and_then(|entry| entry.source)
                .map_or(0, |start| start.min(last))
        }
    };
    let calls = calls_by_output(entries);
    let repeated = superseded_outputs(entries, &calls, last, policy);
    // Frontiers only move forward: what is a placeholder in the cached prefix stays one.
    let mut next = ClearFrontier {
        outputs: current.outputs,
        reasoning: reasoning.max(current.reasoning),
        repeats: last,
        ..*current
    };
    let mut saved: u64 = 0;
    let mut changed = entries.len();
    let mut candidates = Vec::new();
    let mut thinking: Vec<(usize, u64)> = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let Some(index) = entry.source.filter(|_| !entry.pinned) else {
            continue;
        };
        match &*entry.item {
            Item::Reasoning(_) if index < next.reasoning => {
                saved += weigh(entry);
                changed = changed.min(at);
            }
            Item::Reasoning(_) if is_lost(entry) => thinking.push((at, weigh(entry))),
            Item::FunctionCallOutput(_) if entry.shown_as == ShownAs::Repeated => {}
            Item::FunctionCallOutput(_) if repeated.contains(&at) => {
                saved += saved_by_placeholder(weigh(entry));
                changed = changed.min(at);
            }
            Item::FunctionCallOutput(output) => {
                let name = calls.get(&at).map(|call| call.name.as_str());
                let goes = index < last && entry.shown_as == ShownAs::Unchanged;
                candidates
                    .push((goes && can_clear(output, name, policy)).then_some((at, index, entry)));
            }
            _ => {}
        }
    }
    // The newest outputs are what the model works with. All outputs count for that, those that cannot
    // be cleared too, so `keep_recent` means what it says.
    let old = candidates.len().saturating_sub(policy.keep_recent);
    let lost_from = |first: usize| -> u64 {
        let behind = thinking.iter().filter(|(at, _)| *at >= first);
        behind.map(|(_, tokens)| *tokens).sum()
    };
    let mut lost = lost_from(changed);
    for (at, index, entry) in candidates.into_iter().take(old).flatten() {
        // Oldest first, and no more than needed: each placeholder may cost the model a call to read
        // the output again.
        if saved.saturating_add(lost) >= excess {
            break;
        }
        saved += saved_by_placeholder(weigh(entry));
        next.outputs = next.outputs.max(index + 1);
        if at < changed {
            changed = at;
            lost = lost_from(at);
        }
    }
    (saved > 0).then_some(FrontierMove {
        frontier: next,
        saved: saved.saturating_add(lost),
        first: changed,
    })
}

/// What a placeholder takes, about.
const fn saved_by_placeholder(tokens: u64) -> u64 {
    tokens.saturating_sub(12)
}

fn can_clear(output: &FunctionCallOutput, name: Option<&str>, policy: &ClearPolicy) -> bool {
    // An error keeps the model from making the same mistake again, and it is short as a rule.
    let error = output.is_error == Some(true) && policy.keep_errors;
    let is_kept = |name: &str| {
        policy
            .keep_tools
            .iter()
            .any(|kept| glob_matches(kept, name))
    };
    let kept = name.is_some_and(is_kept);
    let bytes = match &output.output {
        Output::Text(text) => text.len(),
        // Pictures and files are never small.
        Output::Parts(_) => usize::MAX,
    };
    !error && !kept && bytes >= policy.min_bytes
}

/// Whether an entry is an output of this tool that may be cleared.
fn can_clear_entry(entry: &ViewEntry, tool: &str, policy: &ClearPolicy) -> bool {
    match &*entry.item {
        Item::FunctionCallOutput(output) => !entry.pinned && can_clear(output, Some(tool), policy),
        _ => false,
    }
}

/// The outputs whose call was made again, with the same arguments, before the index `settled`.
fn superseded_outputs(
    entries: &[ViewEntry],
    calls: &BTreeMap<usize, &FunctionCall>,
    settled: usize,
    policy: &ClearPolicy,
) -> BTreeSet<usize> {
    let mut newest: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut repeated = BTreeSet::new();
    if !policy.repeated || settled == 0 {
        return repeated;
    }
    for (at, call) in calls {
        let Some(entry) = entries.get(*at) else {
            continue;
        };
        let Item::FunctionCallOutput(output) = &*entry.item else {
            continue;
        };
        if entry.source.is_none_or(|index| index >= settled) {
            continue;
        }
        // Canonical, because models write the same arguments in another order or with other spaces.
        let arguments = canonical_json(&call.arguments);
        let key = (
            call.name.as_str(),
            arguments.unwrap_or_else(|| call.arguments.clone()),
        );
        // The newest output of equal calls is the true one; older ones show a state that no longer
        // holds.
        if let Some(before) = newest.insert(key, *at) {
            let older = entries.get(before);
            let goes = older.is_some_and(|older| can_clear_entry(older, &call.name, policy));
            // A call that failed the second time does not make the first answer obsolete.
            if goes && output.is_error != Some(true) {
                repeated.insert(before);
            }
        }
    }
    repeated
}
