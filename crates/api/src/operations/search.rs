//! A search as somebody typed it: the same for the command line, HTTP and MCP.
//!
//! Not here: the syntax (`contexture::store::rules::typed_request`), and how a page is shown.

use contexture::store::rules::{Query, typed_request};
use contexture::store::{MatchMode, SearchPage, SearchRequest};
use contexture::{Engine, EngineError, Owner};

use crate::documents::WordHitsDocument;

/// Largest number of words that are counted apart.
const WORDS_APART: usize = 8;

/// Largest number of items that are counted of one word.
const HITS_APART: usize = 1_000;

/// Searches for what was typed as `request.query`, whose filters are added to those of the request.
/// The page comes with how many items have each word, if all were asked for and no item has them.
///
/// # Errors
///
/// Those of [`Engine::search`].
pub async fn search_typed(
    engine: &Engine,
    owner: &Owner,
    request: SearchRequest,
) -> Result<(SearchPage, Vec<WordHitsDocument>), EngineError> {
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
    let mut apart = Vec::new();
    // Only an empty first page leaves the reader without a next step.
    if request.words == MatchMode::All && page.hits.is_empty() && is_first_page {
        apart = count_words_apart(engine, owner, &request).await?;
    }
    Ok((page, apart))
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
    let words: Vec<&str> = request.query.split_whitespace().take(WORDS_APART).collect();
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
