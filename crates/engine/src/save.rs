//! Storing messages: what is new, what is the same, what was edited.
//!
//! The rules: a message id that is on the branch with the same content is left alone; one whose
//! content only grew at the end of the branch gets its new items; one that changed opens a branch
//! before it, takes a new id there, and whatever was staged behind it follows it, stored messages as
//! copies. One transaction in every case.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_ir::{
    BranchName, ContentHash, Item, MessageId, NodeId, UiMessage, UiRole, canonical_json,
    meaning_hash, text_part,
};
use contexture_store::{
    Activation, AppendPoint, Appended, BranchLabel, Error as StoreError, NewBranch, NewItem, Node,
    ReadRequest,
};
use contexture_wire::ui::{FoldAudience, FoldItem, FoldOptions, fold, lift_message, validate};
use contexture_wire::{Format, OpenCalls, ends_step};

use crate::basis::ExpectedHead;
use crate::conversation::Conversation;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::path::{message_id_of, parse_node_item};
use crate::secrets::Secrets;

/// How far back an output looks for the call it answers.
const ANSWER_WINDOW: u64 = 512;

/// Something about to be stored.
#[derive(Clone, Debug)]
pub(crate) enum StagedItem {
    Message(UiMessage),
    Item(Item),
    LastAssistant(String),
}

/// What a commit stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The head of the branch now; `None` only if it is empty and nothing was stored.
    pub head: Option<NodeId>,
    /// The branch the messages are on.
    pub branch: BranchName,
    /// Whether that branch was opened by this commit, because a stored message was edited.
    pub opened: bool,
    /// The ids of the messages in the order they were staged, new ids for edited ones.
    pub messages: Vec<MessageId>,
    /// The nodes stored, in order.
    pub nodes: Vec<NodeId>,
}

/// One staged entry beside what the branch knows of it.
struct StagedNode {
    id: MessageId,
    /// As they are stored.
    items: Vec<Item>,
    /// Of the items as they were given.
    hashes: Vec<Option<ContentHash>>,
    stored: Vec<Arc<Node>>,
    action: SaveAction,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SaveAction {
    New,
    Same,
    /// The branch ends with this message and has its first so many items.
    Grown(usize),
    Changed,
}

impl Conversation {
    /// Puts a staged "last assistant message" in its place: the newest staged assistant message, else
    /// the newest stored one, else a message of its own.
    pub(crate) async fn replace_last_assistant(
        &self,
        staged: &mut Vec<StagedItem>,
    ) -> Result<(), EngineError> {
        let mut index = 0;
        while let Some(entry) = staged.get(index) {
            let StagedItem::LastAssistant(text) = entry else {
                index += 1;
                continue;
            };
            let parts = vec![text_part(text)];
            let earlier = staged.iter().take(index).rposition(|entry| {
                matches!(entry, StagedItem::Message(message) if message.role == UiRole::Assistant)
            });
            if let Some(StagedItem::Message(message)) = earlier.and_then(|at| staged.get_mut(at)) {
                message.parts = parts;
                staged.remove(index);
                continue;
            }
            let id = self.last_assistant_id().await?.unwrap_or_default();
            let role = UiRole::Assistant;
            if let Some(slot) = staged.get_mut(index) {
                *slot = StagedItem::Message(UiMessage {
                    id,
                    role,
                    metadata: None,
                    parts,
                });
            }
            index += 1;
        }
        Ok(())
    }

    /// The id of the newest assistant message on this branch.
    async fn last_assistant_id(&self) -> Result<Option<String>, EngineError> {
        let mut at = self.current_position();
        loop {
            let path = self
                .load_path(ReadRequest::last_nodes(at, ANSWER_WINDOW))
                .await?;
            let found = path
                .nodes
                .iter()
                .zip(&path.items)
                .rev()
                .find(|(_, one)| one.item.is_model_output());
            if let Some((node, _)) = found {
                return Ok(Some(node.effective_message_id().to_string()));
            }
            match path.nodes.first().and_then(|node| node.parent) {
                Some(parent) => at = contexture_store::PathEnd::Node(parent),
                None => return Ok(None),
            }
        }
    }

    pub(crate) async fn store_staged(
        &self,
        key: &[u8; 16],
        staged: Vec<StagedItem>,
        basis: ExpectedHead,
    ) -> Result<Committed, EngineError> {
        let head = self.head().await?;
        let mut entries = Vec::new();
        for (index, staged) in staged.into_iter().enumerate() {
            entries.push(self.classify_staged(key, index, staged, head).await?);
        }
        let edited = entries
            .iter()
            .position(|entry| entry.action == SaveAction::Changed);
        if let (Some(_), ExpectedHead::Only(expected)) = (edited, basis)
            && expected != head
        {
            // An edit leaves the branch alone, so no append would notice.
            return Err(head_moved_error(self.branch(), expected, head));
        }
        let messages = assign_message_ids(key, &mut entries, edited);
        let at = self.append_position(&entries, edited, basis);
        let mut session = match self.layers().is_empty() {
            true => None,
            false => Some(self.layer_session_for_append(&at).await?),
        };
        if let Some(session) = &mut session {
            for entry in entries
                .iter_mut()
                .filter(|entry| entry.action == SaveAction::New)
            {
                let said = std::mem::take(&mut entry.items);
                entry.items = session.on_append(said).await?;
            }
        }
        let items = self.build_new_items(key, &entries, edited).await?;
        if items.is_empty() {
            let branch = self.branch();
            return Ok(Committed {
                head,
                branch,
                opened: false,
                messages,
                nodes: Vec::new(),
            });
        }
        let changes = self.fragment_change()?.into_iter().collect();
        let (items, said): (_, Vec<Item>) = items.into_iter().unzip();
        let appended = self.append_items(at, items, &said, changes, session.as_mut());
        let appended = appended.await?;
        self.finish_commit(appended, messages, edited.is_some())
    }

    fn finish_commit(
        &self,
        appended: Appended,
        messages: Vec<MessageId>,
        opened: bool,
    ) -> Result<Committed, EngineError> {
        let branch = appended.branch.unwrap_or_else(|| self.branch());
        if opened {
            self.set_branch(branch.clone());
        }
        Ok(Committed {
            head: appended.head,
            branch,
            opened,
            messages,
            nodes: appended.nodes,
        })
    }

    async fn classify_staged(
        &self,
        key: &[u8; 16],
        index: usize,
        staged: StagedItem,
        head: Option<NodeId>,
    ) -> Result<StagedNode, EngineError> {
        let message = match staged {
            StagedItem::Message(message) => message,
            StagedItem::LastAssistant(text) => UiMessage::text(UiRole::Assistant, &text),
            StagedItem::Item(item) => {
                let (id, verdict) = (derived_message_id(key, index)?, SaveAction::New);
                let hashes = vec![meaning_hash(&item)];
                let secrets = self.engine().secrets();
                let item =
                    secrets.map_or_else(|| item.clone(), |secrets| secrets.redact_item(&item));
                return Ok(StagedNode {
                    id,
                    items: vec![item],
                    hashes,
                    stored: Vec::new(),
                    action: verdict,
                });
            }
        };
        // A message without parts may stand for one that is to come; it is not worth storing.
        let message = validate(std::slice::from_ref(&message))?
            .pop()
            .unwrap_or(message);
        let known = !message.id.is_empty();
        let id = if known {
            MessageId::new(&message.id)?
        } else {
            derived_message_id(key, index)?
        };
        let stored = if known {
            self.message_nodes_on_branch(&id).await?
        } else {
            Vec::new()
        };
        let mut lifted = lift_message(&message);
        let hashes = lifted.items.iter().map(meaning_hash).collect();
        let mut message = message;
        if let Some(secrets) = self.engine().secrets() {
            message = redact_message(secrets, message);
            lifted = lift_message(&message);
        }
        let verdict = classify_message(&message, &lifted.items, &stored, head)?;
        Ok(StagedNode {
            id,
            items: lifted.items,
            hashes,
            stored,
            action: verdict,
        })
    }

    /// Where the items go.
    fn append_position(
        &self,
        entries: &[StagedNode],
        edited: Option<usize>,
        basis: ExpectedHead,
    ) -> AppendPoint {
        let branch = self.branch();
        if let Some(entry) = edited.and_then(|index| entries.get(index)) {
            let base = entry.stored.first().and_then(|node| node.parent);
            let (label, activate) = (BranchLabel::After(branch), Activation::Activate);
            return AppendPoint::New(NewBranch {
                base,
                label,
                activate,
            });
        }
        let answer = || {
            entries
                .iter()
                .any(|entry| entry.items.iter().any(Item::is_model_output))
        };
        match basis {
            ExpectedHead::Only(head) => AppendPoint::Head { branch, head },
            ExpectedHead::Answer(head) if answer() => AppendPoint::Head { branch, head },
            ExpectedHead::Answer(_) | ExpectedHead::Tip => AppendPoint::Tip { branch },
        }
    }

    async fn build_new_items(
        &self,
        key: &[u8; 16],
        entries: &[StagedNode],
        edited: Option<usize>,
    ) -> Result<Vec<(NewItem, Item)>, EngineError> {
        let now = self.engine().now_ms();
        let mut added: Vec<AddedItem<'_>> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
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
        let calls = self.find_answered_calls(&added, edited.is_none()).await?;
        let new = added.iter().zip(calls).map(|(added, answers)| {
            let entry = added.entry;
            let message = answers.as_ref().and_then(|call| call.message.clone());
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
        &self,
        added: &[AddedItem<'_>],
        look_back: bool,
    ) -> Result<Vec<Option<MatchedCall>>, EngineError> {
        let mut answered = vec![None; added.len()];
        let is_output = |added: &AddedItem<'_>| matches!(added.item, Item::FunctionCallOutput(_));
        if !added.iter().any(is_output) {
            return Ok(answered);
        }
        let mut open: OpenCalls<String> = OpenCalls::default();
        let mut calls: Vec<MatchedCall> = Vec::new();
        if look_back {
            let last = ReadRequest::last_nodes(self.current_position(), ANSWER_WINDOW);
            let path = self.load_path(last).await?;
            let done: BTreeSet<NodeId> =
                path.nodes.iter().filter_map(|node| node.answers).collect();
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
        }
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
        for (call, output) in open.into_pairs() {
            if let Some(slot) = answered.get_mut(output) {
                *slot = calls.get(call).cloned();
            }
        }
        Ok(answered)
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

/// Gives edited messages new ids and lists all ids in order.
fn assign_message_ids(
    key: &[u8; 16],
    entries: &mut [StagedNode],
    edited: Option<usize>,
) -> Vec<MessageId> {
    for (index, entry) in entries.iter_mut().enumerate() {
        let moved = edited.is_some_and(|edited| index >= edited);
        if moved
            && entry.action == SaveAction::Changed
            && let Ok(id) = derived_message_id(key, index)
        {
            entry.id = id;
        }
    }
    entries.iter().map(|entry| entry.id.clone()).collect()
}

fn head_moved_error(
    branch: BranchName,
    expected: Option<NodeId>,
    actual: Option<NodeId>,
) -> EngineError {
    let moved = StoreError::HeadMoved {
        branch,
        expected,
        actual,
    };
    moved.into()
}

fn derived_message_id(key: &[u8; 16], index: usize) -> Result<MessageId, EngineError> {
    let id = NodeId::derive("message", &[key, &(index as u64).to_le_bytes()]);
    Ok(MessageId::new(id.to_string())?)
}

fn classify_message(
    message: &UiMessage,
    items: &[Item],
    stored: &[Arc<Node>],
    head: Option<NodeId>,
) -> Result<SaveAction, EngineError> {
    if stored.is_empty() {
        return Ok(SaveAction::New);
    }
    let known: Vec<Item> = stored
        .iter()
        .map(|node| parse_node_item(node))
        .collect::<Result<_, _>>()?;
    let fold_items: Vec<FoldItem<'_>> = known
        .iter()
        .map(|item| FoldItem {
            message_id: Some(message.id.as_str()),
            ..FoldItem::new(item)
        })
        .collect();
    let options = FoldOptions {
        audience: FoldAudience::Everyone,
        include_system: true,
        ..FoldOptions::default()
    };
    let folded = fold(&fold_items, &options);
    if let [one] = folded.as_slice()
        && is_same_message(one, message)
    {
        return Ok(SaveAction::Same);
    }
    let at_head = stored.last().map(|node| node.id) == head;
    let prefix = known.len() < items.len()
        && known
            .iter()
            .zip(items)
            .all(|(known, item)| is_same_item(known, item));
    Ok(if at_head && prefix {
        SaveAction::Grown(known.len())
    } else {
        SaveAction::Changed
    })
}

/// A message without the secrets in it.
fn redact_message(secrets: &Secrets, message: UiMessage) -> UiMessage {
    let redacted = serde_json::to_string(&message).ok();
    let redacted = redacted.and_then(|json| UiMessage::parse(&secrets.redact(&json)).ok());
    // Text that could not be cleaned must not be stored: better a placeholder than a secret.
    redacted.unwrap_or_else(|| UiMessage {
        metadata: None,
        parts: vec![text_part("[redacted]")],
        ..message
    })
}

fn is_same_message(a: &UiMessage, b: &UiMessage) -> bool {
    let text = |message: &UiMessage| {
        serde_json::to_string(message)
            .ok()
            .and_then(|json| canonical_json(&json))
    };
    text(a).is_some_and(|a| text(b).is_some_and(|b| a == b))
}

fn is_same_item(a: &Item, b: &Item) -> bool {
    match (meaning_hash(a), meaning_hash(b)) {
        (Some(a), Some(b)) => a == b,
        _ => canonical_json(&a.to_json()) == canonical_json(&b.to_json()),
    }
}
