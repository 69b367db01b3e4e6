//! What calls under policies cost, and what they would have cost as clients sent them.

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::ReadRefusals;
use crate::api::conventions::page;
use crate::http::extractors::{Json, Path, Query, ReadAccess};
use crate::problem::{Code, Problem};
use crate::proxy::ledger;
use crate::state::App;
use contexture_api::{LedgerDocument, RequestDocument};

/// The name of the list, for cursors.
const LIST: &str = "ledger";

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(show_request))
        .routes(routes!(show_ledger))
}

/// The calls of the ledger to return.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LedgerParams {
    /// Id of the conversation. Default: the sums of all conversations, day by day.
    conversation: Option<String>,
    /// Maximum number of calls, from 1 to 500. Default: 100.
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// Returns the ledger: what was sent beside what came, call by call or day by day, losses included.
#[utoipa::path(
    get, path = "/ledger", tag = "requests", params(LedgerParams),
    responses((status = 200, description = "The ledger", body = LedgerDocument), ReadRefusals)
)]
async fn show_ledger(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(whose): Query<LedgerParams>,
) -> Result<Json<LedgerDocument>, Problem> {
    let limit = page::page_length(whose.limit, 100)?;
    let after = whose.after.as_deref();
    let after = after
        .map(|after| page::decode_cursor(&owner, LIST, after))
        .transpose()?;
    let Some(id) = &whose.conversation else {
        let document = ledger::load_owner_ledger(app.engine(), &owner).await;
        return Ok(Json(document.map_err(contexture::EngineError::from)?));
    };
    let chat = open_conversation(&app, &owner, id, None).await?;
    let found =
        ledger::load_conversation_ledger(app.engine(), &owner, chat.id(), limit, after).await;
    let (document, next) = found.map_err(contexture::EngineError::from)?;
    let next = next.map(|next| page::encode_cursor(&owner, LIST, &next));
    Ok(Json(LedgerDocument { next, ..document }))
}

/// Returns a request that was forwarded, by the id in `x-contexture-request`. The newest 10,000 are known.
#[utoipa::path(
    get, path = "/requests/{request}", tag = "requests",
    params(("request" = String, Path, description = "The request's id")),
    responses((status = 200, description = "As far as it is known", body = RequestDocument), ReadRefusals)
)]
async fn show_request(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
) -> Result<Json<RequestDocument>, Problem> {
    let known = id
        .parse()
        .ok()
        .and_then(|id| app.request_outcomes().find_outcome(&owner, id));
    let none = || {
        Problem::new(
            Code::NotFound,
            format!("no request {id:?} is known any more"),
        )
    };
    known.map(Json).ok_or_else(none)
}
