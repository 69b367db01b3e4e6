//! Branches: names that move with each append; and going back, which makes one.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{ETAG, LOCATION};
use axum::response::IntoResponse;
use contexture::store::{EntityKind, Error as StoreError};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::{BranchParams, node_id, open_conversation};
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::etag;
use crate::api::conventions::idempotency::IdempotencyKeyParam;
use crate::api::conventions::page::{PageParams, cut_page};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::{BranchDocument, BranchesDocument};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_branches, create_branch))
        .routes(routes!(show_branch, delete_branch))
        .routes(routes!(activate_branch))
        .routes(routes!(rewind_conversation))
}

/// Lists the branches of a conversation.
#[utoipa::path(
    get, path = "/conversations/{conversation}/branches", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), PageParams),
    responses((status = 200, description = "A page, or all of them", body = BranchesDocument), ReadRefusals)
)]
async fn list_branches(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(asked): Query<PageParams>,
) -> Result<Json<BranchesDocument>, Problem> {
    let refs = open_conversation(&app, &owner, &id, None)
        .await?
        .refs()
        .await?;
    let branches: Vec<BranchDocument> = refs.branches.iter().map(Into::into).collect();
    let list = format!("branches {id}");
    let (branches, next) = cut_page(&owner, &list, branches, &asked, |one| one.name.clone())?;
    Ok(Json(BranchesDocument { branches, next }))
}

/// A branch to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewBranchDocument {
    /// Name of the new branch.
    name: String,
    /// Name of the branch at whose head it begins. Default: the active one.
    from: Option<String>,
    /// Id of the node at which it begins, instead of a branch.
    at: Option<String>,
}

/// Creates a branch, without switching to it.
#[utoipa::path(
    post, path = "/conversations/{conversation}/branches", tag = "branches",
    request_body(content = NewBranchDocument, example = json!({"name": "shorter-answer", "from": "main"})),
    params(("conversation" = String, Path, description = "Its id"), IdempotencyKeyParam),
    responses(
        (status = 201, description = "It was made", body = BranchDocument, headers(("location" = String, description = "Its path"))),
        WriteRefusals
    )
)]
async fn create_branch(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    Json(asked): Json<NewBranchDocument>,
) -> Result<impl IntoResponse, Problem> {
    let chat = open_conversation(&app, &owner, &id, asked.from.as_deref()).await?;
    let base = match &asked.at {
        Some(node) => Some(node_id(node)?),
        None => chat.head().await?,
    };
    let branch = chat.create_branch_at(&asked.name, base).await?;
    let location = format!("/api/v1/conversations/{id}/branches/{}", branch.name);
    Ok((
        StatusCode::CREATED,
        [(LOCATION, location)],
        Json(BranchDocument::from(&branch)),
    ))
}

/// Returns a branch of a conversation.
#[utoipa::path(
    get, path = "/conversations/{conversation}/branches/{branch}", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), ("branch" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "It", body = BranchDocument, headers(("etag" = String, description = "Its head, for `if-match`"))),
        ReadRefusals
    )
)]
async fn show_branch(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path((id, name)): Path<(String, String)>,
) -> Result<impl IntoResponse, Problem> {
    let chat = open_conversation(&app, &owner, &id, Some(&name)).await?;
    let refs = chat.refs().await?;
    let found = refs.find_branch(&chat.branch());
    let found = found.ok_or_else(|| StoreError::not_found(EntityKind::Branch, &name))?;
    Ok((
        [(ETAG, etag::head_etag(found.head))],
        Json(BranchDocument::from(found)),
    ))
}

/// Deletes a branch's name; what it led to stays. The active branch is not deleted.
#[utoipa::path(
    delete, path = "/conversations/{conversation}/branches/{branch}", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), ("branch" = String, Path, description = "Its name")),
    responses((status = 204, description = "The name is gone"), WriteRefusals)
)]
async fn delete_branch(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    open_conversation(&app, &owner, &id, None)
        .await?
        .delete_branch(&name)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a branch the active one.
#[utoipa::path(
    post, path = "/conversations/{conversation}/branches/{branch}/activate", tag = "branches",
    params(("conversation" = String, Path, description = "Its id"), ("branch" = String, Path, description = "Its name"), IdempotencyKeyParam),
    responses((status = 200, description = "It is active", body = BranchDocument), WriteRefusals)
)]
async fn activate_branch(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, name)): Path<(String, String)>,
) -> Result<Json<BranchDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, None).await?;
    Ok(Json((&chat.switch_branch(&name).await?).into()))
}

/// The point to go back to: exactly one of the fields is given.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RewindDocument {
    /// Id of the message with which the new branch ends.
    message: Option<String>,
    /// Id of the node with which the new branch ends.
    node: Option<String>,
    /// Whether to go back to before the first message: the new branch is empty.
    #[serde(default)]
    beginning: bool,
}

/// Goes back: creates a branch that ends there, and makes it active. What came after stays on its branch.
#[utoipa::path(
    post, path = "/conversations/{conversation}/rewind", tag = "branches",
    request_body(content = RewindDocument, example = json!({"message": "m1"})),
    params(("conversation" = String, Path, description = "Its id"), BranchParams, IdempotencyKeyParam),
    responses((status = 201, description = "The new branch", body = BranchDocument), WriteRefusals)
)]
async fn rewind_conversation(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Json(asked): Json<RewindDocument>,
) -> Result<impl IntoResponse, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let branch = match (&asked.message, &asked.node, asked.beginning) {
        (Some(message), None, false) => chat.rewind(message).await?,
        (None, Some(node), false) => chat.rewind_to(node_id(node)?).await?,
        (None, None, true) => chat.clear().await?,
        // Refused rather than ranked: who names two places meant only one of them.
        _ => {
            return Err(Problem::new(
                Code::BadBody,
                "expected one of `message`, `node` and `beginning`",
            ));
        }
    };
    Ok((StatusCode::CREATED, Json(BranchDocument::from(&branch))))
}
