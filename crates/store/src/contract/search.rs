//! Full-text search: what is asked, what comes back.
//!
//! A capability, not part of [`Store`](crate::Store): [`Store::search`](crate::Store::search) gives
//! it where a backend has it. What a query means is one rule for all backends
//! ([`rules::Query`](crate::rules::Query), [`rules::match_all`](crate::rules::match_all)): the same texts are
//! found, with the same scores, everywhere.
//!
//! Not here: how a backend finds what to judge.

use std::ops::Range;

use async_trait::async_trait;
use contexture_ir::{ConversationId, MessageId, NodeId, Owner};

use crate::contract::{Error, NodeKind, PathEnd};

/// A store whose texts can be searched.
#[async_trait]
pub trait Search: Send + Sync {
    /// The nodes whose text has what the query asks for, best first: everything of it, or any of it
    /// ([`SearchRequest::words`]).
    ///
    /// Any text is a query, see [`rules::Query`](crate::rules::Query); one that asks for nothing
    /// finds nothing. What is searched of a node says [`rules::searchable_text`](crate::rules::searchable_text): of a long
    /// text the first [`rules::SAID_BYTES`](crate::rules::SAID_BYTES). Redacted nodes are not found.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a conversation that is not there or not the owner's, or the end of a
    /// path; [`Error::Limit`] for a query or a page beyond the limits ([`SearchLimits`]).
    async fn search_nodes(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, Error>;
}

/// What to look for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRequest {
    /// The query.
    pub query: String,
    /// Whether a text must have all of it. Default: yes.
    pub words: MatchMode,
    /// Where to look.
    pub scope: SearchScope,
    /// Nodes of these kinds only; none: of all.
    pub kinds: Vec<NodeKind>,
    /// Whether nodes count that people are not shown. Default: no.
    pub hidden: HiddenContent,
    /// Nodes of this time or later only, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Nodes before this time only, in milliseconds since the Unix epoch.
    pub before_ms: Option<i64>,
    /// At most so many hits. Default 20.
    pub limit: usize,
    /// Hits after this one: [`SearchPage::next`] of the page before.
    pub after: Option<SearchCursor>,
}

impl SearchRequest {
    /// Looks for `query`, with the defaults for the rest.
    #[must_use]
    pub fn new(query: impl Into<String>, scope: SearchScope) -> Self {
        Self {
            query: query.into(),
            words: MatchMode::default(),
            scope,
            kinds: Vec::new(),
            hidden: HiddenContent::default(),
            since_ms: None,
            before_ms: None,
            limit: 20,
            after: None,
        }
    }
}

/// How much of a query a text must have. A phrase in double quotes is one word here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// All words.
    #[default]
    All,
    /// Any word: the more of them a text has, and the rarer in the scope, the better.
    ///
    /// How often words occur is counted in the whole scope, whatever else the request leaves out. The
    /// rarest are looked for, as many as together occur in at most [`SearchLimits::any_nodes`] nodes;
    /// the others only add to the score of what those find. If even the rarest occurs in more, the
    /// newest nodes that have any are looked at ([`SearchCoverage::Newest`]).
    Any,
}

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchScope {
    /// In all conversations of the owner.
    Owner,
    /// In the owner's conversations about this resource.
    Resource(String),
    /// In one conversation, on all its branches.
    Conversation(ConversationId),
    /// On one path.
    Path {
        /// The conversation.
        conversation: ConversationId,
        /// The end of the path.
        at: PathEnd,
    },
}

/// What is done with nodes whose audience leaves out the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HiddenContent {
    /// They are not found.
    #[default]
    LeaveOut,
    /// They are found like others.
    Include,
}

/// A page of hits: by score, then the newer first, then by conversation and id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<Hit>,
    /// The cursor of the next page; `None`: this is the last.
    pub next: Option<SearchCursor>,
    /// Whether everything was looked at.
    pub coverage: SearchCoverage,
}

/// Whether everything was looked at that may be a hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchCoverage {
    /// Everything.
    #[default]
    Whole,
    /// Only as much as [`SearchLimits`] allow, newer nodes before older ones. A narrower query or
    /// scope reaches the rest.
    ///
    /// On one path where times never fall, these are the newest of it. Elsewhere what is newer is
    /// the backend's to say, by what its index has: the nodes' times, or the order of storing.
    Newest,
}

/// A node whose text matches the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its conversation.
    pub conversation: ConversationId,
    /// The node.
    pub node: NodeId,
    /// The message it belongs to; `None`: its own.
    pub message_id: Option<MessageId>,
    /// What kind of item it is.
    pub kind: NodeKind,
    /// Higher is better. Comparable within one query only; with [`MatchMode::Any`] only while nothing is
    /// added or removed.
    pub score: u32,
    /// The stretch of its text that shows why.
    pub snippet: Snippet,
    /// Its time, in milliseconds since the Unix epoch, as the writer said.
    pub created_ms: i64,
}

/// A stretch of a text with the matches in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// Plain text, about 200 bytes at most, with `…` where it was cut. Not escaped for anything.
    pub text: String,
    /// The matches: ranges of bytes of `text`, in order, not overlapping.
    pub matches: Vec<Range<usize>>,
}

/// A hit's place among the others. Any value is a valid place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchCursor {
    /// Its score.
    pub score: u32,
    /// Its time.
    pub created_ms: i64,
    /// Its conversation.
    pub conversation: ConversationId,
    /// The node.
    pub node: NodeId,
}

/// What one search may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Bytes of a query. Default 4 KiB.
    pub query_bytes: usize,
    /// Hits of a page. Default 1,000.
    pub hits: usize,
    /// Nodes that are judged; see [`SearchCoverage::Newest`]. Default 10,000.
    pub nodes: usize,
    /// Bytes of items that are judged; see [`SearchCoverage::Newest`]. Default 32 MiB.
    pub bytes: usize,
    /// Different words of a query of which any will do. Default 32.
    pub any_words: usize,
    /// Nodes that are judged where any word will do; see [`MatchMode::Any`]. Default 1,000.
    pub any_nodes: usize,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self {
            query_bytes: 4 << 10,
            hits: 1000,
            nodes: 10_000,
            bytes: 32 << 20,
            any_words: 32,
            any_nodes: 1000,
        }
    }
}
