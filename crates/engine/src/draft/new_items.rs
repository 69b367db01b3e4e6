//! The items that a commit appends, and which stored or new call each output answers.

use std::collections::BTreeSet;

use contexture_ir::{Item, MessageId, NodeId};
use contexture_store::{NewItem, PathEnd, ReadRequest};
use contexture_wire::{Format, OpenCalls, ends_step};

use super::classify::{SaveAction, StagedNode};
use super::plan::DraftPlan;
use super::stage::ANSWER_WINDOW;
use crate::error::EngineError;
use crate::handle::{Conversation, load_path};
use crate::path::message_id_of;

/// A node that a commit would append.
pub(crate) struct PendingNode {
    /// The entry of the plan that it comes from.
    pub(crate) entry: usize,
    pub(crate) new: NewItem,
    pub(crate) item: Item,
}

/// Builds the nodes of a plan that are not where they belong yet.
pub(crate) async fn build_new_items(
    chat: &Conversation,
    key: &[u8; 16],
    plan: &DraftPlan,
) -> Result<Vec<PendingNode>, EngineError> {
    let now = chat.engine().now_ms();
    let mut added: Vec<AddedItem<'_>> = Vec::new();
    // Counts all items, also those that are stored: a draft that is repeated after it was stored in part must give the
    // rest the same ids.
    let mut numbers = 0..;
    for (place, entry) in plan.entries.iter().enumerate() {
        let stays = plan.keeps(&entry.stored);
        let items = entry.items.iter().enumerate().zip(numbers.by_ref());
        for ((at, item), number) in items.skip(plan.stored_item_count(entry)) {
            // After an edit unchanged items name the node they are copies of, as the new branch has none of them.
            let same = !stays && matches!(entry.action, SaveAction::Same | SaveAction::Grown(_));
            let copied = entry.stored.get(at).filter(|_| same).map(|node| node.id);
            added.push(AddedItem {
                place,
                entry,
                at,
                item,
                id: NodeId::of_operation(key, number),
                copied,
            });
        }
    }
    let calls = find_answered_calls(chat, &added, plan.parent()).await?;
    let new = added.iter().zip(calls).map(|(added, answers)| {
        let entry = added.entry;
        let message = answers.as_ref().and_then(|call| call.message.clone());
        let message = message.filter(|_| entry.joins_call);
        let stored = NewItem {
            answers: answers.map(|call| call.node),
            message_id: Some(message.unwrap_or_else(|| entry.id.clone())),
            copied_from: added.copied,
            meaning_hash: entry.hashes.get(added.at).copied().flatten(),
            ..NewItem::new(added.id, added.item, added.item.to_json(), now)
        };
        PendingNode {
            entry: added.place,
            new: stored,
            item: added.item.clone(),
        }
    });
    Ok(new.collect())
}

/// For every new item the call it answers, if it is an output: one that is new too, or one at the end of the
/// branch that has no output yet.
async fn find_answered_calls(
    chat: &Conversation,
    added: &[AddedItem<'_>],
    parent: Option<NodeId>,
) -> Result<Vec<Option<MatchedCall>>, EngineError> {
    let mut answered = vec![None; added.len()];
    let is_output = |added: &AddedItem<'_>| matches!(added.item, Item::FunctionCallOutput(_));
    // Most commits have no output, and then the branch need not be read.
    if !added.iter().any(is_output) {
        return Ok(answered);
    }
    let mut open: OpenCalls<String> = OpenCalls::default();
    let mut calls: Vec<MatchedCall> = Vec::new();
    // Before an edit, not at the head: calls behind it are not on the new branch.
    if let Some(parent) = parent {
        add_stored_calls(chat, parent, &mut open, &mut calls).await?;
    }
    pair_added_items(added, &mut open, &mut calls);
    for (call, output) in open.into_pairs() {
        if let Some(slot) = answered.get_mut(output) {
            *slot = calls.get(call).cloned();
        }
    }
    Ok(answered)
}

/// Adds the calls at the end of the path to a node that have no output yet.
async fn add_stored_calls(
    chat: &Conversation,
    parent: NodeId,
    open: &mut OpenCalls<String>,
    calls: &mut Vec<MatchedCall>,
) -> Result<(), EngineError> {
    let last = ReadRequest::last_nodes(PathEnd::Node(parent), ANSWER_WINDOW);
    let path = load_path(chat, last).await?;
    // A call that has its output is closed; providers refuse a second output for it.
    let done: BTreeSet<NodeId> = path.nodes.iter().filter_map(|node| node.answers).collect();
    for (node, one) in path.nodes.iter().zip(&path.items) {
        if ends_step(&one.item, Format::Items) {
            open.end_step();
        }
        // What stored outputs answer was decided when they were stored.
        if let Item::FunctionCall(call) = one.item.as_ref()
            && !done.contains(&node.id)
        {
            open.add_call(call.call_id.clone(), calls.len());
            let message = Some(message_id_of(node)?);
            calls.push(MatchedCall {
                node: node.id,
                message,
            });
        }
    }
    Ok(())
}

/// Adds the calls of new items, and pairs their outputs.
fn pair_added_items(
    added: &[AddedItem<'_>],
    open: &mut OpenCalls<String>,
    calls: &mut Vec<MatchedCall>,
) {
    for (at, new) in added.iter().enumerate() {
        if ends_step(new.item, Format::Items) {
            open.end_step();
        }
        match new.item {
            Item::FunctionCall(call) => {
                open.add_call(call.call_id.clone(), calls.len());
                let message = Some(new.entry.id.clone());
                calls.push(MatchedCall {
                    node: new.id,
                    message,
                });
            }
            Item::FunctionCallOutput(output) => {
                open.match_output(&output.call_id, at);
            }
            _ => {}
        }
    }
}

/// An item that is appended, and the message it comes from.
struct AddedItem<'a> {
    place: usize,
    entry: &'a StagedNode,
    at: usize,
    item: &'a Item,
    id: NodeId,
    copied: Option<NodeId>,
}

#[derive(Clone)]
struct MatchedCall {
    node: NodeId,
    message: Option<MessageId>,
}
