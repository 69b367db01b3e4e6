//! Full-text search.

use axum::extract::State;
use contexture::store::{HiddenContent, MatchMode, SearchCursor, SearchRequest, SearchScope};
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
use contexture_api::operations::search_typed;
use contexture_api::{ItemKind, SearchDocument};

const LIST: &str = "search";
const PAGE: usize = 20;

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
    let (found, apart) = search_typed(app.engine(), &owner, request).await?;
    let next = found.next.as_ref().map(|next| {
        let place = HitCursor {
            score: next.score,
            created_ms: next.created_ms,
            conversation: next.conversation.to_string(),
            node: next.node.to_string(),
        };
        page::encode_cursor(&owner, LIST, &place)
    });
    Ok(Json(SearchDocument {
        next,
        apart,
        ..SearchDocument::from(&found)
    }))
}

fn search_scope(asked: &SearchParams) -> Result<SearchScope, Problem> {
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
        conversation: conversation_id(&place.conversation)?,
        node: node_id(&place.node)?,
    })
}
