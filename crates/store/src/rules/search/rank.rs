//! Ranking: takes candidates one by one and keeps the best as a page of hits.
//!
//! A backend offers what its index found, newer nodes first ([`SearchCoverage::Newest`] defines the
//! order). The ranking decides which are hits, which are the best, and when to stop.
//!
//! Not here: which conversations may be searched.

use std::cmp::{Ordering, Reverse};
use std::ops::ControlFlow;

use contexture_ir::{Audience, ConversationId, MessageId, NodeId};

use super::idf::{IdfWeight, idf_weights};
use super::match_text::{TextMatch, match_all, match_any};
use super::query::{IndexCondition, Query};
use super::searchable_text::searchable_text;
use super::snippet::build_snippet;
use crate::contract::{
    Error, HiddenContent, Hit, MatchMode, Node, NodeKind, SearchCoverage, SearchCursor,
    SearchLimits, SearchPage, SearchRequest,
};
use crate::rules::check::check_limit;

/// Checks that a search is within the limits.
pub fn check_search(request: &SearchRequest, limits: &SearchLimits) -> Result<(), Error> {
    check_limit(
        "search_query_bytes",
        limits.query_bytes,
        request.query.len(),
    )?;
    if request.words == MatchMode::Any {
        // The backend counts each phrase by a query of its own, so their number has its own limit.
        let words = Query::parse(&request.query).phrase_conditions().len();
        check_limit("search_any_words", limits.any_words, words)?;
    }
    check_limit("search_hits", limits.hits, request.limit)
}

/// A node that may be a hit.
#[derive(Clone, Debug)]
pub struct SearchCandidate<'a> {
    /// Id of the node's conversation.
    pub conversation: &'a ConversationId,
    /// Id of the node.
    pub node: NodeId,
    /// Message that the node belongs to; `None` means a message of its own.
    pub message_id: Option<MessageId>,
    /// Kind of the node's item.
    pub kind: NodeKind,
    /// Creation time of the node, in milliseconds since the Unix epoch.
    pub created_ms: i64,
    /// JSON of the node's item.
    pub json: &'a str,
}

impl<'a> SearchCandidate<'a> {
    /// Returns a stored node as a candidate.
    #[must_use]
    pub fn from_node(conversation: &'a ConversationId, node: &'a Node) -> Self {
        Self {
            conversation,
            node: node.id,
            message_id: node.message_id.clone(),
            kind: node.kind,
            created_ms: node.created_ms,
            json: &node.json,
        }
    }
}

/// A search in progress.
#[derive(Debug)]
pub struct Ranking {
    request: SearchRequest,
    limits: SearchLimits,
    query: Query,
    /// Weights of the query's phrases, with [`MatchMode::Any`] only.
    weights: Vec<IdfWeight>,
    /// Hits so far, best first, at most one more than fits the page.
    hits: Vec<Hit>,
    nodes: usize,
    bytes: usize,
    coverage: SearchCoverage,
}

impl Ranking {
    /// Starts a ranking for a `request` that is within the limits.
    #[must_use]
    pub fn new(request: SearchRequest, limits: &SearchLimits) -> Self {
        Self {
            query: Query::parse(&request.query),
            weights: Vec::new(),
            limits: limits.clone(),
            request,
            hits: Vec::new(),
            nodes: 0,
            bytes: 0,
            coverage: SearchCoverage::Whole,
        }
    }

    /// Returns the parsed query.
    #[must_use]
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Returns the phrases to count before candidates are offered: for each, the backend counts the
    /// nodes of the scope that satisfy all its conditions, which are all that are not redacted if it
    /// has none. Empty with [`MatchMode::All`].
    #[must_use]
    pub fn terms_to_count(&self) -> Vec<Vec<IndexCondition<'_>>> {
        match self.request.words {
            MatchMode::All => Vec::new(),
            MatchMode::Any => self.query.phrase_conditions(),
        }
    }

    /// Returns the number up to which to count; a phrase with so many nodes is too frequent to
    /// select any.
    #[must_use]
    pub fn count_limit(&self) -> usize {
        // One more than the limit: above it a term is too frequent to select nodes, whatever the
        // exact number.
        self.limits.any_nodes.saturating_add(1)
    }

    /// Sets the counts of the phrases, in the order of [`Ranking::terms_to_count`].
    pub fn set_counts(&mut self, counts: &[usize]) {
        self.weights = idf_weights(counts, self.limits.any_nodes);
    }

    /// Returns the conditions for an index: texts that satisfy all conditions of at least one of
    /// these lists. Empty if nothing can be found. If no index can narrow the search, one of the
    /// lists is empty and stands for all nodes that are not redacted, and is then the only one.
    #[must_use]
    pub fn index_alternatives(&self) -> Vec<Vec<IndexCondition<'_>>> {
        // An empty query finds nothing; finding everything would be a list and not a search.
        if self.query.is_empty() {
            return Vec::new();
        }
        let mut alternatives = match self.request.words {
            MatchMode::All => vec![self.query.index_conditions()],
            MatchMode::Any => {
                let both = self
                    .query
                    .phrase_conditions()
                    .into_iter()
                    .zip(&self.weights);
                // Frequent words only add to the score of what the rare ones find; otherwise a stop
                // word would fill the limit with the newest nodes.
                let wanted = both.filter(|(_, weight)| weight.selects_nodes);
                wanted.map(|(conditions, _)| conditions).collect()
            }
        };
        if alternatives.iter().any(Vec::is_empty) {
            alternatives = vec![Vec::new()];
        }
        alternatives
    }

    /// Returns whether to examine a text that has these phrases of [`Ranking::terms_to_count`]; for
    /// backends without an index.
    #[must_use]
    pub(crate) fn should_examine(&self, has: &[bool]) -> bool {
        let mut both = has.iter().zip(&self.weights);
        both.any(|(has, weight)| *has && weight.selects_nodes)
    }

    /// Returns the largest number of nodes to examine.
    #[must_use]
    pub fn node_limit(&self) -> usize {
        match self.request.words {
            MatchMode::All => self.limits.nodes,
            MatchMode::Any => self.limits.any_nodes,
        }
    }

    /// Returns whether a node passes the request's filters; offer only such nodes.
    #[must_use]
    pub fn matches_filters(&self, kind: NodeKind, audience: Audience, created_ms: i64) -> bool {
        let SearchRequest {
            kinds,
            hidden,
            since_ms,
            before_ms,
            ..
        } = &self.request;
        (kinds.is_empty() || kinds.contains(&kind))
            && (*hidden == HiddenContent::Include || audience.user)
            && since_ms.is_none_or(|since| created_ms >= since)
            && before_ms.is_none_or(|before| created_ms < before)
    }

    /// Examines a candidate; breaks once a limit is reached.
    pub fn examine_candidate(&mut self, candidate: &SearchCandidate<'_>) -> ControlFlow<()> {
        // Checked before the candidate is examined: a search that reaches the limit exactly is
        // still complete.
        if self.nodes >= self.node_limit() || self.bytes >= self.limits.bytes {
            self.coverage = SearchCoverage::Newest;
            return ControlFlow::Break(());
        }
        self.nodes += 1;
        self.bytes = self.bytes.saturating_add(candidate.json.len());
        // Derived from the item on every search and not stored, so a change of the rule rewrites no
        // data.
        let text = searchable_text(candidate.json);
        let found = match self.request.words {
            MatchMode::All => match_all(&self.query, &text),
            MatchMode::Any => match_any(&self.query, &self.weights, &text),
        };
        if let Some(found) = found {
            self.insert_hit(candidate, &text, &found);
        }
        ControlFlow::Continue(())
    }

    /// Inserts a hit if it belongs on the page.
    fn insert_hit(&mut self, candidate: &SearchCandidate<'_>, text: &str, found: &TextMatch) {
        let mut hit = Hit {
            conversation: candidate.conversation.clone(),
            node: candidate.node,
            message_id: candidate.message_id.clone(),
            kind: candidate.kind,
            score: found.score,
            snippet: Default::default(),
            created_ms: candidate.created_ms,
        };
        // Each page is cut from a new ranking, so a cursor is a position and no state is kept
        // between pages.
        let place = hit_cursor(&hit);
        let is_on_page = |after| compare_cursors(&place, after) == Ordering::Greater;
        if !self.request.after.as_ref().is_none_or(is_on_page) {
            return;
        }
        let at = self
            .hits
            .partition_point(|other| compare_cursors(&hit_cursor(other), &place) == Ordering::Less);
        // One hit beyond the page is kept, to know that there is a next page.
        if at > self.request.limit {
            return;
        }
        // Only for hits that are kept: cutting a snippet costs more than ranking.
        hit.snippet = build_snippet(text, &found.places);
        self.hits.insert(at, hit);
        self.hits.truncate(self.request.limit.saturating_add(1));
    }

    /// Returns the page with the best hits, and the cursor of the next page.
    #[must_use]
    pub fn into_page(self) -> SearchPage {
        let mut hits = self.hits;
        // The extra hit only tells that there is a next page.
        let more = hits.len() > self.request.limit;
        hits.truncate(self.request.limit);
        SearchPage {
            next: hits.last().filter(|_| more).map(hit_cursor),
            hits,
            coverage: self.coverage,
        }
    }
}

fn hit_cursor(hit: &Hit) -> SearchCursor {
    SearchCursor {
        score: hit.score,
        created_ms: hit.created_ms,
        conversation: hit.conversation.clone(),
        node: hit.node,
    }
}

/// Compares by score, best first, then newest first, then by conversation and id.
fn compare_cursors(a: &SearchCursor, b: &SearchCursor) -> Ordering {
    let key = |place: &SearchCursor| (Reverse(place.score), Reverse(place.created_ms));
    key(a)
        .cmp(&key(b))
        .then_with(|| a.conversation.cmp(&b.conversation))
        // The id makes the order total; otherwise a page could repeat or skip nodes of equal score
        // and time.
        .then_with(|| a.node.cmp(&b.node))
}
