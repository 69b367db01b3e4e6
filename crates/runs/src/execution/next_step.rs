//! What a run does next, computed from its path.
//!
//! Computed once, when a run is resumed; after that each step updates it. Because it is derived from the stored nodes
//! alone, there is no separate "program counter" that could disagree with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_engine::{Conversation, EngineError, parse_node_item};
use contexture_ir::{FunctionCall, Item, MessageId, NodeId, ResponseId, RunId};
use contexture_store::{Branch, Node, NodeKind, PathEnd, ReadRequest, Span, read_all_pages};

use crate::record::rejection_node_id;

/// What a run does next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextStep {
    /// Ask the model; `refused` counts the answers that layers refused in a row.
    Ask { refused: u32 },
    /// Run these calls.
    Run(UnansweredCalls),
    /// End: the last answer called no tool. `text` is its text.
    End { text: String },
}

/// The calls of one answer that have no output yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnansweredCalls {
    /// The message they belong to.
    pub(crate) message: MessageId,
    /// The head the answer was computed from.
    pub(crate) base: Option<NodeId>,
    /// The step they run in: the one after the answer's, also in a resumed run.
    pub(crate) step: u32,
    pub(crate) calls: Vec<UnansweredCall>,
}

/// A call that has no output yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnansweredCall {
    pub(crate) node: NodeId,
    pub(crate) call: FunctionCall,
}

/// The nodes of a run: those on its path, and its answers that lost a race.
pub(crate) struct RunPath {
    pub(crate) run: RunId,
    /// The nodes after the head at which the run began, oldest first.
    pub(crate) nodes: Vec<Arc<Node>>,
    /// Answers of the run that lost a race with another writer; they are stored on branches of their own.
    sibling_answers: Vec<Arc<Node>>,
}

impl RunPath {
    /// Reads the path from the store. Sibling answers are looked for on branches created since the run began.
    pub(crate) async fn load(
        chat: &Conversation,
        run: RunId,
        base: Option<NodeId>,
        started_ms: i64,
    ) -> Result<Self, EngineError> {
        let (store, owner, id) = (chat.engine().store(), chat.owner(), chat.id());
        let from = match base {
            None => 1,
            Some(base) => {
                let page =
                    store.read_path(owner, id, ReadRequest::last_nodes(PathEnd::Node(base), 1));
                page.await?.depth + 1
            }
        };
        let behind = |branch| ReadRequest {
            at: PathEnd::Branch(branch),
            span: Span::From(from),
            limit: None,
        };
        // Only nodes after the base: resuming a run does not read a long conversation again.
        let nodes = read_all_pages(&**store, owner, id, behind(chat.branch()))
            .await?
            .nodes;
        let known: BTreeSet<NodeId> = nodes.iter().map(|node| node.id).collect();
        let mut sibling_answers = Vec::new();
        let refs = store.list_refs(owner, id).await?;
        let here = chat.branch();
        // A sibling's branch is made by the append that lost the race, so an older branch cannot hold one.
        let since = |branch: &Branch| branch.name != here && branch.created_ms >= started_ms;
        for branch in refs.branches.into_iter().filter(since) {
            let page = read_all_pages(&**store, owner, id, behind(branch.name)).await?;
            let own = |node: &Arc<Node>| is_answer_node(run, node) && !known.contains(&node.id);
            sibling_answers.extend(page.nodes.into_iter().filter(own));
        }
        Ok(Self {
            run,
            nodes,
            sibling_answers,
        })
    }

    /// The nodes stored under this run's id: its input, answers, outputs, decisions and inbox items.
    pub(crate) fn own_nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        let all = self.nodes.iter().chain(&self.sibling_answers);
        all.filter(|node| node.run == Some(self.run))
    }

    /// The number of steps the run has taken: the highest step of its nodes.
    pub(crate) fn step_count(&self) -> u32 {
        self.own_nodes()
            .filter_map(|node| node.step)
            .max()
            .unwrap_or(0)
    }

    /// The answers the run has had, refused, partial and late ones included.
    pub(crate) fn answers(&self) -> BTreeSet<ResponseId> {
        self.own_nodes().filter_map(|node| node.response).collect()
    }

    /// The number of [`answers`](Self::answers).
    pub(crate) fn answer_count(&self) -> u32 {
        u32::try_from(self.answers().len()).unwrap_or(u32::MAX)
    }

    /// The number of its final answers that were rejected.
    pub(crate) fn rejected_answer_count(&self) -> u32 {
        let is_rejection = |node: &&Arc<Node>| {
            node.step
                .is_some_and(|step| node.id == rejection_node_id(self.run, step))
        };
        let rejections = self.own_nodes().filter(is_rejection).count();
        u32::try_from(rejections).unwrap_or(u32::MAX)
    }

    /// Whether the run began no step after its last answer.
    pub(crate) fn ends_with_answer(&self) -> bool {
        let answers = self.own_nodes().filter(|node| node.response.is_some());
        let last = answers.filter_map(|node| node.step).max();
        last == Some(self.step_count())
    }

    /// Whether a model's answer that is not the run's stands behind the run's last answer.
    pub(crate) fn is_overtaken(&self) -> bool {
        let is_answer = |node: &&Arc<Node>| node.response.is_some();
        let last = self.nodes.iter().rev().find(is_answer);
        last.is_some_and(|node| node.run != Some(self.run))
    }

    /// The nodes before the last answer on the path.
    pub(crate) fn before_last_answer(&self) -> &[Arc<Node>] {
        let last = answer_groups(self.run, &self.nodes).last();
        let first = last.and_then(<[Arc<Node>]>::first);
        let at = self.nodes.iter().position(|node| Some(node) == first);
        self.nodes.get(..at.unwrap_or(0)).unwrap_or_default()
    }
}

/// Computes what a run does after these nodes.
///
/// Starts at the newest answer and skips answers that models do not see: refused ones are counted, partial ones
/// ignored.
pub(crate) fn next_step(run: RunId, nodes: &[Arc<Node>]) -> Result<NextStep, EngineError> {
    let answered: BTreeSet<NodeId> = nodes.iter().filter_map(|node| node.answers).collect();
    let (mut refused, mut cut) = (0, false);
    let answers: Vec<&[Arc<Node>]> = answer_groups(run, nodes).collect();
    for answer in answers.into_iter().rev() {
        if let Some(node) = answer.iter().find(is_hidden_from_model) {
            // The audience distinguishes the two: a refused answer is hidden from everybody, a partial one is visible
            // to people.
            refused += u32::from(!node.audience.user);
            cut |= node.audience.user;
            continue;
        }
        // Whatever precedes a hidden answer has been handled: its calls have outputs, or the model was asked again.
        if refused > 0 || cut {
            break;
        }
        let last = nodes.iter().rposition(|node| is_answer_node(run, node));
        let behind = nodes.get(last.map_or(0, |last| last + 1)..);
        return next_after_stored_answer(answer, behind.unwrap_or_default(), &answered);
    }
    Ok(NextStep::Ask { refused })
}

/// Returns the texts of visible answers that called no tool, oldest first.
pub(crate) fn answer_texts(run: RunId, nodes: &[Arc<Node>]) -> Result<Vec<String>, EngineError> {
    // No call counts as answered here, so an answer with calls is recognised even if its calls have outputs.
    let no_answered_calls = BTreeSet::new();
    let mut texts = Vec::new();
    for answer in answer_groups(run, nodes)
        .filter(|answer| !answer.iter().any(|node| is_hidden_from_model(&node)))
    {
        if let NextStep::End { text } = next_after_stored_answer(answer, &[], &no_answered_calls)? {
            texts.push(text);
        }
    }
    Ok(texts)
}

/// Groups the nodes of each answer of a run, oldest answer first.
fn answer_groups(run: RunId, nodes: &[Arc<Node>]) -> impl Iterator<Item = &[Arc<Node>]> {
    // The nodes of an answer are appended together, so they are neighbours.
    let each = nodes.chunk_by(|a, b| a.response == b.response);
    each.filter(move |some| some.first().is_some_and(|node| is_answer_node(run, node)))
}

/// Whether a node of an answer is hidden from models. Extensions always are, so they are ignored.
fn is_hidden_from_model(node: &&Arc<Node>) -> bool {
    !node.audience.model && node.kind != NodeKind::Extension
}

fn is_answer_node(run: RunId, node: &Node) -> bool {
    node.run == Some(run) && node.response.is_some()
}

/// Computes what comes after an answer that was not refused.
fn next_after_stored_answer(
    answer: &[Arc<Node>],
    behind: &[Arc<Node>],
    answered: &BTreeSet<NodeId>,
) -> Result<NextStep, EngineError> {
    let mut calls = Vec::new();
    let mut text = String::new();
    let mut called = false;
    for node in answer {
        match parse_node_item(node)? {
            Item::FunctionCall(call) => {
                called = true;
                if !answered.contains(&node.id) {
                    calls.push(UnansweredCall {
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
        return Ok(NextStep::Run(UnansweredCalls {
            message: message_id_of(first)?,
            base: first.parent,
            step: first.step.unwrap_or(0).saturating_add(1),
            calls,
        }));
    }
    // A message after the last answer, such as one from the inbox, still needs an answer.
    let said = |node: &Arc<Node>| matches!(node.kind, NodeKind::User | NodeKind::Instruction);
    match called || behind.iter().any(said) {
        true => Ok(NextStep::Ask { refused: 0 }),
        false => Ok(NextStep::End { text }),
    }
}

fn message_id_of(node: &Node) -> Result<MessageId, EngineError> {
    match &node.message_id {
        Some(id) => Ok(id.clone()),
        // A call that was stored without a message id starts a message of its own.
        None => Ok(MessageId::new(node.id.to_string())?),
    }
}
