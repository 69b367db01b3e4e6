//! Standing rules: listing them, dropping one, restoring it.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::Problem;
use crate::state::App;
use contexture_api::RulesDocument;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_rules))
        .routes(routes!(drop_rule, restore_rule))
}

/// On which branch.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RulesParams {
    /// Name of the branch. Default: the active one.
    branch: Option<String>,
}

/// Lists what the user asked to hold from then on, or said about themselves, and has not taken back.
#[utoipa::path(
    get, path = "/conversations/{conversation}/rules", tag = "conversations",
    params(("conversation" = String, Path, description = "Its id"), RulesParams),
    responses((status = 200, description = "All of them, oldest first", body = RulesDocument), ReadRefusals)
)]
async fn list_rules(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(asked): Query<RulesParams>,
) -> Result<Json<RulesDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, asked.branch.as_deref()).await?;
    Ok(Json(RulesDocument::of_rules(&chat.rules().await?)))
}

/// Drops a rule: it is not quoted any more once its message is out of view. The message stays.
#[utoipa::path(
    delete, path = "/conversations/{conversation}/rules/{rule}", tag = "conversations",
    params(("conversation" = String, Path, description = "Its id"), ("rule" = String, Path, description = "Its name: `id` in the list"), RulesParams),
    responses((status = 204, description = "It is dropped"), WriteRefusals)
)]
async fn drop_rule(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, rule)): Path<(String, String)>,
    Query(asked): Query<RulesParams>,
) -> Result<StatusCode, Problem> {
    let chat = open_conversation(&app, &owner, &id, asked.branch.as_deref()).await?;
    chat.drop_rule(&rule).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Puts a dropped rule into force again.
#[utoipa::path(
    put, path = "/conversations/{conversation}/rules/{rule}", tag = "conversations",
    params(("conversation" = String, Path, description = "Its id"), ("rule" = String, Path, description = "Its name: `id` in the list"), RulesParams),
    responses((status = 204, description = "It is in force"), WriteRefusals)
)]
async fn restore_rule(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, rule)): Path<(String, String)>,
    Query(asked): Query<RulesParams>,
) -> Result<StatusCode, Problem> {
    let chat = open_conversation(&app, &owner, &id, asked.branch.as_deref()).await?;
    chat.restore_rule(&rule).await?;
    Ok(StatusCode::NO_CONTENT)
}
