//! Requests that were forwarded, and what became of them here.

use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::error_responses::ReadRefusals;
use crate::http::extractors::{Json, Path, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use crate::state::call_log::RequestId;
use contexture_api::RequestDocument;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_request))
}

/// Returns a request that was forwarded, by the id in `x-contexture-request`. Of all but the newest 10,000 of this server only
/// what the record of calls has of it is known.
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
    let none = || {
        Problem::new(
            Code::NotFound,
            format!("no request {id:?} is known any more"),
        )
    };
    let id: RequestId = id.parse().map_err(|()| none())?;
    if let Some(known) = app.request_outcomes().find_outcome(&owner, id) {
        return Ok(Json(known));
    }
    let calls = app.engine().store().calls().ok_or_else(none)?;
    let call = calls.load_call(&owner, id.0).await;
    let call = call.map_err(contexture::EngineError::from)?;
    call.map(|call| Json(RequestDocument::from(&call)))
        .ok_or_else(none)
}
