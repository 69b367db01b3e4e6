//! A search as somebody typed it: the same for the command line, HTTP and MCP.
//!
//! Not here: the syntax (`contexture::store::rules::typed_request`), and how a page is shown.

use std::collections::BTreeMap;

use contexture::store::rules::{Query, split_pieces, typed_request};
use contexture::store::{Hit, MatchMode, PathEnd, SearchPage, SearchRequest, SearchScope};
use contexture::{Engine, EngineError, Owner};

use crate::documents::{NearbyDocument, SearchDocument, WordHitsDocument};
use crate::operations::nearby::load_nearby;

/// Largest number of words that are counted apart.
const WORDS_APART: usize = 8;

/// Largest number of items that are counted of one word.
const HITS_APART: usize = 1_000;

/// A search as it was asked for.
#[derive(Clone, Debug)]
pub struct TypedSearch {
    /// What was typed as its `query`, with where to look, filters and the page.
    pub request: SearchRequest,
    /// Number of items to load on each side of each hit; 0 for none, at most [`MAX_NEARBY`](super::MAX_NEARBY).
    pub nearby: u64,
}

/// A page of what was found.
#[derive(Clone, Debug)]
pub struct FoundItems {
    /// The hits of this page, best first.
    pub page: SearchPage,
    /// How many items have each word, if all were asked for and no item has them.
    pub apart: Vec<WordHitsDocument>,
    /// What stands beside each hit, in their order; empty if it was not asked for.
    pub nearby: Vec<NearbyDocument>,
}

impl FoundItems {
    /// Returns the document of the page. `next` is the cursor of the next page as the caller takes it back.
    #[must_use]
    pub fn into_document(self, next: Option<String>) -> SearchDocument {
        let mut document = SearchDocument {
            next,
            apart: self.apart,
            ..SearchDocument::from(&self.page)
        };
        for (hit, nearby) in document.hits.iter_mut().zip(self.nearby) {
            hit.nearby = Some(nearby);
        }
        document
    }
}

/// Searches for what was typed; what that says goes before what the request asks for, but for kinds, of which both are taken.
///
/// # Errors
/// Those of [`Engine::search`].
pub async fn search_typed(
    engine: &Engine,
    owner: &Owner,
    asked: TypedSearch,
) -> Result<FoundItems, EngineError> {
    let TypedSearch { request, nearby } = asked;
    let typed = typed_request(&request.query, request.scope.clone());
    // What was typed goes before what the program asks for: it is what the person sees.
    let mut kinds = request.kinds;
    kinds.extend(typed.kinds);
    let request = SearchRequest {
        query: typed.query,
        without: typed.without,
        kinds,
        since_ms: typed.since_ms.or(request.since_ms),
        before_ms: typed.before_ms.or(request.before_ms),
        ..request
    };
    let page = engine.search(owner, request.clone()).await?;
    let is_first_page = request.after.is_none() && request.limit > 0;
    let mut found = FoundItems {
        apart: Vec::new(),
        nearby: Vec::new(),
        page,
    };
    // Only an empty first page leaves the reader without a next step.
    if request.words == MatchMode::All && found.page.hits.is_empty() && is_first_page {
        found.apart = count_words_apart(engine, owner, &request).await?;
    }
    if nearby > 0 {
        let mut active = BTreeMap::new();
        for hit in &found.page.hits {
            let at = match (&request.scope, active.get(&hit.conversation)) {
                (SearchScope::Path { at, .. }, _) | (_, Some(at)) => at,
                // Asked once for each conversation of the page.
                _ => {
                    let branch = active_branch(engine, owner, hit).await?;
                    active.entry(hit.conversation.clone()).or_insert(branch)
                }
            };
            let beside = load_nearby(engine, owner, hit, at, nearby).await?;
            found.nearby.push(beside);
        }
    }
    Ok(found)
}

/// Returns the end of the active branch of a hit's conversation.
async fn active_branch(engine: &Engine, owner: &Owner, hit: &Hit) -> Result<PathEnd, EngineError> {
    let refs = engine.store().list_refs(owner, &hit.conversation).await?;
    Ok(match refs.active_branch() {
        Some(active) => PathEnd::Branch(active.name.clone()),
        None => PathEnd::Node(hit.node),
    })
}

/// Whether what was typed has no word to look for.
#[must_use]
pub fn has_only_signs(typed: &str) -> bool {
    let request = typed_request(typed, contexture::store::SearchScope::Owner);
    Query::parse(&request.query).is_empty()
}

/// Counts the items that have each word of a request; none if it has one word only.
async fn count_words_apart(
    engine: &Engine,
    owner: &Owner,
    request: &SearchRequest,
) -> Result<Vec<WordHitsDocument>, EngineError> {
    // A phrase in quotes counts as one word: torn apart it would be counted where nobody said it.
    let words: Vec<&str> = split_pieces(&request.query)
        .into_iter()
        .take(WORDS_APART)
        .collect();
    let mut counts = Vec::new();
    if words.len() < 2 {
        return Ok(counts);
    }
    for word in words {
        // With the filters of the whole request: a word that occurs elsewhere only would mislead.
        let alone = SearchRequest {
            query: word.to_owned(),
            limit: HITS_APART,
            ..request.clone()
        };
        let hits = engine.search(owner, alone).await?.hits.len();
        counts.push(WordHitsDocument {
            word: word.to_owned(),
            hits,
        });
    }
    Ok(counts)
}
