//! Full-text search.

use axum::extract::State;
use contexture::store::{
    HiddenContent, MatchMode, PathEnd, SearchCursor, SearchRequest, SearchScope,
};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::{at_branch, conversation_id, node_id};
use crate::api::conventions::error_responses::ReadRefusals;
use crate::api::conventions::page;
use crate::http::extractors::{Json, Query, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::operations::{MAX_NEARBY, TypedSearch, search_typed};
use contexture_api::{ItemKind, SearchDocument};

const LIST: &str = "search";
const PAGE: usize = 20;
/// Largest number of hits of a page whose surroundings are loaded, each by reads of its own.
const HITS_WITH_NEARBY: usize = 50;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(search_items))
}

/// The query of a search, and the items that it searches.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchParams {
    /// A question or words: any of them, best first. "Side by side" in double quotes is required, beginn* with a
    /// star, -without with a minus; `from:user`, `after:2026-05`, `before:2026-05-03`. Any text is a query. `q` means the same.
    #[serde(alias = "q")]
    query: String,
    /// Id of the only conversation to search. Default: all.
    conversation: Option<String>,
    /// With `conversation`: the name of the only branch to search.
    branch: Option<String>,
    /// With `conversation`: the id of a node; only it and what stands before it on its path is searched, and what was so then comes first.
    at: Option<String>,
    /// Resource whose conversations are searched, and no others.
    resource: Option<String>,
    /// Kind of the items to search. Default: all kinds.
    #[param(inline)]
    kind: Option<ItemKind>,
    /// Whether all words of the query are needed, literally. Default: any is enough, and rare ones count more.
    all: Option<bool>,
    /// The opposite of `all`, for clients of earlier versions.
    any: Option<bool>,
    /// Whether to search items that people may not see, too. Default: no.
    hidden: Option<bool>,
    /// Number of items to show before and after each hit, with at most 50 hits a page. Default 0.
    #[param(minimum = 0, maximum = 10)]
    around: Option<u64>,
    /// Maximum number of hits. Default 20.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// The position of a hit among the others, as a cursor stores it.
#[derive(Deserialize, Serialize)]
struct HitCursor {
    score: u32,
    created_ms: i64,
    /// Absent in cursors of earlier versions.
    #[serde(default)]
    depth: u64,
    conversation: String,
    node: String,
}

/// Searches the owner's conversations, best hits first.
#[utoipa::path(
    get, path = "/search", tag = "search", params(SearchParams),
    responses((status = 200, description = "A page", body = SearchDocument), ReadRefusals)
)]
async fn search_items(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(asked): Query<SearchParams>,
) -> Result<Json<SearchDocument>, Problem> {
    let after = match &asked.after {
        Some(cursor) => Some(to_search_cursor(&page::decode_cursor(
            &owner, LIST, cursor,
        )?)?),
        None => None,
    };
    let request = SearchRequest {
        words: if asked.all == Some(true) || asked.any == Some(false) {
            MatchMode::All
        } else {
            MatchMode::Any
        },
        kinds: asked.kind.into_iter().map(ItemKind::node_kind).collect(),
        hidden: if asked.hidden == Some(true) {
            HiddenContent::Include
        } else {
            HiddenContent::LeaveOut
        },
        limit: page::page_length(asked.limit, PAGE)?,
        after,
        ..SearchRequest::new(asked.query.as_str(), search_scope(&asked)?)
    };
    let nearby = asked.around.unwrap_or_default();
    if nearby > MAX_NEARBY || (nearby > 0 && request.limit > HITS_WITH_NEARBY) {
        let detail = format!(
            "`around` is at most {MAX_NEARBY}, with at most {HITS_WITH_NEARBY} hits a page (`limit`)"
        );
        return Err(Problem::new(Code::BadQuery, detail));
    }
    let found = search_typed(app.engine(), &owner, TypedSearch { request, nearby }).await?;
    let next = found.page.next.as_ref().map(|next| {
        let place = HitCursor {
            score: next.score,
            created_ms: next.created_ms,
            depth: next.depth,
            conversation: next.conversation.to_string(),
            node: next.node.to_string(),
        };
        page::encode_cursor(&owner, LIST, &place)
    });
    Ok(Json(found.into_document(next)))
}

fn search_scope(asked: &SearchParams) -> Result<SearchScope, Problem> {
    if let Some(at) = &asked.at {
        let (Some(id), None, None) = (&asked.conversation, &asked.branch, &asked.resource) else {
            let detail = "`at` is a node of a `conversation`, and ends a path: it needs neither `branch` nor `resource`";
            return Err(Problem::new(Code::BadQuery, detail));
        };
        return Ok(SearchScope::Path {
            conversation: conversation_id(id)?,
            at: PathEnd::Node(node_id(at)?),
        });
    }
    match (&asked.conversation, &asked.branch, &asked.resource) {
        (None, None, None) => Ok(SearchScope::Owner),
        (None, None, Some(resource)) => Ok(SearchScope::Resource(resource.clone())),
        (Some(id), None, None) => Ok(SearchScope::Conversation(conversation_id(id)?)),
        (Some(id), Some(branch), None) => Ok(SearchScope::Path {
            conversation: conversation_id(id)?,
            at: at_branch(branch)?,
        }),
        // Refused rather than ignored: a filter that does nothing would show more than was asked for.
        _ => {
            let detail = "a branch is one of a conversation, and a conversation needs no resource";
            Err(Problem::new(Code::BadQuery, detail))
        }
    }
}

fn to_search_cursor(place: &HitCursor) -> Result<SearchCursor, Problem> {
    Ok(SearchCursor {
        score: place.score,
        created_ms: place.created_ms,
        depth: place.depth,
        conversation: conversation_id(&place.conversation)?,
        node: node_id(&place.node)?,
    })
}
