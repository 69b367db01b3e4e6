//! What comes next in a run, as its path says.
//!
//! Looked up once, when a run is taken up; after that the run knows.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_engine::{Conversation, EngineError};
use contexture_ir::{FunctionCall, Item, MessageId, NodeId, RunId};
use contexture_store::{At, Node, NodeKind, ReadRequest, Span};

/// What comes next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// The model is asked; its last answers were refused so often.
    Ask { refused: u32 },
    /// These calls are run.
    Run(Calls),
    /// Nothing: the last answer called nothing.
    End { text: String },
}

/// Calls of one answer that have no output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Calls {
    /// The message they belong to.
    pub(crate) message: MessageId,
    /// The head the answer was computed from.
    pub(crate) base: Option<NodeId>,
    /// The step they are run in: the one behind the answer's, whoever runs them.
    pub(crate) step: u32,
    pub(crate) calls: Vec<Call>,
}

/// A call that has no output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) node: NodeId,
    pub(crate) call: FunctionCall,
}

/// A run's nodes, oldest first, from behind the head it began at.
pub(crate) async fn nodes_of(
    chat: &Conversation,
    base: Option<NodeId>,
) -> Result<Vec<Arc<Node>>, EngineError> {
    let (store, owner, id) = (chat.engine().store(), chat.owner(), chat.id());
    let from = match base {
        None => 1,
        Some(base) => {
            let page = store.read(owner, id, ReadRequest::last(At::Node(base), 1));
            page.await?.depth + 1
        }
    };
    let request = ReadRequest {
        at: At::Branch(chat.branch()),
        span: Span::From(from),
        limit: None,
    };
    Ok(store.read(owner, id, request).await?.nodes)
}

/// What comes next after these nodes.
pub(crate) fn next(run: RunId, nodes: &[Arc<Node>]) -> Result<Next, EngineError> {
    let answered: BTreeSet<NodeId> = nodes.iter().filter_map(|node| node.answers).collect();
    let (mut refused, mut cut) = (0, false);
    let mut end = nodes.len();
    loop {
        let before = nodes.get(..end).unwrap_or_default();
        let Some(last) = before.iter().rposition(|node| of_answer(run, node)) else {
            return Ok(Next::Ask { refused });
        };
        let response = before.get(last).and_then(|node| node.response);
        let first = before.iter().position(|node| node.response == response);
        let first = first.unwrap_or(last);
        let answer = before.get(first..=last).unwrap_or_default();
        let unseen = |node: &&Arc<Node>| !node.audience.model && node.kind != NodeKind::Extension;
        if let Some(node) = answer.iter().find(unseen) {
            // Refused by a layer, or cut off, which people are shown.
            refused += u32::from(!node.audience.user);
            cut |= node.audience.user;
            end = first;
            continue;
        }
        if refused > 0 || cut {
            return Ok(Next::Ask { refused });
        }
        let behind = nodes.get(last + 1..).unwrap_or_default();
        return after(answer, behind, &answered);
    }
}

fn of_answer(run: RunId, node: &Node) -> bool {
    node.run == Some(run) && node.response.is_some()
}

/// What comes after an answer that counts.
fn after(
    answer: &[Arc<Node>],
    behind: &[Arc<Node>],
    answered: &BTreeSet<NodeId>,
) -> Result<Next, EngineError> {
    let mut calls = Vec::new();
    let mut text = String::new();
    let mut called = false;
    for node in answer {
        match parse(node)? {
            Item::FunctionCall(call) => {
                called = true;
                if !answered.contains(&node.id) {
                    calls.push(Call {
                        node: node.id,
                        call,
                    });
                }
            }
            Item::Message(message) => text.push_str(&Item::Message(message).text()),
            _ => {}
        }
    }
    if let (Some(first), false) = (answer.first(), calls.is_empty()) {
        return Ok(Next::Run(Calls {
            message: message_of(first)?,
            base: first.parent,
            step: first.step.unwrap_or(0).saturating_add(1),
            calls,
        }));
    }
    // What a person or a layer has said since is to be answered.
    let said = |node: &Arc<Node>| matches!(node.kind, NodeKind::User | NodeKind::Instruction);
    match called || behind.iter().any(said) {
        true => Ok(Next::Ask { refused: 0 }),
        false => Ok(Next::End { text }),
    }
}

pub(crate) fn parse(node: &Node) -> Result<Item, EngineError> {
    Item::parse(&node.json).map_err(|source| EngineError::StoredItem {
        node: node.id,
        source,
    })
}

fn message_of(node: &Node) -> Result<MessageId, EngineError> {
    match &node.message_id {
        Some(id) => Ok(id.clone()),
        None => Ok(MessageId::new(node.id.to_string())?),
    }
}
