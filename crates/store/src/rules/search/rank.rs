//! Ranking: takes candidates one by one and makes a page of the best.
//!
//! A backend offers what its index found, newer nodes first ([`SearchCoverage::Newest`] defines the
//! order). The ranking decides which are hits, which are the best, and when to stop. The steps of a
//! backend, of which those with a star do nothing with [`MatchMode::All`]:
//!
//! 1. [`Ranking::terms_to_count`], then [`Ranking::set_counts`] *
//! 2. [`Ranking::index_alternatives`], or what was counted ([`Ranking::selecting_phrases`]), then [`Ranking::examine_candidate`] for each node proposed
//! 3. [`Ranking::neighbours_to_read`], then [`Ranking::add_neighbour`] for each *
//! 4. [`Ranking::into_page`]
//!
//! Not here: which conversations may be searched.

use std::cmp::Reverse;
use std::ops::{ControlFlow, Range};

use contexture_ir::{Audience, ConversationId, MessageId, NodeId};

use super::dates::find_date;
use super::idf::{IdfWeight, idf_weights};
use super::match_text::{has_any_phrase, match_all, match_any};
use super::neighbours::{NodePlace, ScoreTable};
use super::query::{IndexCondition, Query};
use super::replaced::{ExaminedText, mark_replaced};
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
    check_limit(
        "search_query_bytes",
        limits.query_bytes,
        request.without.len(),
    )?;
    check_limit("search_hits", limits.hits, request.limit)
}

/// A node that may be a hit.
#[derive(Clone, Debug)]
pub struct SearchCandidate<'a> {
    /// Id of the node's conversation.
    pub conversation: &'a ConversationId,
    /// Resource of the conversation, whose statements are one person's; `None` if it has none.
    pub resource: Option<&'a str>,
    /// Id of the node.
    pub node: NodeId,
    /// Message that the node belongs to; `None` means a message of its own.
    pub message_id: Option<MessageId>,
    /// Kind of the node's item.
    pub kind: NodeKind,
    /// Depth of the node.
    pub depth: u64,
    /// Creation time of the node, in milliseconds since the Unix epoch.
    pub created_ms: i64,
    /// JSON of the node's item.
    pub json: &'a str,
}

impl<'a> SearchCandidate<'a> {
    /// Returns a stored node as a candidate.
    #[must_use]
    pub fn from_node(
        conversation: &'a ConversationId,
        resource: Option<&'a str>,
        node: &'a Node,
    ) -> Self {
        Self {
            conversation,
            resource,
            node: node.id,
            message_id: node.message_id.clone(),
            kind: node.kind,
            depth: node.depth,
            created_ms: node.created_ms,
            json: &node.json,
        }
    }
}

/// Number of phrases from which on a query is a question, whose answer may have none of its words.
const QUESTION: usize = 3;

/// A search in progress. `K` is how the backend names a node, see [`NodePlace`].
#[derive(Debug)]
pub struct Ranking<K> {
    request: SearchRequest,
    limits: SearchLimits,
    query: Query,
    /// What no hit has.
    without: Query,
    /// The time that the question names, with [`MatchMode::Any`] only.
    named_time: Option<Range<i64>>,
    /// Weights of the query's phrases, with [`MatchMode::Any`] only.
    weights: Vec<IdfWeight>,
    /// Texts that are hits, with [`MatchMode::Any`] only: their scores depend on each other.
    examined: Vec<ExaminedText<K>>,
    scores: ScoreTable<K>,
    /// Hits so far, best first, at most one more than fits the page.
    hits: Vec<Hit>,
    nodes: usize,
    bytes: usize,
    coverage: SearchCoverage,
}

impl<K: Clone + Ord> Ranking<K> {
    /// Starts a ranking for a `request` that is within the limits.
    #[must_use]
    pub fn new(request: SearchRequest, limits: &SearchLimits) -> Self {
        Self {
            query: match request.words {
                MatchMode::All => Query::parse(&request.query),
                MatchMode::Any => Query::parse_question(&request.query, limits.any_words),
            },
            without: Query::parse(&request.without),
            named_time: match request.words {
                MatchMode::All => None,
                MatchMode::Any => find_date(&request.query),
            },
            weights: Vec::new(),
            examined: Vec::new(),
            scores: ScoreTable::new(),
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
            // Every hit has what is required, so nothing else needs to select nodes.
            MatchMode::Any if self.query.has_required() => vec![self.query.required_conditions()],
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

    /// Returns which phrases of [`Ranking::terms_to_count`] select nodes, each alone: a backend that kept the nodes it
    /// counted need not ask its index again. `None` if nodes must satisfy several phrases at once, or nothing was counted.
    #[must_use]
    pub fn selecting_phrases(&self) -> Option<Vec<usize>> {
        let is_one_of_many = self.request.words == MatchMode::Any && !self.query.has_required();
        let phrases = self.weights.iter().enumerate();
        let selecting = phrases.filter(|(_, weight)| weight.selects_nodes);
        is_one_of_many.then(|| selecting.map(|(phrase, _)| phrase).collect())
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

    /// Whether the places of candidates must name the nodes before them.
    #[must_use]
    pub fn uses_neighbours(&self) -> bool {
        // A single word is asked for itself, not for what surrounds it.
        self.request.words == MatchMode::Any && self.query.phrase_count() > 1
    }

    /// Records that older nodes were not offered, since finding them costs too much.
    pub fn note_older_left_out(&mut self) {
        self.coverage = SearchCoverage::Newest;
    }

    /// Examines a candidate; breaks once a limit is reached.
    pub fn examine_candidate(
        &mut self,
        candidate: &SearchCandidate<'_>,
        mut place: NodePlace<K>,
    ) -> ControlFlow<()> {
        if !self.uses_neighbours() {
            place.before = [None, None];
        }
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
        let Some(found) = found.filter(|_| !has_any_phrase(&self.without, &text)) else {
            return ControlFlow::Continue(());
        };
        let mut score = found.score;
        // A time that the question names counts as half of the words. Nothing is excluded: people say on Monday what
        // they did on Sunday.
        if self
            .named_time
            .as_ref()
            .is_some_and(|time| time.contains(&candidate.created_ms))
        {
            score = score.saturating_add(score / 2);
        }
        let hit = hit_without_snippet(candidate, score);
        match self.request.words {
            MatchMode::All => self.insert_hit(hit, &text, &found.places),
            MatchMode::Any => self.examined.push(ExaminedText {
                place,
                hit,
                resource: candidate.resource.map(str::to_owned),
                text,
                places: found.places,
            }),
        }
        ControlFlow::Continue(())
    }

    /// Returns the nodes that were not examined and may reach the page by what their neighbours lend
    /// them: at most two for each node examined. To be called once, after all candidates.
    pub fn neighbours_to_read(&mut self) -> Vec<K> {
        let examined = self.examined.iter();
        self.scores = ScoreTable::build(examined.map(|one| (&one.place, one.hit.score)));
        let is_question = self.query.phrase_count() >= QUESTION && !self.query.has_required();
        if !is_question {
            return Vec::new();
        }
        // Only what could displace a hit of the page is read.
        let mut scores: Vec<u32> = self
            .examined
            .iter()
            .map(|one| self.scores.total(&one.place.key))
            .collect();
        let most = self
            .request
            .after
            .as_ref()
            .map_or(u32::MAX, |after| after.score);
        scores.retain(|score| *score <= most);
        scores.sort_unstable_by_key(|score| Reverse(*score));
        let least = scores.get(self.request.limit).copied().unwrap_or(1);
        let mut wanted = self.scores.newcomers(least.max(1));
        wanted.retain(|key| self.scores.total(key) <= most);
        wanted
    }

    /// Adds a node of [`Ranking::neighbours_to_read`], unless the request's filters exclude it or it
    /// has no text.
    pub fn add_neighbour(&mut self, conversation: &ConversationId, key: K, node: &Node) {
        let passes = self.matches_filters(node.kind, node.audience, node.created_ms);
        if !passes || node.redacted_ms.is_some() {
            return;
        }
        let text = searchable_text(&node.json);
        if text.trim().is_empty() || has_any_phrase(&self.without, &text) {
            return;
        }
        let candidate = SearchCandidate::from_node(conversation, None, node);
        self.examined.push(ExaminedText {
            place: NodePlace {
                key,
                before: [None, None],
            },
            hit: hit_without_snippet(&candidate, 0),
            // Only texts that were examined are compared.
            resource: None,
            text,
            places: Vec::new(),
        });
    }

    /// Inserts a hit if it belongs on the page.
    fn insert_hit(&mut self, mut hit: Hit, text: &str, places: &[Range<usize>]) {
        if !self.is_after_cursor(&hit) {
            return;
        }
        let key = rank_key(&hit);
        let at = self.hits.partition_point(|other| rank_key(other) < key);
        // One hit beyond the page is kept, to know that there is a next page.
        if at > self.request.limit {
            return;
        }
        // Only for hits that are kept: cutting a snippet costs more than ranking.
        hit.snippet = build_snippet(text, places);
        self.hits.insert(at, hit);
        self.hits.truncate(self.request.limit.saturating_add(1));
    }

    /// Whether a hit is of this page or a later one. Each page is cut from a new ranking, so a cursor is a position and no
    /// state is kept between pages.
    fn is_after_cursor(&self, hit: &Hit) -> bool {
        let after = self.request.after.as_ref();
        after.is_none_or(|after| rank_key(hit) > cursor_key(after))
    }

    /// Ranks the texts whose scores depend on each other.
    fn rank_examined(&mut self) {
        let mut examined = std::mem::take(&mut self.examined);
        for one in &mut examined {
            one.hit.score = self.scores.total(&one.place.key);
        }
        let by_rank = |examined: &mut Vec<ExaminedText<K>>| {
            examined.sort_unstable_by(|a, b| rank_key(&a.hit).cmp(&rank_key(&b.hit)));
        };
        // Best first: statements are compared among the best, and snippets are cut for few.
        by_rank(&mut examined);
        mark_replaced(&mut examined);
        by_rank(&mut examined);
        let on_page = examined
            .into_iter()
            .filter(|one| self.is_after_cursor(&one.hit));
        // One more than the page, to know that there is a next one.
        let on_page = on_page.take(self.request.limit.saturating_add(1));
        self.hits = on_page
            .map(|one| Hit {
                snippet: build_snippet(&one.text, &one.places),
                ..one.hit
            })
            .collect();
    }

    /// Returns the page with the best hits, and the cursor of the next page.
    #[must_use]
    pub fn into_page(mut self) -> SearchPage {
        if self.request.words == MatchMode::Any {
            self.rank_examined();
        }
        let mut hits = self.hits;
        // The extra hit only tells that there is a next page.
        let more = hits.len() > self.request.limit;
        hits.truncate(self.request.limit);
        SearchPage {
            next: hits.last().filter(|_| more).map(hit_cursor),
            hits,
            coverage: self.coverage,
            indexing: None,
        }
    }
}

fn hit_without_snippet(candidate: &SearchCandidate<'_>, score: u32) -> Hit {
    Hit {
        conversation: candidate.conversation.clone(),
        node: candidate.node,
        message_id: candidate.message_id.clone(),
        kind: candidate.kind,
        score,
        snippet: Default::default(),
        created_ms: candidate.created_ms,
        depth: candidate.depth,
        replaced: None,
    }
}

fn hit_cursor(hit: &Hit) -> SearchCursor {
    SearchCursor {
        score: hit.score,
        created_ms: hit.created_ms,
        depth: hit.depth,
        conversation: hit.conversation.clone(),
        node: hit.node,
    }
}

/// The order of hits: by score, best first, then newest first, then deepest first, then by conversation and id. The depth
/// tells which of two items is newer that were stored with one time. The id makes the order total; otherwise a page could
/// repeat or skip nodes of equal score and time.
type RankKey<'a> = (Reverse<(u32, i64, u64)>, &'a ConversationId, NodeId);

fn rank_key(hit: &Hit) -> RankKey<'_> {
    (
        Reverse((hit.score, hit.created_ms, hit.depth)),
        &hit.conversation,
        hit.node,
    )
}

fn cursor_key(cursor: &SearchCursor) -> RankKey<'_> {
    (
        Reverse((cursor.score, cursor.created_ms, cursor.depth)),
        &cursor.conversation,
        cursor.node,
    )
}
