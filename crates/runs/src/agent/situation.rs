//! What comes next in a run, as its path says.
//!
//! Looked up once, when a run is taken up; after that the run knows.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_engine::{Conversation, EngineError, item};
use contexture_ir::{FunctionCall, Item, MessageId, NodeId, RunId};
use contexture_store::{At, Branch, Node, NodeKind, ReadRequest, Span};

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

/// A run's path, and what stands beside it.
pub(crate) struct RunPath {
    pub(crate) run: RunId,
    /// From behind the head it began at, oldest first.
    pub(crate) nodes: Vec<Arc<Node>>,
    /// Answers of the run that somebody was faster than, on branches of their own.
    aside: Vec<Arc<Node>>,
}

impl RunPath {
    /// Reads it. What stands beside it stands on branches that were made since the run began.
    pub(crate) async fn read(
        chat: &Conversation,
        run: RunId,
        base: Option<NodeId>,
        began_ms: i64,
    ) -> Result<Self, EngineError> {
        let (store, owner, id) = (chat.engine().store(), chat.owner(), chat.id());
        let from = match base {
            None => 1,
            Some(base) => {
                let page = store.read(owner, id, ReadRequest::last(At::Node(base), 1));
                page.await?.depth + 1
            }
        };
        let behind = |branch| ReadRequest {
            at: At::Branch(branch),
            span: Span::From(from),
            limit: None,
        };
        let nodes = store.read(owner, id, behind(chat.branch())).await?.nodes;
        let known: BTreeSet<NodeId> = nodes.iter().map(|node| node.id).collect();
        let mut aside = Vec::new();
        let refs = store.refs(owner, id).await?;
        let here = chat.branch();
        let since = |branch: &Branch| branch.name != here && branch.created_ms >= began_ms;
        for branch in refs.branches.into_iter().filter(since) {
            let page = store.read(owner, id, behind(branch.name)).await?;
            let own = |node: &Arc<Node>| of_answer(run, node) && !known.contains(&node.id);
            aside.extend(page.nodes.into_iter().filter(own));
        }
        Ok(Self { run, nodes, aside })
    }

    /// What the run itself has appended.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Arc<Node>> {
        let all = self.nodes.iter().chain(&self.aside);
        all.filter(|node| node.run == Some(self.run))
    }

    /// How many steps it has taken.
    pub(crate) fn steps(&self) -> u32 {
        self.own().filter_map(|node| node.step).max().unwrap_or(0)
    }

    /// Whether it has begun nothing since its last answer.
    pub(crate) fn ends_with_answer(&self) -> bool {
        let answers = self.own().filter(|node| node.response.is_some());
        let last = answers.filter_map(|node| node.step).max();
        last == Some(self.steps())
    }

    /// What stands before the last answer on its path.
    pub(crate) fn before_last_answer(&self) -> &[Arc<Node>] {
        let last = answers(self.run, &self.nodes).last();
        let first = last.and_then(<[Arc<Node>]>::first);
        let at = self.nodes.iter().position(|node| Some(node) == first);
        self.nodes.get(..at.unwrap_or(0)).unwrap_or_default()
    }
}

/// What comes next after these nodes.
pub(crate) fn next(run: RunId, nodes: &[Arc<Node>]) -> Result<Next, EngineError> {
    let answered: BTreeSet<NodeId> = nodes.iter().filter_map(|node| node.answers).collect();
    let (mut refused, mut cut) = (0, false);
    let answers: Vec<&[Arc<Node>]> = answers(run, nodes).collect();
    for answer in answers.into_iter().rev() {
        if let Some(node) = answer.iter().find(unseen) {
            // Refused by a layer, or cut off, which people are shown.
            refused += u32::from(!node.audience.user);
            cut |= node.audience.user;
            continue;
        }
        if refused > 0 || cut {
            break;
        }
        let last = nodes.iter().rposition(|node| of_answer(run, node));
        let behind = nodes.get(last.map_or(0, |last| last + 1)..);
        return after(answer, behind.unwrap_or_default(), &answered);
    }
    Ok(Next::Ask { refused })
}

/// The texts of the answers that models are shown and that called nothing, oldest first.
pub(crate) fn texts(run: RunId, nodes: &[Arc<Node>]) -> Result<Vec<String>, EngineError> {
    let nobody = BTreeSet::new();
    let mut texts = Vec::new();
    for answer in answers(run, nodes).filter(|answer| !answer.iter().any(|node| unseen(&node))) {
        if let Next::End { text } = after(answer, &[], &nobody)? {
            texts.push(text);
        }
    }
    Ok(texts)
}

/// The answers of a run among these nodes, oldest first.
fn answers(run: RunId, nodes: &[Arc<Node>]) -> impl Iterator<Item = &[Arc<Node>]> {
    let each = nodes.chunk_by(|a, b| a.response == b.response);
    each.filter(move |some| some.first().is_some_and(|node| of_answer(run, node)))
}

/// What no model is shown of an answer.
fn unseen(node: &&Arc<Node>) -> bool {
    !node.audience.model && node.kind != NodeKind::Extension
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
        match item(node)? {
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

fn message_of(node: &Node) -> Result<MessageId, EngineError> {
    match &node.message_id {
        Some(id) => Ok(id.clone()),
        None => Ok(MessageId::new(node.id.to_string())?),
    }
}
