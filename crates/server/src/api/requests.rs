//! Requests that were passed on to providers, and what became of them here.

use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::refusals::ReadRefusals;
use crate::app::App;
use crate::documents::RequestDocument;
use crate::extract::{Json, Path, ReadAccess};
use crate::problem::{Code, Problem};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show))
}

/// A request that was passed on, by the id in `x-contexture-request`. The newest 10,000 are known.
#[utoipa::path(
    get, path = "/requests/{request}", tag = "requests",
    params(("request" = String, Path, description = "The request's id")),
    responses((status = 200, description = "As far as it is known", body = RequestDocument), ReadRefusals)
)]
async fn show(
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
