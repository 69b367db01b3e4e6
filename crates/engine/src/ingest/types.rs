//! The request to ingest, and its result.

use std::sync::Arc;
use std::time::Duration;

use contexture_ir::{BranchName, ConversationId, HistoryHasher, NodeId, PathHash, Raw, Transcript};

use super::keys::PathKeys;
use super::shared_exchanges::StoredMark;
use crate::exchange::{Exchange, ExchangeHandle};
use crate::handle::Conversation;

/// A request of a client that keeps no state, or little.
#[derive(Clone, Copy, Debug)]
pub struct IngestRequest<'a> {
    /// What it says: the whole history, or with `previous_response` what follows it.
    pub transcript: &'a Transcript,
    /// The conversation, where the client names one. It is made if it is not there.
    pub conversation: Option<&'a ConversationId>,
    /// The branch to go on, where the client names one and a conversation. It is opened if it is not
    /// there.
    pub branch: Option<&'a BranchName>,
    /// The provider's id of the answer that this goes on from.
    pub previous_response: Option<&'a str>,
    /// The end user, or a cache key: histories of different ones are never taken for each other. Kept as
    /// a hash. A conversation that is named is found whatever this is.
    pub partition: Option<&'a str>,
    /// What a conversation is about that is made for it: the end user, say. One that is there keeps its own.
    pub resource: Option<&'a str>,
    /// The exchange that it belongs to: it is matched once the answers are recorded that its client holds. Without one
    /// nothing is waited for.
    pub exchange: Option<&'a Exchange>,
}

impl<'a> IngestRequest<'a> {
    /// A history of which nothing else is known.
    #[must_use]
    pub const fn new(transcript: &'a Transcript) -> Self {
        Self {
            transcript,
            conversation: None,
            branch: None,
            previous_response: None,
            partition: None,
            resource: None,
            exchange: None,
        }
    }
}

/// How a request was matched to its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchKind {
    /// By a name: that of the conversation or of the answer before.
    Explicit,
    /// By a beginning that holds an answer recorded here.
    Prefix,
    /// All of it was stored: it is asked again.
    Retry,
    /// Not at all: a new conversation.
    New,
}

impl MatchKind {
    /// The lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Prefix => "prefix",
            Self::Retry => "retry",
            Self::New => "new",
        }
    }
}

/// A request that is stored; see [`Engine::ingest`](crate::Engine::ingest).
#[derive(Clone, Debug)]
pub struct Ingested {
    /// The conversation, on the branch that ends with what the client sent.
    pub chat: Conversation,
    /// How it was matched.
    pub matched: MatchKind,
    /// What was stored, in order.
    pub appended: Vec<NodeId>,
    /// The last node of what the client sent; `None` if it sent nothing.
    pub head: Option<NodeId>,
    /// The branch that was opened for it, because the client left the others.
    pub opened_branch: Option<BranchName>,
    /// Time that it waited for earlier answers to be recorded.
    pub waited: Duration,
    /// Whether it went on before an answer was recorded that it may hold: it may be stored in the wrong place.
    pub raced: bool,
    pub(super) trail: AnswerContext,
}

/// What the answer needs to know of its request.
#[derive(Clone, Debug)]
pub(super) struct AnswerContext {
    pub(super) keys: PathKeys,
    /// The client's history, with what it saw of answers since.
    pub(super) chain: HistoryHasher,
    /// The hash of what it sent.
    pub(super) sent_hash: PathHash,
    /// Whether an answer was recorded before.
    pub(super) has_answer: bool,
    /// Model, tools and options of the request, as a document of our own items.
    pub(super) request: Option<Raw>,
    /// Where its branch ended before it.
    pub(super) base: Option<NodeId>,
    /// The branch that was active before it, where it opened one.
    pub(super) active: BranchName,
    /// The exchange that it belongs to.
    pub(super) exchange: Option<ExchangeHandle>,
    /// Its mark, where other processes use the store.
    pub(super) mark: Option<Arc<StoredMark>>,
}
