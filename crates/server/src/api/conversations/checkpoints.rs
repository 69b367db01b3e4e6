//! Checkpoints: names that stay where they are put, and going back to them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use contexture::EngineError;
use contexture::ir::CheckpointName;
use contexture::store::{EntityKind, Error as StoreError};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::idempotency::IdempotencyKeyParam;
use crate::api::conventions::page::{PageParams, cut_page};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::Problem;
use crate::state::App;
use contexture_api::{BranchDocument, CheckpointDocument, CheckpointsDocument};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_checkpoints))
        .routes(routes!(show_checkpoint, set_checkpoint, delete_checkpoint))
        .routes(routes!(restore_checkpoint))
}

/// Lists the checkpoints of a conversation.
#[utoipa::path(
    get, path = "/conversations/{conversation}/checkpoints", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), PageParams),
    responses((status = 200, description = "A page, or all of them", body = CheckpointsDocument), ReadRefusals)
)]
async fn list_checkpoints(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(asked): Query<PageParams>,
) -> Result<Json<CheckpointsDocument>, Problem> {
    let refs = open_conversation(&app, &owner, &id, None)
        .await?
        .refs()
        .await?;
    let checkpoints: Vec<CheckpointDocument> = refs.checkpoints.iter().map(Into::into).collect();
    let (list, key) = (format!("checkpoints {id}"), |one: &CheckpointDocument| {
        one.name.clone()
    });
    let (checkpoints, next) = cut_page(&owner, &list, checkpoints, &asked, key)?;
    Ok(Json(CheckpointsDocument { checkpoints, next }))
}

/// Returns a checkpoint of a conversation.
#[utoipa::path(
    get, path = "/conversations/{conversation}/checkpoints/{checkpoint}", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), ("checkpoint" = String, Path, description = "Its name")),
    responses((status = 200, description = "It", body = CheckpointDocument), ReadRefusals)
)]
async fn show_checkpoint(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path((id, name)): Path<(String, String)>,
) -> Result<Json<CheckpointDocument>, Problem> {
    let name = CheckpointName::new(&name).map_err(EngineError::from)?;
    let refs = open_conversation(&app, &owner, &id, None)
        .await?
        .refs()
        .await?;
    let found = refs
        .checkpoints
        .iter()
        .find(|checkpoint| checkpoint.name == name);
    let found = found.ok_or_else(|| StoreError::not_found(EntityKind::Checkpoint, &name))?;
    Ok(Json(found.into()))
}

/// Where a checkpoint is set, and whether it may be moved there.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SetCheckpointParams {
    /// Name of the branch. Default: the active one.
    branch: Option<String>,
    /// Whether a checkpoint that has the name already is moved; otherwise it is refused with 409 unless it points there
    /// already. Default: false.
    r#move: Option<bool>,
}

/// Sets a checkpoint to the head of a branch. One that has the name already is moved only on request.
#[utoipa::path(
    put, path = "/conversations/{conversation}/checkpoints/{checkpoint}", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), ("checkpoint" = String, Path, description = "Its name"), SetCheckpointParams),
    responses((status = 200, description = "It points there", body = CheckpointDocument), WriteRefusals)
)]
async fn set_checkpoint(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, name)): Path<(String, String)>,
    Query(set): Query<SetCheckpointParams>,
) -> Result<Json<CheckpointDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, set.branch.as_deref()).await?;
    Ok(Json(match set.r#move {
        Some(true) => (&chat.move_checkpoint(&name).await?).into(),
        _ => (&chat.checkpoint(&name).await?).into(),
    }))
}

/// Deletes a checkpoint's name; the node it points to stays.
#[utoipa::path(
    delete, path = "/conversations/{conversation}/checkpoints/{checkpoint}", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), ("checkpoint" = String, Path, description = "Its name")),
    responses((status = 204, description = "The name is gone"), WriteRefusals)
)]
async fn delete_checkpoint(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    open_conversation(&app, &owner, &id, None)
        .await?
        .delete_checkpoint(&name)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Goes back to a checkpoint: creates a branch that ends there, and makes it active.
#[utoipa::path(
    post, path = "/conversations/{conversation}/checkpoints/{checkpoint}/restore", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), ("checkpoint" = String, Path, description = "Its name"), IdempotencyKeyParam),
    responses((status = 201, description = "The new branch", body = BranchDocument), WriteRefusals)
)]
async fn restore_checkpoint(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, name)): Path<(String, String)>,
) -> Result<impl IntoResponse, Problem> {
    let chat = open_conversation(&app, &owner, &id, None).await?;
    let branch = chat.restore(&name).await?;
    Ok((StatusCode::CREATED, Json(BranchDocument::from(&branch))))
}
