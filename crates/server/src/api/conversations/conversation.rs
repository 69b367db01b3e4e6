//! Conversations: made, listed, found, changed, deleted.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use contexture::Owner;
use contexture::ir::Raw;
use contexture::store::{
    Conversation, ConversationCursor, ConversationUpdate, ListConversations, MetadataChange,
    MetadataFilter, MetadataValue, NewConversation, TitleChange,
};
use serde::{Deserialize, Deserializer};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::conversation_id;
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::idempotency::{IdempotencyKeyParam, OperationId};
use crate::api::conventions::{etag, page};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::{ConversationDocument, ConversationsDocument};

const LIST: &str = "conversations";
const PAGE: usize = 100;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_conversations, create_conversation))
        .routes(routes!(
            show_conversation,
            change_conversation,
            delete_conversation
        ))
}

/// The conversations to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListConversationsParams {
    /// Only those of this resource.
    resource: Option<String>,
    /// Only those whose title has this text in it, whatever the case.
    title: Option<String>,
    /// Only those whose metadata has these values: a JSON object of texts, numbers, booleans and nulls.
    metadata: Option<String>,
    /// Only those written to at or after this time, in milliseconds since the Unix epoch.
    updated_since: Option<i64>,
    /// Only those written to before this time, in milliseconds since the Unix epoch.
    updated_before: Option<i64>,
    /// What each conversation has beside its metadata: `overview`, how it begins and what its calls used and cost. Default:
    /// nothing.
    #[param(inline)]
    include: Option<ConversationInclude>,
    /// Maximum number of conversations. Default 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// What conversations of a list have beside their metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ConversationInclude {
    /// How they begin, and what their calls used and cost.
    Overview,
}

/// Lists the owner's conversations, most recently updated first.
#[utoipa::path(
    get, path = "/conversations", tag = "conversations", params(ListConversationsParams),
    responses((status = 200, description = "A page", body = ConversationsDocument), ReadRefusals)
)]
async fn list_conversations(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(listing): Query<ListConversationsParams>,
) -> Result<Json<ConversationsDocument>, Problem> {
    let after = match &listing.after {
        Some(cursor) => {
            let (updated_ms, id): (i64, String) = page::decode_cursor(&owner, LIST, cursor)?;
            let id = conversation_id(&id)?;
            Some(ConversationCursor { updated_ms, id })
        }
        None => None,
    };
    let list = ListConversations {
        resource: listing.resource,
        title: listing.title,
        metadata: listing
            .metadata
            .as_deref()
            .map(parse_metadata_filter)
            .transpose()?,
        updated_since: listing.updated_since,
        updated_before: listing.updated_before,
        limit: Some(page::page_length(listing.limit, PAGE)?),
        after,
    };
    let found = app.engine().list_conversations(&owner, list).await?;
    let conversations = match listing.include {
        Some(ConversationInclude::Overview) => {
            with_overviews(&app, &owner, &found.conversations).await?
        }
        None => found.conversations.iter().map(Into::into).collect(),
    };
    let next = found
        .next
        .map(|next| page::encode_cursor(&owner, LIST, &(next.updated_ms, next.id.as_str())));
    Ok(Json(ConversationsDocument {
        conversations,
        more: next.is_some(),
        complete: found.complete,
        next,
    }))
}

/// Returns the documents of conversations with their overviews.
async fn with_overviews(
    app: &App,
    owner: &Owner,
    conversations: &[Conversation],
) -> Result<Vec<ConversationDocument>, Problem> {
    let overviews = app.engine().conversation_overviews(owner, conversations);
    let overviews = overviews.await?;
    let both = conversations.iter().zip(&overviews);
    Ok(both
        .map(|(one, overview)| ConversationDocument::from(one).with_overview(overview))
        .collect())
}

/// Parses a filter that requires all of these values; anything but a plain value is refused.
fn parse_metadata_filter(text: &str) -> Result<MetadataFilter, Problem> {
    let refused = |why: String| Problem::new(Code::BadQuery, format!("`metadata`: {why}"));
    let fields: BTreeMap<String, serde_json::Value> = serde_json::from_str(text)
        .map_err(|error| refused(format!("expected a JSON object: {error}")))?;
    let equal = |(key, value): (String, serde_json::Value)| {
        let value = match value {
            serde_json::Value::Null => MetadataValue::Null,
            serde_json::Value::Bool(value) => MetadataValue::Bool(value),
            serde_json::Value::Number(value) => MetadataValue::Number(
                value
                    .as_f64()
                    .ok_or_else(|| refused(format!("{value} is too large")))?,
            ),
            serde_json::Value::String(value) => MetadataValue::Text(value),
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
                return Err(refused(format!(
                    "{key:?} is neither text, number, boolean nor null"
                )));
            }
        };
        MetadataFilter::field_equals(&key, value).map_err(|error| refused(error.to_string()))
    };
    fields
        .into_iter()
        .map(equal)
        .collect::<Result<_, _>>()
        .map(MetadataFilter::All)
}

/// A conversation to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewConversationDocument {
    /// Id of the conversation: 1 to 128 of the characters A-Z a-z 0-9 . _ : -. Default: one is made.
    #[schema(max_length = 128, pattern = "^[A-Za-z0-9._:-]+$")]
    id: Option<String>,
    /// Title for people. Default: none.
    title: Option<String>,
    /// Subject of the conversation, such as an end user. Default: none.
    resource: Option<String>,
    /// Values to attach, by key. Default: none.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    metadata: Option<BTreeMap<String, Raw>>,
}

/// Creates a conversation with the empty branch `main`.
#[utoipa::path(
    post, path = "/conversations", tag = "conversations",
    request_body(content = NewConversationDocument, example = json!({"id": "support-42", "title": "A late parcel", "resource": "ada", "metadata": {"channel": "mail"}})),
    params(IdempotencyKeyParam),
    responses(
        (status = 201, description = "It was made", body = ConversationDocument, headers(("location" = String, description = "Its path"))),
        WriteRefusals
    )
)]
async fn create_conversation(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    operation: OperationId,
    Json(asked): Json<NewConversationDocument>,
) -> Result<impl IntoResponse, Problem> {
    let id = asked.id.unwrap_or_else(|| operation.derived_id());
    let new = NewConversation {
        title: asked.title,
        resource: asked.resource,
        metadata: asked.metadata.unwrap_or_default(),
        ..NewConversation::new(conversation_id(&id)?, app.engine().now_ms())
    };
    let made = app
        .engine()
        .store()
        .create_conversation(&owner, new)
        .await?;
    let location = format!("/api/v1/conversations/{}", made.id);
    let headers = [
        (LOCATION, location),
        (ETAG, etag::version_etag(made.version)),
    ];
    Ok((
        StatusCode::CREATED,
        headers,
        Json(ConversationDocument::from(&made)),
    ))
}

/// Returns a conversation, without its tree.
#[utoipa::path(
    get, path = "/conversations/{conversation}", tag = "conversations",
    params(("conversation" = String, Path, description = "Its id")),
    responses(
        (status = 200, description = "It", body = ConversationDocument, headers(("etag" = String, description = "Its version, for `if-match`"))),
        ReadRefusals
    )
)]
async fn show_conversation(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, Problem> {
    let found = app
        .engine()
        .conversation_info(&owner, &conversation_id(&id)?)
        .await?;
    let overviews = app
        .engine()
        .conversation_overviews(&owner, std::slice::from_ref(&found));
    let overviews = overviews.await?;
    let document = ConversationDocument::from(&found);
    let document = match overviews.first() {
        Some(overview) => document.with_overview(overview),
        None => document,
    };
    Ok(([(ETAG, etag::version_etag(found.version))], Json(document)))
}

/// A change of a conversation; fields that are left out stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ConversationChangeDocument {
    /// New title; `null` removes it.
    #[serde(default, deserialize_with = "deserialize_present")]
    #[schema(value_type = Option<String>)]
    title: Option<Option<String>>,
    /// New metadata by key; `null` removes a key, and other keys stay.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    metadata: Option<BTreeMap<String, Option<Raw>>>,
}

/// Deserializes a field that is present, so that `null` differs from a missing field.
fn deserialize_present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Changes title and metadata.
#[utoipa::path(
    patch, path = "/conversations/{conversation}", tag = "conversations",
    request_body(content = ConversationChangeDocument, example = json!({"title": "A parcel that came late", "metadata": {"channel": null, "solved": true}})),
    params(
        ("conversation" = String, Path, description = "Its id"),
        ("if-match" = Option<String>, Header, description = "The version that must still be current"),
    ),
    responses((status = 200, description = "It, after the change", body = ConversationDocument), WriteRefusals)
)]
async fn change_conversation(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(asked): Json<ConversationChangeDocument>,
) -> Result<impl IntoResponse, Problem> {
    let update = ConversationUpdate {
        title: asked.title.map_or(TitleChange::Keep, TitleChange::Set),
        metadata: asked
            .metadata
            .map_or(MetadataChange::Keep, MetadataChange::Merge),
        expect_version: etag::expected_version(&headers)?,
        at_ms: app.engine().now_ms(),
    };
    let store = app.engine().store();
    let changed = store
        .update_conversation(&owner, &conversation_id(&id)?, update)
        .await;
    let changed = changed.map_err(|error| etag::precondition_problem(error.into()))?;
    Ok((
        [(ETAG, etag::version_etag(changed.version))],
        Json(ConversationDocument::from(&changed)),
    ))
}

/// Deletes a conversation and everything that hangs off it.
#[utoipa::path(
    delete, path = "/conversations/{conversation}", tag = "conversations",
    params(("conversation" = String, Path, description = "Its id")),
    responses((status = 204, description = "It is gone"), WriteRefusals)
)]
async fn delete_conversation(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    app.engine()
        .delete_conversation(&owner, &conversation_id(&id)?)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
