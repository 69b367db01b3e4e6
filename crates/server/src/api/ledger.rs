//! What calls under policies cost, and what they would have cost as clients sent them.

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::chat::open_conversation;
use crate::api::page;
use crate::api::refusals::ReadRefusals;
use crate::app::App;
use crate::documents::LedgerDocument;
use crate::extract::{Json, Query, ReadAccess};
use crate::problem::Problem;
use crate::proxy::ledger;

/// The name of the list, for cursors.
const LIST: &str = "ledger";

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show))
}

/// Whose calls.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LedgerParams {
    /// The conversation. Default: all, a day each.
    conversation: Option<String>,
    /// At most so many calls, from 1 to 500. Default: 100.
    limit: Option<usize>,
    /// Where a page ended, as its `next` said.
    after: Option<String>,
}

/// The ledger: what was sent beside what came, call by call or day by day, losses included.
#[utoipa::path(
    get, path = "/ledger", tag = "requests", params(LedgerParams),
    responses((status = 200, description = "The ledger", body = LedgerDocument), ReadRefusals)
)]
async fn show(
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
