//! Clears old content: outputs become placeholders, old thoughts are left out.
//!
//! What is cleared follows from the frontier of the plan and the policy alone. So it stays cleared, and
//! nothing else is, until [`advance`] moves the frontier.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Output, canonical_json};

use crate::answers::calls;
use crate::entry::{Entry, Shown};
use crate::history::History;
use crate::passes::budget::per_cent;
use crate::plan::ClearFrontier;
use crate::policy::ClearPolicy;
use crate::report::document::OmitReason;

/// What stands for an output that was cleared. Other systems look for these words.
pub(crate) const CLEARED: &str = "[Old tool result content cleared]";
/// What stands for an output whose call was made again.
const REPEATED: &str = "[Old tool result content cleared: the same call was made again later]";

/// Clears what is before the frontier, where the placeholder is shorter. Entries are in the order of
/// the view.
pub(crate) fn clear(
    entries: Vec<Entry>,
    frontier: &ClearFrontier,
    policy: &ClearPolicy,
    mut weigh: impl FnMut(&Entry) -> u64,
) -> (Vec<Entry>, Vec<(usize, OmitReason)>) {
    let fates = fates(&entries, frontier, policy);
    let mut hidden = Vec::new();
    let mut kept = Vec::with_capacity(entries.len());
    let mut replaced = |entry: Entry, text: &str, shown: Shown| {
        let short = entry.with_output(text, shown);
        if weigh(&short) < weigh(&entry) {
            short
        } else {
            entry
        }
    };
    for (entry, fate) in entries.into_iter().zip(fates) {
        kept.push(match fate {
            Fate::Stays => entry,
            Fate::Cleared => replaced(entry, CLEARED, Shown::Cleared),
            Fate::Repeated => replaced(entry, REPEATED, Shown::Repeated),
            Fate::Gone(index) => {
                hidden.push((index, OmitReason::Cleared));
                continue;
            }
        });
    }
    (kept, hidden)
}

/// What becomes of an entry.
enum Fate {
    Stays,
    Cleared,
    Repeated,
    Gone(usize),
}

fn fates(entries: &[Entry], frontier: &ClearFrontier, policy: &ClearPolicy) -> Vec<Fate> {
    let calls = calls(entries);
    let repeated = repeated(entries, &calls, frontier.settled, policy);
    let fate = |(at, entry): (usize, &Entry)| {
        let (Some(index), false) = (entry.source, entry.pinned) else {
            return Fate::Stays;
        };
        match &*entry.item {
            Item::Reasoning(_) if index < frontier.reasoning => Fate::Gone(index),
            Item::FunctionCallOutput(_) if repeated.contains(&at) => Fate::Repeated,
            Item::FunctionCallOutput(output) if index < frontier.outputs => {
                let name = calls.get(&at).map(|call| call.name.as_str());
                if may_go(output, name, policy) {
                    Fate::Cleared
                } else {
                    Fate::Stays
                }
            }
            _ => Fate::Stays,
        }
    };
    entries.iter().enumerate().map(fate).collect()
}

/// The history against its room, in tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) history: u64,
    pub(crate) room: u64,
    /// Below that the request is too short to be cached.
    pub(crate) floor: u64,
}

impl Size {
    /// Whether it does not fit.
    pub(crate) const fn is_over(&self) -> bool {
        self.history > self.room
    }

    /// What is to be saved to reach the low-water mark, if the trigger has fired.
    pub(crate) fn excess(&self, policy: &ClearPolicy) -> Option<u64> {
        let fired = self.history > per_cent(self.room, policy.trigger);
        let mark = per_cent(self.room, policy.low_water.min(policy.trigger)).max(self.floor);
        fired.then(|| self.history.saturating_sub(mark).max(1))
    }
}

/// A further frontier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Further {
    pub(crate) frontier: ClearFrontier,
    /// The tokens it saves.
    pub(crate) saved: u64,
    /// The first entry that it changes.
    pub(crate) first: usize,
}

/// How far the frontier would have to move to save `excess` tokens, and what that saves: less if
/// there is not so much to clear, `None` if there is nothing.
pub(crate) fn advance(
    history: &History,
    current: &ClearFrontier,
    policy: &ClearPolicy,
    excess: u64,
    mut weigh: impl FnMut(&Entry) -> u64,
) -> Option<Further> {
    let entries = &history.entries;
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
    let calls = calls(entries);
    let repeated = repeated(entries, &calls, last, policy);
    let mut next = ClearFrontier {
        outputs: current.outputs,
        reasoning: reasoning.max(current.reasoning),
        settled: last,
        ..*current
    };
    let mut saved: u64 = 0;
    let mut changed = entries.len();
    let mut candidates = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let Some(index) = entry.source.filter(|_| !entry.pinned) else {
            continue;
        };
        match &*entry.item {
            Item::Reasoning(_) if index < next.reasoning => {
                saved += weigh(entry);
                changed = changed.min(at);
            }
            Item::FunctionCallOutput(_) if entry.shown == Shown::Repeated => {}
            Item::FunctionCallOutput(_) if repeated.contains(&at) => {
                saved += less_placeholder(weigh(entry));
                changed = changed.min(at);
            }
            Item::FunctionCallOutput(output) => {
                let name = calls.get(&at).map(|call| call.name.as_str());
                let goes = index < last && entry.shown == Shown::Whole;
                candidates
                    .push((goes && may_go(output, name, policy)).then_some((at, index, entry)));
            }
            _ => {}
        }
    }
    let old = candidates.len().saturating_sub(policy.keep_recent);
    for (at, index, entry) in candidates.into_iter().take(old).flatten() {
        if saved >= excess {
            break;
        }
        saved += less_placeholder(weigh(entry));
        next.outputs = next.outputs.max(index + 1);
        changed = changed.min(at);
    }
    (saved > 0).then_some(Further {
        frontier: next,
        saved,
        first: changed,
    })
}

/// What a placeholder takes, about.
const fn less_placeholder(tokens: u64) -> u64 {
    tokens.saturating_sub(12)
}

fn may_go(output: &FunctionCallOutput, name: Option<&str>, policy: &ClearPolicy) -> bool {
    let error = output.is_error == Some(true) && policy.keep_errors;
    let kept = name.is_some_and(|name| policy.keep_tools.contains(name));
    let bytes = match &output.output {
        Output::Text(text) => text.len(),
        // Pictures and files are never small.
        Output::Parts(_) => usize::MAX,
    };
    !error && !kept && bytes >= policy.min_bytes
}

/// The outputs whose call was made again, with the same arguments, before the index `settled`.
fn repeated(
    entries: &[Entry],
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
        let arguments = canonical_json(&call.arguments);
        let key = (
            call.name.as_str(),
            arguments.unwrap_or_else(|| call.arguments.clone()),
        );
        if let Some(before) = newest.insert(key, *at) {
            let stays = entries.get(before).is_none_or(|before| {
                let Item::FunctionCallOutput(output) = &*before.item else {
                    return true;
                };
                before.pinned || !may_go(output, Some(&call.name), policy)
            });
            if !stays && output.is_error != Some(true) {
                repeated.insert(before);
            }
        }
    }
    repeated
}
