//! The items that a commit appends, and which stored or new call each output answers.

use std::collections::BTreeSet;

use contexture_ir::{Item, MessageId, NodeId};
use contexture_store::{NewItem, ReadRequest};
use contexture_wire::{Format, OpenCalls, ends_step};

use super::classify::{SaveAction, StagedNode};
use super::stage::ANSWER_WINDOW;
use crate::error::EngineError;
use crate::handle::{Conversation, Engine, load_path};
use crate::path::message_id_of;

pub(crate) async fn build_new_items(
    chat: &Conversation,
    key: &[u8; 16],
    entries: &[StagedNode],
    edited: Option<usize>,
) -> Result<Vec<(NewItem, Item)>, EngineError> {
    let now = chat.engine().now_ms();
    let mut added: Vec<AddedItem<'_>> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        // After an edit everything is appended, as the new branch has none of it; unchanged items name the node
        // they are copies of.
        let behind_edit = edited.is_some_and(|edited| index > edited);
        let skip = match entry.action {
            SaveAction::Same if !behind_edit => continue,
            SaveAction::Grown(kept) if !behind_edit => kept,
            _ => 0,
        };
        for (at, item) in entry.items.iter().enumerate().skip(skip) {
            let same =
                behind_edit && matches!(entry.action, SaveAction::Same | SaveAction::Grown(_));
            let copied = entry.stored.get(at).filter(|_| same).map(|node| node.id);
            added.push(AddedItem {
                entry,
                at,
                item,
                id: Engine::node_id(key, added.len()),
                copied,
            });
        }
    }
    let calls = find_answered_calls(chat, &added, edited.is_none()).await?;
    let new = added.iter().zip(calls).map(|(added, answers)| {
        let entry = added.entry;
        let message = answers.as_ref().and_then(|call| call.message.clone());
        // An output that was staged alone joins the message of its call; one that is part of a message stays there.
        let message = message.filter(|_| entry.items.len() == 1 && entry.stored.is_empty());
        let stored = NewItem {
            answers: answers.map(|call| call.node),
            message_id: Some(message.unwrap_or_else(|| entry.id.clone())),
            copied_from: added.copied,
            meaning_hash: entry.hashes.get(added.at).copied().flatten(),
            ..NewItem::new(added.id, added.item, added.item.to_json(), now)
        };
        (stored, added.item.clone())
    });
    Ok(new.collect())
}

/// For every new item the call it answers, if it is an output: one that is new too, or one at the end of the
/// branch that has no output yet.
async fn find_answered_calls(
    chat: &Conversation,
    added: &[AddedItem<'_>],
    look_back: bool,
) -> Result<Vec<Option<MatchedCall>>, EngineError> {
    let mut answered = vec![None; added.len()];
    let is_output = |added: &AddedItem<'_>| matches!(added.item, Item::FunctionCallOutput(_));
    // Most commits have no output, and then the branch need not be read.
    if !added.iter().any(is_output) {
        return Ok(answered);
    }
    let mut open: OpenCalls<String> = OpenCalls::default();
    let mut calls: Vec<MatchedCall> = Vec::new();
    // A new branch begins before the edit: calls on the old one are not on it.
    if look_back {
        add_stored_calls(chat, &mut open, &mut calls).await?;
    }
    pair_added_items(added, &mut open, &mut calls);
    for (call, output) in open.into_pairs() {
        if let Some(slot) = answered.get_mut(output) {
            *slot = calls.get(call).cloned();
        }
    }
    Ok(answered)
}

/// Adds the calls at the end of the branch that have no output yet.
async fn add_stored_calls(
    chat: &Conversation,
    open: &mut OpenCalls<String>,
    calls: &mut Vec<MatchedCall>,
) -> Result<(), EngineError> {
    let last = ReadRequest::last_nodes(chat.current_position(), ANSWER_WINDOW);
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
