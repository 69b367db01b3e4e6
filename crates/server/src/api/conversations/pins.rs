//! Pins: listing them, pinning a node, unpinning it.

use axum::extract::State;
use axum::http::StatusCode;
use contexture::store::NodeQuery;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::{
    BranchParams, ListOnBranchParams, node_id, open_conversation,
};
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::page::cut_page;
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::Problem;
use crate::state::App;
use contexture_api::{PinDocument, PinsDocument};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_pins))
        .routes(routes!(set_pin, delete_pin))
}

/// Lists the pinned nodes of a branch.
#[utoipa::path(
    get, path = "/conversations/{conversation}/pins", tag = "conversations",
    params(("conversation" = String, Path, description = "Its id"), ListOnBranchParams),
    responses((status = 200, description = "A page, or all of them", body = PinsDocument), ReadRefusals)
)]
async fn list_pins(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(asked): Query<ListOnBranchParams>,
) -> Result<Json<PinsDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, asked.branch.as_deref()).await?;
    let pins: Vec<PinDocument> = chat.pins().await?.into_iter().map(Into::into).collect();
    let list = format!("pins {id} {}", chat.branch());
    let (pins, next) = cut_page(&owner, &list, pins, &asked.page(), |pin| pin.node.clone())?;
    Ok(Json(PinsDocument { pins, next }))
}

/// Pins a node: its round is sent whole in every call. A node that is pinned already stays so.
#[utoipa::path(
    put, path = "/conversations/{conversation}/pins/{node}", tag = "conversations",
    params(("conversation" = String, Path, description = "Its id"), ("node" = String, Path, description = "Id of the node"), BranchParams),
    responses((status = 204, description = "It is pinned"), WriteRefusals)
)]
async fn set_pin(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, node)): Path<(String, String)>,
    Query(on): Query<BranchParams>,
) -> Result<StatusCode, Problem> {
    let node = node_id(&node)?;
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    chat.pin(node).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Unpins a node: what is left out of old history may be left out of its round again. A node that is not pinned stays so.
#[utoipa::path(
    delete, path = "/conversations/{conversation}/pins/{node}", tag = "conversations",
    params(("conversation" = String, Path, description = "Its id"), ("node" = String, Path, description = "Id of the node"), BranchParams),
    responses((status = 204, description = "It is not pinned"), WriteRefusals)
)]
async fn delete_pin(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, node)): Path<(String, String)>,
    Query(on): Query<BranchParams>,
) -> Result<StatusCode, Problem> {
    let node = node_id(&node)?;
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    if !chat.unpin(node).await? {
        // A node that is not there is a mistake of the caller's; one that is not pinned is as it was asked for.
        let store = app.engine().store();
        let query = NodeQuery::Id(node);
        store.find_nodes(&owner, chat.id(), query).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
