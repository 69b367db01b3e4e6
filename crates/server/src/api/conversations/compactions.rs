//! Compactions: made, listed, taken back. No model is asked: a summary of the caller's own goes before the manifest.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use contexture::engine::{CompactOptions, CompactSpan, GivenSummary};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::compile::default_target;
use crate::api::conventions::conversation_path::{
    BranchParams, ListOnBranchParams, node_id, open_conversation,
};
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::idempotency::IdempotencyKeyParam;
use crate::api::conventions::page::cut_page;
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::schema::FormatSchema;
use contexture_api::{CompactionDocument, CoverDocument, CoversDocument};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_compactions, create_compaction))
        .routes(routes!(delete_compaction))
}

/// Lists the compactions in effect on a branch.
#[utoipa::path(
    get, path = "/conversations/{conversation}/compactions", tag = "compile",
    params(("conversation" = String, Path, description = "Its id"), ListOnBranchParams),
    responses((status = 200, description = "A page, or all of them", body = CoversDocument), ReadRefusals)
)]
async fn list_compactions(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(asked): Query<ListOnBranchParams>,
) -> Result<Json<CoversDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, asked.branch.as_deref()).await?;
    let compactions = chat.compactions().await?;
    let compactions: Vec<CoverDocument> = compactions.iter().map(Into::into).collect();
    let list = format!("compactions {id} {}", chat.branch());
    let key = |one: &CoverDocument| one.compaction.clone();
    let (compactions, next) = cut_page(&owner, &list, compactions, &asked.page(), key)?;
    Ok(Json(CoversDocument { compactions, next }))
}

/// The span to compact, and the model it is compacted for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CompactDocument {
    /// Format of the requests it is made for. Default: without `model` that of the newest answer, else that of the model's provider.
    #[schema(value_type = Option<FormatSchema>)]
    to: Option<String>,
    /// Name of the model it is made for, which decides window and token counts. Default: the model of the newest answer
    /// among the branch's last 256 items.
    model: Option<String>,
    /// Size of the context window in tokens. Default: the model's.
    window: Option<u64>,
    /// Percentage of the window that stays as it is. Default 40.
    #[schema(minimum = 0, maximum = 100)]
    keep: Option<u8>,
    /// Id of the first node to cover. Default: what no longer fits, else the older half.
    first: Option<String>,
    /// Id of the last node to cover; required with `first`.
    last: Option<String>,
    /// Summary to place before the manifest. Default: none.
    summary: Option<String>,
    /// Whether to return the compaction without storing it. Default: no.
    dry_run: Option<bool>,
}

/// Covers the older part of a branch with a manifest. The messages stay in the tree.
#[utoipa::path(
    post, path = "/conversations/{conversation}/compactions", tag = "compile",
    request_body(content = CompactDocument, example = json!({"model": "claude-sonnet-5", "keep": 40, "summary": "Ada asked where her parcel is."})),
    params(("conversation" = String, Path, description = "Its id"), BranchParams, IdempotencyKeyParam),
    responses(
        (status = 200, description = "It would be this", body = CompactionDocument),
        (status = 201, description = "It is stored", body = CompactionDocument),
        WriteRefusals
    )
)]
async fn create_compaction(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Json(asked): Json<CompactDocument>,
) -> Result<impl IntoResponse, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let mut target = default_target(&chat, asked.to.as_deref(), asked.model.as_deref()).await?;
    if let Some(window) = asked.window {
        target = target.window(window);
    }
    let draft = chat
        .draft_compaction(&target, &compact_options(&asked)?)
        .await?;
    if asked.dry_run == Some(true) {
        return Ok((StatusCode::OK, Json(CompactionDocument::new(&draft, None))));
    }
    let stored = chat.store_compaction(draft).await?;
    let document = CompactionDocument::new(&stored.draft, Some(stored.node.to_string()));
    Ok((StatusCode::CREATED, Json(document)))
}

fn compact_options(asked: &CompactDocument) -> Result<CompactOptions, Problem> {
    let mut options = CompactOptions::default();
    if let Some(keep) = asked.keep {
        if keep > 100 {
            return Err(Problem::new(
                Code::BadBody,
                format!("`keep` is {keep} per cent; at most 100"),
            ));
        }
        options.retained_percent = keep;
    }
    match (&asked.first, &asked.last) {
        (None, None) => {}
        (Some(first), Some(last)) => {
            let (first, last) = (node_id(first)?, node_id(last)?);
            options.span = CompactSpan::Nodes { first, last };
        }
        _ => {
            return Err(Problem::new(
                Code::BadBody,
                "a span has both `first` and `last`",
            ));
        }
    }
    if let Some(summary) = &asked.summary {
        let summary = GivenSummary::new(summary.trim());
        let summary = summary.ok_or_else(|| Problem::new(Code::BadBody, "the summary is empty"))?;
        options.compactor = Arc::new(summary);
    }
    Ok(options)
}

/// Takes a compaction back: what it covers is shown again.
#[utoipa::path(
    delete, path = "/conversations/{conversation}/compactions/{compaction}", tag = "compile",
    params(("conversation" = String, Path, description = "Its id"), ("compaction" = String, Path, description = "Its node"), BranchParams),
    responses((status = 204, description = "It stands for nothing now"), WriteRefusals)
)]
async fn delete_compaction(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, compaction)): Path<(String, String)>,
    Query(on): Query<BranchParams>,
) -> Result<StatusCode, Problem> {
    let node = node_id(&compaction)?;
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    chat.uncompact(node).await?;
    Ok(StatusCode::NO_CONTENT)
}
