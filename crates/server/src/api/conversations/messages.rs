//! Messages and items: read, and appended.

use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use contexture::Owner;
use contexture::engine::{MessageView, OlderMessages};
use contexture::store::{NodeQuery, PathEnd, ReadRequest, Span};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::{
    BranchParams, conversation_id, node_id, open_conversation,
};
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::idempotency::{IdempotencyKeyParam, OperationId};
use crate::api::conventions::{etag, page};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::operations::{AppendOptions, OperationError, append_messages as append};
use contexture_api::{
    AppendDocument, MessagesDocument, NodeDocument, NodesDocument, SavedDocument,
};

const LIST: &str = "items";
const MESSAGES: &str = "messages";
const PAGE: usize = 100;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_messages, append_messages))
        .routes(routes!(list_items))
        .routes(routes!(show_item))
}

/// The audience and the branch of the messages.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MessagesParams {
    /// Name of the branch. Default: the active one.
    branch: Option<String>,
    /// Audience that the messages are for. Default: `user`.
    #[param(inline)]
    audience: Option<Audience>,
    /// Maximum number of messages, the newest first: the page has them in their order. Default: all, or 100 with `after`.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page: the messages before those. Default: the newest.
    after: Option<String>,
}

/// The end of a page of messages: the head of its path, so that all pages are of one path, and the depth of the last node.
#[derive(Deserialize, Serialize)]
struct MessageCursor {
    conversation: String,
    head: String,
    depth: u64,
}

/// The audience that messages are shown to.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Audience {
    /// A person, who does not see what the host added for the model.
    User,
    /// A model, which does not see what is meant for people only.
    Model,
}

/// Returns the messages of a branch, in the format of the AI SDK: all, or a page from the newest back, which reads no more of the
/// path than it shows.
#[utoipa::path(
    get, path = "/conversations/{conversation}/messages", tag = "messages",
    params(("conversation" = String, Path, description = "Its id"), MessagesParams),
    responses((status = 200, description = "All of them, or a page", body = MessagesDocument), ReadRefusals)
)]
async fn list_messages(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(viewing): Query<MessagesParams>,
) -> Result<Json<MessagesDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, viewing.branch.as_deref()).await?;
    let audience = match viewing.audience {
        None | Some(Audience::User) => MessageView::User,
        Some(Audience::Model) => MessageView::Model,
    };
    let branch = chat.branch().to_string();
    if viewing.limit.is_none() && viewing.after.is_none() {
        let newest = chat.message_page(audience, None, PAGE).await?;
        let messages = match newest.older {
            None => newest.messages,
            Some(_) => {
                let read = |_| async move { chat.messages(audience).await };
                app.run_stored_work(&owner, read).await?
            }
        };
        return Ok(Json(MessagesDocument {
            branch,
            messages,
            next: None,
        }));
    }
    let before = match &viewing.after {
        Some(cursor) => Some(older_messages(&owner, &id, cursor)?),
        None => None,
    };
    let limit = page::page_length(viewing.limit, PAGE)?;
    let found = chat.message_page(audience, before, limit).await?;
    let next = found.older.map(|older| {
        let place = MessageCursor {
            conversation: id.clone(),
            head: older.head.to_string(),
            depth: older.depth,
        };
        page::encode_cursor(&owner, MESSAGES, &place)
    });
    Ok(Json(MessagesDocument {
        branch,
        messages: found.messages,
        next,
    }))
}

fn older_messages(owner: &Owner, id: &str, cursor: &str) -> Result<OlderMessages, Problem> {
    let place: MessageCursor = page::decode_cursor(owner, MESSAGES, cursor)?;
    check_conversation(id, &place.conversation)?;
    Ok(OlderMessages {
        head: node_id(&place.head)?,
        depth: place.depth,
    })
}

/// A cursor's checksum covers the owner and the list's name, which is the same for all conversations.
fn check_conversation(id: &str, of_cursor: &str) -> Result<(), Problem> {
    match of_cursor == id {
        true => Ok(()),
        false => Err(Problem::new(
            Code::BadCursor,
            "this cursor is of another conversation",
        )),
    }
}

/// Appends messages and items to a branch.
#[utoipa::path(
    post, path = "/conversations/{conversation}/messages", tag = "messages",
    request_body(content = AppendDocument, example = json!({
        "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Where is my parcel?"}]}],
        "items": [
            {"type": "function_call", "call_id": "call_1", "name": "track", "arguments": "{\"order\": \"W8342\"}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "out for delivery"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It arrives today."}]},
        ],
    })),
    params(
        ("conversation" = String, Path, description = "Its id"), BranchParams, IdempotencyKeyParam,
        ("if-match" = Option<String>, Header, description = "The head that the branch must still have, as its `etag` says"),
    ),
    responses(
        (status = 201, description = "They are stored", body = SavedDocument, headers(("etag" = String, description = "The head now"))),
        WriteRefusals
    )
)]
async fn append_messages(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    headers: HeaderMap,
    operation: OperationId,
    Json(asked): Json<AppendDocument>,
) -> Result<impl IntoResponse, Problem> {
    let expected = etag::expected_head(&headers)?;
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let options = AppendOptions {
        idempotency_key: Some(operation.0),
        expected_head: expected,
        max_items: Some(app.config().server.limits.append_items),
    };
    let saved = append(&chat, &asked, options).await;
    let saved = saved.map_err(|error| match (error, expected) {
        (OperationError::Engine(error), Some(_)) => etag::precondition_problem(error),
        (error, _) => error.into(),
    })?;
    let head = saved.head.as_deref().map(node_id).transpose()?;
    let head = [(ETAG, etag::head_etag(head))];
    Ok((StatusCode::CREATED, head, Json(saved)))
}

/// The items to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListItemsParams {
    /// Name of the branch. Default: the active one.
    branch: Option<String>,
    /// Id of the node at which the path ends, instead of a branch.
    at: Option<String>,
    /// Maximum number of items. Default 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// The end of a page: the head of its path, so that all pages are of one path, and the depth to continue from.
#[derive(Deserialize, Serialize)]
struct ItemCursor {
    conversation: String,
    head: String,
    depth: u64,
}

/// Lists the items of a path, oldest first.
#[utoipa::path(
    get, path = "/conversations/{conversation}/items", tag = "messages",
    params(("conversation" = String, Path, description = "Its id"), ListItemsParams),
    responses(
        (status = 200, description = "A page", body = NodesDocument, headers(("etag" = String, description = "The head of the path"))),
        ReadRefusals
    )
)]
async fn list_items(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(listing): Query<ListItemsParams>,
) -> Result<impl IntoResponse, Problem> {
    let limit = page::page_length(listing.limit, PAGE)?;
    let chat = open_conversation(&app, &owner, &id, listing.branch.as_deref()).await?;
    let (at, span) = match (&listing.after, &listing.at) {
        (Some(cursor), _) => {
            let place: ItemCursor = page::decode_cursor(&owner, LIST, cursor)?;
            check_conversation(&id, &place.conversation)?;
            (
                PathEnd::Node(node_id(&place.head)?),
                Span::From(place.depth),
            )
        }
        (None, Some(node)) => (PathEnd::Node(node_id(node)?), Span::Whole),
        (None, None) => (PathEnd::Branch(chat.branch()), Span::Whole),
    };
    let request = ReadRequest {
        at,
        span,
        limit: Some(limit),
    };
    let read = app
        .engine()
        .store()
        .read_path(&owner, chat.id(), request)
        .await?;
    let next = read.next.zip(read.head).map(|(depth, head)| {
        let place = ItemCursor {
            conversation: id.clone(),
            head: head.to_string(),
            depth,
        };
        page::encode_cursor(&owner, LIST, &place)
    });
    let items = read
        .nodes
        .iter()
        .map(|node| NodeDocument::try_from(&**node));
    let document = NodesDocument {
        head: read.head.map(|head| head.to_string()),
        depth: read.depth,
        items: items.collect::<Result<_, _>>()?,
        more: next.is_some(),
        next,
    };
    Ok(([(ETAG, etag::head_etag(read.head))], Json(document)))
}

/// Returns one item, wherever it is in the tree.
#[utoipa::path(
    get, path = "/conversations/{conversation}/items/{item}", tag = "messages",
    params(("conversation" = String, Path, description = "Its id"), ("item" = String, Path, description = "The node's id, 32 hexadecimal digits")),
    responses((status = 200, description = "It", body = NodeDocument), ReadRefusals)
)]
async fn show_item(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path((id, node)): Path<(String, String)>,
) -> Result<Json<NodeDocument>, Problem> {
    let query = NodeQuery::Id(node_id(&node)?);
    let found = app
        .engine()
        .store()
        .find_nodes(&owner, &conversation_id(&id)?, query)
        .await?;
    let first = found
        .first()
        .ok_or_else(|| Problem::new(Code::NotFound, format!("no node {node:?}")))?;
    Ok(Json(NodeDocument::try_from(&**first)?))
}
