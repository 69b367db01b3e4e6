//! A conversation's tree: its messages with the names that point to them, a page at a time.

use axum::extract::State;
use contexture::engine::tree::{TreeEntries, layout_rows, load_tree, page_of_entries as page_of};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::{node_id, open_conversation};
use crate::api::conventions::error_responses::ReadRefusals;
use crate::api::conventions::page;
use crate::http::extractors::{Json, Path, Query, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::LogDocument;

/// Calls of a conversation that are looked through for those of its messages.
const CALLS: usize = 500;
const LIST: &str = "log";
const PAGE: usize = 50;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_log))
}

/// The page of the log to return.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LogParams {
    /// Value of `next` of the previous page. Default: from the newest.
    after: Option<String>,
    /// Maximum number of messages. Default 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Whether to list also what only changes state (pins, runs, options), an entry each. Default: false.
    state: Option<bool>,
    /// Whether to add to each message what its calls used and cost, of the conversation's newest 500 calls. Default: false.
    usage: Option<bool>,
}

/// A conversation's tree: messages of all branches, newest first, children before parents. Each page reads the whole tree.
#[utoipa::path(
    get, path = "/conversations/{conversation}/log", tag = "messages",
    params(("conversation" = String, Path, description = "Its id"), LogParams),
    responses((status = 200, description = "A page of it", body = LogDocument), ReadRefusals)
)]
async fn show_log(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(listing): Query<LogParams>,
) -> Result<Json<LogDocument>, Problem> {
    let limit = page::page_length(listing.limit, PAGE)?;
    let chat = open_conversation(&app, &owner, &id, None).await?;
    let list = format!("{LIST} {id}");
    let after = match &listing.after {
        Some(cursor) => {
            let place: String = page::decode_cursor(&owner, &list, cursor)?;
            Some(node_id(&place)?)
        }
        None => None,
    };
    let tree = load_tree(&chat).await?;
    let covers = chat.compactions().await?;
    let mut entries = TreeEntries::from_tree(&tree);
    if listing.state != Some(true) {
        entries = entries.without_state_rows();
    }
    entries.mark_pinned(&chat.pins().await?);
    let shown = page_of(&layout_rows(&entries), &entries, after, limit).ok_or_else(|| {
        let detail = "what this cursor leads to is gone: begin again without `after`";
        Problem::new(Code::BadCursor, detail)
    })?;
    let mut document = LogDocument::new(chat.id(), &tree, &entries, &shown, &covers)?;
    if listing.usage == Some(true) {
        document.add_usage(&chat.newest_calls(CALLS).await?);
    }
    let last = document.entries.last().filter(|_| document.hidden > 0);
    document.next = last.map(|last| page::encode_cursor(&owner, &list, &last.id));
    Ok(Json(document))
}
