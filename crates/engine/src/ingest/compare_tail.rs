//! The end of a stored path where hashes cannot decide: an answer that was cut off, of which a client may have a shorter
//! copy; nodes that no client ever sent.

use std::sync::Arc;

use contexture_ir::{BranchName, ConversationId, HistoryHasher, Item, NodeId, Owner, Status};
use contexture_store::{Node, PathEnd, PathMatch, ReadRequest, Span};

use super::candidates::PathCandidate;
use super::request_history::{RequestHistory, is_model_item, is_user_side};
use crate::error::EngineError;
use crate::handle::{Conversation, Engine, load_path};
use crate::path::StoredPath;
use crate::refs::list_refs;

/// Nodes read of an end.
const LAST: u64 = 64;

/// Nodes behind a place that may be nobody's.
const SILENT: u64 = 16;

/// Branches that are searched for a place.
const MAX_BRANCHES: usize = 64;

/// Reads the ends of an owner's paths.
#[derive(Clone, Copy)]
pub(super) struct PathTails<'a> {
    pub(super) engine: &'a Engine,
    pub(super) owner: &'a Owner,
}

/// Whether a client has a copy of the answer at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyMatch {
    /// The answer was not cut off, or the client left it away.
    NotCut,
    /// So many of the items behind the place are a copy of what came.
    Items(usize),
    /// The client has something else in its place.
    Other,
}

/// What a model said, whole or not: its text, and its calls.
#[derive(Debug, Default)]
struct AnswerContent {
    text: String,
    calls: Vec<(String, String)>,
}

impl PathTails<'_> {
    /// A handle on a conversation.
    pub(super) fn open_handle(&self, id: &ConversationId, branch: BranchName) -> Conversation {
        let (engine, owner) = (self.engine.clone(), self.owner.clone());
        Conversation::new(engine, owner, id.clone(), branch)
    }

    /// Whether what the client has behind a place is a copy of a cut answer that ends there.
    pub(super) async fn compare_copy(
        &self,
        sent: &RequestHistory<'_>,
        found: &PathCandidate,
    ) -> Result<CopyMatch, EngineError> {
        let following = sent.items_after(&found.link);
        // Up to the next item of the user: what follows is not part of the copy.
        let step = following.iter().take_while(|item| !is_user_side(item));
        let (count, copy) = (
            step.clone().count(),
            step.filter(|item| is_model_item(item)),
        );
        // Compared redacted, as the stored answer is.
        let copy: Vec<Item> = copy.map(|item| self.without_secrets(item)).collect();
        if copy.is_empty() {
            return Ok(CopyMatch::NotCut);
        }
        let chat = self.open_handle(&found.place.conversation, BranchName::main());
        let end = ReadRequest::last_nodes(PathEnd::Node(found.place.node), LAST);
        let path = load_path(&chat, end).await?;
        let answer = last_answer(&path);
        if !answer.iter().any(|item| is_incomplete(item)) {
            return Ok(CopyMatch::NotCut);
        }
        let (full, copy) = (
            AnswerContent::from_items(answer),
            AnswerContent::from_items(copy.iter()),
        );
        Ok(match copy.is_prefix_of(&full) {
            true => CopyMatch::Items(count),
            false => CopyMatch::Other,
        })
    }

    /// The end of a branch, if nothing that a client would send stands between it and the place.
    pub(super) async fn find_silent_end(
        &self,
        place: &PathMatch,
    ) -> Result<Option<(BranchName, NodeId)>, EngineError> {
        let chat = self.open_handle(&place.conversation, BranchName::main());
        for branch in list_refs(&chat).await?.branches {
            // Far ends cannot be silent: they need not be read.
            let near = place.depth + 1..=place.depth + SILENT;
            if !near.contains(&branch.nodes) {
                continue;
            }
            let request = ReadRequest {
                at: PathEnd::Branch(branch.name.clone()),
                span: Span::From(place.depth),
                limit: None,
            };
            let path = load_path(&chat, request).await?;
            let begins = path.nodes.first().is_some_and(|node| node.id == place.node);
            if begins
                && is_silent(&path)
                && let Some(head) = path.head
            {
                return Ok(Some((branch.name, head)));
            }
        }
        Ok(None)
    }

    /// Whether a place is on the path of a branch. What a withdrawn request stored is on none.
    pub(super) async fn is_on_branch(&self, place: &PathMatch) -> Result<bool, EngineError> {
        let chat = self.open_handle(&place.conversation, BranchName::main());
        let branches = list_refs(&chat).await?.branches;
        let longer = branches.into_iter().filter(|one| one.nodes >= place.depth);
        // Beyond so many branches it is taken for one: that costs the choice of the active branch, nothing else.
        for (count, branch) in longer.enumerate() {
            let request = ReadRequest {
                at: PathEnd::Branch(branch.name),
                span: Span::From(place.depth),
                limit: Some(1),
            };
            let page = chat.store().read_path(chat.owner(), chat.id(), request);
            let page = page.await?;
            let is_there = page.nodes.first().is_some_and(|node| node.id == place.node);
            if is_there || count >= MAX_BRANCHES {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a branch has no nodes.
    pub(super) async fn is_empty_branch(
        &self,
        id: &ConversationId,
        branch: &BranchName,
    ) -> Result<bool, EngineError> {
        let refs = list_refs(&self.open_handle(id, branch.clone())).await?;
        let found = refs.find_branch(branch);
        Ok(found.is_some_and(|branch| branch.head.is_none()))
    }

    fn without_secrets(&self, item: &Item) -> Item {
        match self.engine.secrets() {
            Some(secrets) => secrets.redact_item(item),
            None => item.clone(),
        }
    }
}

/// What a client was shown of the answer that ends a path. Where calls were answered on the way it has several parts.
fn last_answer(path: &StoredPath) -> Vec<&Item> {
    let nodes = path.nodes.iter().zip(&path.items).rev();
    let answer =
        nodes.take_while(|(node, item)| !node.audience.user || is_model_item(item.item.as_ref()));
    let shown = answer.filter(|(node, _)| node.audience.user && node.response.is_some());
    let mut items: Vec<&Item> = shown.map(|(_, item)| item.item.as_ref()).collect();
    items.reverse();
    items
}

/// Whether no client was shown anything behind the first node that hashes count, or that was cut off.
fn is_silent(path: &StoredPath) -> bool {
    let items = path.items.iter().map(|item| &item.item);
    let nodes: Vec<(&Arc<Node>, &Arc<Item>)> = path.nodes.iter().zip(items).collect();
    let mut chain = HistoryHasher::default();
    let before = chain.current_hash();
    let following = nodes.iter().skip(1).filter(|(node, _)| node.audience.user);
    following.clone().all(|(_, item)| !is_incomplete(item)) && {
        following.for_each(|(_, item)| chain.push_item(item));
        chain.current_hash() == before
    }
}

/// Whether the model began it and did not finish.
pub(super) fn is_incomplete(item: &Item) -> bool {
    let status = match item {
        Item::Message(message) => message.status,
        Item::FunctionCall(call) => call.status,
        _ => None,
    };
    status.is_some_and(Status::is_incomplete)
}

impl AnswerContent {
    fn from_items<'i>(items: impl IntoIterator<Item = &'i Item>) -> Self {
        let mut step = Self::default();
        for item in items {
            match item {
                Item::Message(message) => {
                    let texts = message.content.iter().filter_map(|part| part.as_text());
                    texts.for_each(|text| step.text.push_str(text));
                }
                Item::FunctionCall(call) => {
                    let call = (call.name.clone(), call.arguments.clone());
                    step.calls.push(call);
                }
                _ => {}
            }
        }
        step
    }

    /// Whether it is `whole`, or a beginning of it that says something.
    fn is_prefix_of(&self, full: &Self) -> bool {
        let says = !self.text.is_empty() || !self.calls.is_empty();
        let calls = self.calls.iter().zip(&full.calls);
        says && full.text.starts_with(&self.text)
            && self.calls.len() <= full.calls.len()
            && calls.into_iter().all(|((name, arguments), (full, all))| {
                name == full && all.starts_with(arguments.as_str())
            })
    }
}
