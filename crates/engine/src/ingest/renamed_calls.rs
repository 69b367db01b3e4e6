//! Outputs of calls that a client names by other ids: they are stored under the ids of the stored calls.
//!
//! Ids do not count when a history is matched, so a client may have others than the model gave: some proxies rewrite
//! them, some formats have none. Which call is meant follows from its place in the last step, the only one that waits for
//! outputs.

use contexture_ir::{FunctionCall, Item};
use contexture_wire::partner_indices;

use super::request_history::is_model_item;
use crate::path::StoredPath;

/// New outputs that name a call of the last stored step by another id than it has, by their place among all that was
/// sent.
pub(super) fn rename_outputs(
    items: &[Item],
    known: usize,
    stored: &StoredPath,
) -> Vec<(usize, Item)> {
    let stored_calls = last_calls(stored);
    let begin = last_step_start(items.get(..known).unwrap_or_default());
    let step = items.get(begin..).unwrap_or_default();
    let models = step
        .iter()
        .take(known - begin)
        .take_while(|item| is_model_item(item));
    let sent: Vec<usize> = models
        .enumerate()
        .filter(|(_, item)| matches!(item, Item::FunctionCall(_)))
        .map(|(at, _)| at)
        .collect();
    // Places only tell calls apart if there are as many on both sides; else the ids are left as they came.
    if stored_calls.is_empty() || stored_calls.len() != sent.len() {
        return Vec::new();
    }
    let partners = partner_indices(step);
    let rename = |(at, item): (usize, &Item)| {
        let Item::FunctionCallOutput(output) = item else {
            return None;
        };
        let call = partners.get(at).copied().flatten()?;
        let call = stored_calls.get(sent.iter().position(|sent| *sent == call)?)?;
        let mut output = output.clone();
        if output.call_id == call.call_id {
            return None;
        }
        output.call_id.clone_from(&call.call_id);
        Some((begin + at, Item::FunctionCallOutput(output)))
    };
    let new = step.iter().enumerate().skip(known - begin);
    new.filter_map(rename).collect()
}

/// Where the last step of the model begins among items, which its outputs may follow already.
fn last_step_start(items: &[Item]) -> usize {
    let end = items.iter().rposition(|item| !is_output(item));
    let models = items.iter().take(end.map_or(0, |end| end + 1)).rev();
    let count = models.take_while(|item| is_model_item(item)).count();
    end.map_or(0, |end| end + 1 - count)
}

/// The calls of the last step of a path that clients were shown.
fn last_calls(stored: &StoredPath) -> Vec<&FunctionCall> {
    let nodes = stored.nodes.iter().zip(&stored.items).rev();
    let shown = nodes.filter(|(node, _)| node.audience.user);
    let items = shown.map(|(_, item)| item.item.as_ref());
    let step = items
        .skip_while(|item| is_output(item))
        .take_while(|item| is_model_item(item));
    let mut calls: Vec<&FunctionCall> = step
        .filter_map(|item| match item {
            Item::FunctionCall(call) => Some(call),
            _ => None,
        })
        .collect();
    calls.reverse();
    calls
}

const fn is_output(item: &Item) -> bool {
    matches!(item, Item::FunctionCallOutput(_))
}
