//! Full-text search: requests, limits and results.
//!
//! A capability, not part of [`Store`](crate::Store): [`Store::search`](crate::Store::search)
//! returns it where a backend has it. All backends follow one rule for what a query means
//! ([`rules::Query`](crate::rules::Query), [`rules::match_all`](crate::rules::match_all)): unless a
//! limit cuts the search short, they find the same texts with the same scores.
//!
//! Not here: how a backend selects candidates.

use std::ops::Range;

use async_trait::async_trait;
use contexture_ir::{ConversationId, MessageId, NodeId, Owner};

use crate::contract::{Error, NodeKind, PathEnd};

/// A store whose texts can be searched.
#[async_trait]
pub trait Search: Send + Sync {
    /// Finds the nodes whose text matches the query, best first: all of its words or any of them
    /// ([`SearchRequest::words`]).
    ///
    /// Any text is a query, see [`rules::Query`](crate::rules::Query); one without words finds
    /// nothing. Of each node, the text that
    /// [`rules::searchable_text`](crate::rules::searchable_text) returns is searched, up to
    /// [`rules::MAX_SEARCHED_BYTES`](crate::rules::MAX_SEARCHED_BYTES). Redacted nodes are not found.
    ///
    /// A search does not wait while the index is rebuilt, as after an upgrade: it reports the progress
    /// ([`SearchPage::indexing`]), and the index is rebuilt in the background. What is appended meanwhile is found at once.
    ///
    /// The cost is bounded in nodes ([`SearchLimits`]), not in time, so the answer depends only on
    /// what is stored: an index is asked for prefixes of three letters or more, and only for two of
    /// them; others are looked for in the nodes that the rest of the query selects, or else in the
    /// newest ones.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a conversation, or an end of a path, that does not exist or belongs
    /// to another owner; [`Error::Limit`] for a query or a page beyond the limits
    /// ([`SearchLimits`]).
    async fn search_nodes(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, Error>;
}

/// Query of a search, with its scope, filters and page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRequest {
    /// Text to search for; any text is a valid query.
    pub query: String,
    /// Whether a text must match all words of the query or any of them. Default: any, best first.
    pub words: MatchMode,
    /// Words and phrases that no hit has, as a query; empty for none.
    pub without: String,
    /// Conversations or path to search in.
    pub scope: SearchScope,
    /// Only nodes of these kinds; empty for all kinds.
    pub kinds: Vec<NodeKind>,
    /// Whether to find nodes that people are not shown. Default: no.
    pub hidden: HiddenContent,
    /// Only nodes of this time or later, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Only nodes before this time, in milliseconds since the Unix epoch.
    pub before_ms: Option<i64>,
    /// Largest number of hits of a page. Default 20.
    pub limit: usize,
    /// Cursor of the page before, from [`SearchPage::next`]; `None` for the first page.
    pub after: Option<SearchCursor>,
}

impl SearchRequest {
    /// Returns a request for `query`, with the defaults for the rest.
    #[must_use]
    pub fn new(query: impl Into<String>, scope: SearchScope) -> Self {
        Self {
            query: query.into(),
            words: MatchMode::default(),
            without: String::new(),
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

/// How much of a query a text must match. A phrase in double quotes counts as one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// All words of the query, literally.
    All,
    /// Any word: the more of them a text has, and the rarer they are in the scope, the better.
    ///
    /// Words are compared by their stems; function words of English count only if there are no
    /// others; what is in double quotes is required, and literal, as a beginning with a star is. Of
    /// a longer query the first [`SearchLimits::any_words`] words are used.
    ///
    /// The nodes beside a node on its path, at distances one and two, add to its score. A query of
    /// three words or more is a question: what was said before a text that has its words may then
    /// be a hit without having one.
    ///
    /// The frequency of words is counted in the whole scope, whatever else the request leaves out.
    /// Only the rarest words select nodes, as many words as together occur in at most
    /// [`SearchLimits::any_nodes`] nodes; the others only add to the score of those nodes. If even
    /// the rarest word occurs in more nodes, the newest nodes that have any word are examined
    /// ([`SearchCoverage::Newest`]).
    #[default]
    Any,
}

/// Conversations or path to search in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchScope {
    /// All conversations of the owner.
    Owner,
    /// The owner's conversations with this resource.
    Resource(String),
    /// One conversation, on all its branches.
    Conversation(ConversationId),
    /// One path of a conversation.
    Path {
        /// Id of the conversation.
        conversation: ConversationId,
        /// End of the path.
        at: PathEnd,
    },
}

/// Treatment of nodes whose audience excludes the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HiddenContent {
    /// Such nodes are not found.
    #[default]
    LeaveOut,
    /// Such nodes are found like others.
    Include,
}

/// A page of hits: by score, then newer ones first, then deeper ones, then by conversation and id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// Hits of the page, best first.
    pub hits: Vec<Hit>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<SearchCursor>,
    /// Whether all possible hits were examined.
    pub coverage: SearchCoverage,
    /// Progress of the index of texts while it is rebuilt and some conversations in scope are not fully indexed: of these, only
    /// what was stored since the rebuild began is found. `None` if all are indexed.
    pub indexing: Option<IndexProgress>,
}

impl SearchPage {
    /// Returns whether nothing was left out: all possible hits were examined, and the index is whole.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.coverage == SearchCoverage::Whole && self.indexing.is_none()
    }
}

/// How far the index of texts is, in conversations of a search's scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexProgress {
    /// Number of conversations whose texts are all in the index.
    pub indexed: u64,
    /// Number of all conversations in scope.
    pub conversations: u64,
}

/// Whether all possible hits were examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchCoverage {
    /// All possible hits were examined.
    #[default]
    Whole,
    /// Not all possible hits were examined, newer ones before older ones: [`SearchLimits`] were reached, or, in a database
    /// of many owners, the index had too many matches of other owners. A narrower query or scope reaches the rest.
    ///
    /// On one path whose times never decrease, these are its newest nodes. Elsewhere the order
    /// depends on the backend's index: by the nodes' times, on a path by their places in the tree, or
    /// by the order of storing. Where no
    /// index narrows a query, because all its words are prefixes of one or two letters, it may also
    /// be by the last change of the conversations.
    Newest,
}

/// A node whose text matches the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Id of the node's conversation.
    pub conversation: ConversationId,
    /// Id of the node.
    pub node: NodeId,
    /// Message that the node belongs to; `None` means a message of its own.
    pub message_id: Option<MessageId>,
    /// Kind of the node's item.
    pub kind: NodeKind,
    /// Score of the match; higher is better. Comparable within one query only; with
    /// [`MatchMode::Any`] only while nothing is added or removed.
    pub score: u32,
    /// Part of the text that shows the match.
    pub snippet: Snippet,
    /// Creation time of the node in milliseconds since the Unix epoch, as given by the writer.
    pub created_ms: i64,
    /// Depth of the node on its path, from 1. Of nodes with one time, which an import may give to all, a deeper one comes
    /// first.
    pub depth: u64,
    /// The statement that replaced what this one says, if one of the best hits did; with
    /// [`MatchMode::Any`] only.
    pub replaced: Option<ReplacingStatement>,
}

/// A newer statement of the same person about the same thing, such as an address or a meeting's
/// time. What it replaced was so until then.
///
/// All user messages of one conversation, and of all conversations with the same resource, count as one person's: an owner
/// may have many users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacingStatement {
    /// Id of the conversation of the newer statement.
    pub conversation: ConversationId,
    /// Id of its node.
    pub node: NodeId,
    /// Its creation time in milliseconds since the Unix epoch.
    pub created_ms: i64,
}

/// Part of a text with the matches in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snippet {
    /// Plain text, at most about 200 bytes, with `…` where it was cut. Nothing in it is escaped.
    pub text: String,
    /// Matches as byte ranges of `text`, in order, not overlapping.
    pub matches: Vec<Range<usize>>,
}

/// Position of a hit in the ranking, after which the next page begins. Any combination of values is
/// valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchCursor {
    /// Score of the hit.
    pub score: u32,
    /// Creation time of the hit's node, in milliseconds since the Unix epoch.
    pub created_ms: i64,
    /// Depth of the hit's node.
    pub depth: u64,
    /// Id of the node's conversation.
    pub conversation: ConversationId,
    /// Id of the node.
    pub node: NodeId,
}

/// Limits on the cost of one search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchLimits {
    /// Largest query, in bytes. Default 4 KiB.
    pub query_bytes: usize,
    /// Largest number of hits of a page. Default 1,000.
    pub hits: usize,
    /// Largest number of nodes to examine; see [`SearchCoverage::Newest`]. Default 10,000.
    pub nodes: usize,
    /// Largest total size of the items to examine, in bytes; see [`SearchCoverage::Newest`]. Default 32 MiB.
    pub bytes: usize,
    /// Largest number of different words of a query that [`MatchMode::Any`] uses, the first ones.
    /// Default 32.
    pub any_words: usize,
    /// Largest number of nodes to examine with [`MatchMode::Any`]. Default 1,000.
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
