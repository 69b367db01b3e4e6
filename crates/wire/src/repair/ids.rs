//! Call ids that are unique and that the target takes.
//!
//! What providers call by themselves keeps its id. Of all other calls the first one of an id keeps it if
//! the target takes it; every other one gets an id derived from the old id and how often it stood before,
//! so that a later call never changes an earlier one's.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ContentHash, Item};

use super::reorder::OrderedItem;
use super::repaired::{Issue, IssueKind, RepairedItem};
use crate::model::call_ids::{CallSide, call_id, call_side};
use crate::model::repair_rules::{CallIds, RepairRules};
use crate::silence::is_silent;

/// Derives an id from one that cannot be written, and reserves it.
fn unused_call_id(
    own: &str,
    count: &mut usize,
    used: &mut BTreeSet<String>,
    rules: &RepairRules,
) -> String {
    // The count makes the ids of repeated calls differ; it goes on where it stopped, so that a
    // history of n calls with one id costs n attempts and not n squared.
    loop {
        let id = derive_call_id(own, *count, &rules.call_ids);
        *count += 1;
        if used.insert(id.clone()) {
            return id;
        }
    }
}

fn call_id_issue(index: usize, own: &str, id: &str, rules: &RepairRules) -> Issue {
    let why = if rules.call_ids.accepts(own) {
        "is used twice"
    } else {
        "is refused by the target"
    };
    // Ids come from outside and may be long; this much is enough to recognise one.
    let shown: String = own.chars().take(80).collect();
    Issue {
        kind: IssueKind::CallId,
        index,
        what: format!("call id {shown:?} {why}; written as {id:?}"),
    }
}

/// Gives every call an id that the target accepts and no other call has, and every output its call's.
pub(super) fn rewrite_call_ids(
    placed: &mut [OrderedItem<'_>],
    rules: &RepairRules,
    issues: &mut Vec<Issue>,
) {
    // Reserved before any call is named, so that a function's call further up cannot take the id of
    // a provider's own item.
    let mut used: BTreeSet<String> = placed
        .iter()
        .filter_map(|element| reserved_id(&element.item.item, rules))
        .collect();
    let mut repeats: BTreeMap<String, usize> = BTreeMap::new();
    // The new ids of calls, by the call's index in the input.
    let mut renamed: BTreeMap<usize, String> = BTreeMap::new();
    for element in placed {
        let Some(call) = element.call else { continue };
        let own = match call_side(&element.item.item, rules.target.spec().structure()) {
            CallSide::Call(_, id) => id.into_owned(),
            // The call stands before its outputs by now, so its new id is known.
            CallSide::Output(..) => {
                let id = renamed.get(&call);
                set_placeholder_id(&mut element.item, id.map(String::as_str));
                if let Some(id) = id {
                    element.item.set_call_id(id);
                }
                continue;
            }
            CallSide::Neither => continue,
        };
        // Its id is nobody's business where it is not written.
        if is_silent(&element.item.item, rules.target) {
            continue;
        }
        if rules.call_ids.accepts(&own) && used.insert(own.clone()) {
            continue;
        }
        let count = repeats.entry(own.clone()).or_default();
        let id = unused_call_id(&own, count, &mut used, rules);
        issues.push(call_id_issue(call, &own, &id, rules));
        element.item.set_call_id(&id);
        renamed.insert(call, id);
    }
}

/// The id of a provider's own item that is no half of a pair: its bytes are the provider's, so it keeps
/// its id and no call may have the same.
fn reserved_id(item: &Item, rules: &RepairRules) -> Option<String> {
    let native = matches!(item, Item::Extension(_))
        && matches!(
            call_side(item, rules.target.spec().structure()),
            CallSide::Neither
        )
        && !is_silent(item, rules.target);
    call_id(item).filter(|_| native).map(Into::into)
}

/// An output that was made up gets an id derived from the call it answers.
fn set_placeholder_id(element: &mut RepairedItem<'_>, renamed: Option<&str>) {
    if element.source.is_none()
        && let Item::FunctionCallOutput(output) = element.item.to_mut()
    {
        let hash = ContentHash::of(renamed.unwrap_or(&output.call_id).as_bytes());
        // Derived, not random: repair of the same history must give the same bytes on every call.
        output.id = Some(format!("ctx_{hash}"));
    }
}

/// As much of the old id as may stand, and a hash of all of it.
fn derive_call_id(own: &str, count: usize, rule: &CallIds) -> String {
    let hash = ContentHash::of(format!("{count}:{own}").as_bytes()).to_string();
    let short = hash.get(..8).unwrap_or_default();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    // At least 16, even if the rule allows less, so that the hash always fits.
    let room = rule.max_bytes.clamp(16, 64).saturating_sub(short.len() + 1);
    // Every character becomes one ASCII byte, so counting characters counts bytes.
    let stem: String = own.chars().take(room).map(plain).collect();
    let stem = if stem.is_empty() { "call" } else { &stem };
    format!("{stem}_{short}")
}
