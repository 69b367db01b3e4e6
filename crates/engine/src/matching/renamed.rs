//! Outputs of calls that a client wrote under ids of its own: they are stored under those of the stored calls.
//!
//! Ids do not count when a history is matched, so a client may have others than the model gave: some are written anew on
//! the way, some formats have none. Which call is meant follows from its place in its step.

use contexture_ir::{FunctionCall, Item};
use contexture_wire::pairs;

use super::sent::is_models;
use crate::path::Path;

/// New outputs that name a known call by another id than the stored call has, by their place among all that was sent.
pub(super) fn renamed(items: &[Item], known: usize, stored: &Path) -> Vec<(usize, Item)> {
    let kept = last_calls(stored);
    let partners = pairs(items);
    let new = items.iter().enumerate().skip(known);
    let rename = |(at, item): (usize, &Item)| {
        let Item::FunctionCallOutput(output) = item else {
            return None;
        };
        let call = partners.get(at).copied().flatten()?;
        let (sent, place) = step(items.get(..known)?, call)?;
        let call = kept.get(place).filter(|_| sent == kept.len())?;
        let mut output = output.clone();
        if output.call_id == call.call_id {
            return None;
        }
        output.call_id.clone_from(&call.call_id);
        Some((at, Item::FunctionCallOutput(output)))
    };
    new.filter_map(rename).collect()
}

/// How many calls the step has in which a call stands, and which of them it is.
fn step(items: &[Item], call: usize) -> Option<(usize, usize)> {
    let (before, behind) = items.split_at_checked(call)?;
    let models = |item: &&Item| is_models(item);
    let count = |item: &&Item| matches!(item, Item::FunctionCall(_));
    let place = before.iter().rev().take_while(models).filter(count).count();
    let rest = behind.iter().take_while(models).filter(count).count();
    (rest > 0).then_some((place + rest, place))
}

/// The calls of the last step of a path that clients were shown.
fn last_calls(stored: &Path) -> Vec<&FunctionCall> {
    let nodes = stored.nodes.iter().zip(&stored.items).rev();
    let shown = nodes.filter(|(node, _)| node.audience.user);
    let items = shown.map(|(_, item)| item.item.as_ref());
    let step = items
        .skip_while(|item| matches!(item, Item::FunctionCallOutput(_)))
        .take_while(|item| is_models(item));
    let mut calls: Vec<&FunctionCall> = step
        .filter_map(|item| match item {
            Item::FunctionCall(call) => Some(call),
            _ => None,
        })
        .collect();
    calls.reverse();
    calls
}
