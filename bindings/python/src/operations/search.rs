//! Full-text search.

use contexture::store::{HiddenContent, MatchMode, PathEnd, SearchRequest, SearchScope};
use contexture_api::ItemKind;
use contexture_api::operations::{
    MAX_NEARBY, TypedSearch, encode_hit_cursor, parse_hit_cursor, search_typed,
};
use serde::Deserialize;

use super::{Reply, Scope, parse_branch, parse_node};
use crate::failure::Failure;

/// Hits of a page, if the caller does not say how many.
const PAGE: usize = 20;

/// What to search for, and where: in all, in what a resource has, or in the conversation that the request names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HitsRequest {
    query: String,
    resource: Option<String>,
    /// Node at which the only path ends that is searched.
    at: Option<String>,
    kind: Option<ItemKind>,
    /// Whether all words are needed.
    all: bool,
    /// Whether what people may not see is searched too.
    hidden: bool,
    /// Items to show on each side of a hit.
    around: u64,
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn search(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: HitsRequest = scope.parse()?;
    if asked.around > MAX_NEARBY {
        let detail = format!("at most {MAX_NEARBY} items are shown on each side of a hit");
        return Err(Failure::argument("around", detail));
    }
    let after = asked.after.as_deref().map(|text| {
        let wrong = || Failure::argument("after", "expected the `next` of a page");
        parse_hit_cursor(text).ok_or_else(wrong)
    });
    let request = SearchRequest {
        words: match asked.all {
            true => MatchMode::All,
            false => MatchMode::Any,
        },
        kinds: asked.kind.into_iter().map(ItemKind::node_kind).collect(),
        hidden: match asked.hidden {
            true => HiddenContent::Include,
            false => HiddenContent::LeaveOut,
        },
        limit: asked.limit.unwrap_or(PAGE),
        after: after.transpose()?,
        ..SearchRequest::new(asked.query.as_str(), search_scope(scope, &asked)?)
    };
    let nearby = asked.around;
    let search = TypedSearch { request, nearby };
    let found = search_typed(scope.engine, &scope.owner()?, search).await?;
    let next = found.page.next.as_ref().map(encode_hit_cursor);
    Reply::new(&found.into_document(next))
}

fn search_scope(scope: &Scope<'_>, asked: &HitsRequest) -> Result<SearchScope, Failure> {
    if scope.request.conversation.is_none() {
        return Ok(match &asked.resource {
            Some(resource) => SearchScope::Resource(resource.clone()),
            None => SearchScope::Owner,
        });
    }
    let conversation = scope.conversation_id()?;
    let at = match (&asked.at, &scope.request.branch) {
        (Some(node), _) => PathEnd::Node(parse_node(node)?),
        (None, Some(branch)) => PathEnd::Branch(parse_branch(branch)?),
        (None, None) => return Ok(SearchScope::Conversation(conversation)),
    };
    Ok(SearchScope::Path { conversation, at })
}
