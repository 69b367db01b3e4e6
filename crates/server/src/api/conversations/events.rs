//! What happened to a conversation: as a page, or followed as server-sent events.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::ready;
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::ReadRefusals;
use crate::api::conventions::page;
use crate::http::extractors::{Json, Path, Query, ReadAccess};
use crate::problem::{Code, Problem, error_chain};
use crate::state::App;
use contexture_api::{DeltaDocument, EventDocument, EventsDocument};

pub(crate) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const PAGE: usize = 100;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_events))
}

/// The events to list or to follow.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListEventsParams {
    /// Number of the event after which to begin. Default 0: with the first.
    after: Option<u64>,
    /// Maximum number of events; a stream has no end. Default 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
}

/// Lists what happened to a conversation, in order, or follows it as a stream.
///
/// With `accept: text/event-stream`, new events follow until the conversation is deleted or the server stops; a client
/// that comes back with `last-event-id` misses none. Pieces of answers that pass through this server are sent as events
/// `delta` without an id, and are not sent again.
#[utoipa::path(
    get, path = "/conversations/{conversation}/events", tag = "events",
    params(
        ("conversation" = String, Path, description = "Its id"), ListEventsParams,
        ("last-event-id" = Option<u64>, Header, description = "The number of the last event that was seen; it goes before `after`"),
    ),
    responses(
        (status = 200, description = "The events; of a stream the data are an EventDocument or, of `delta`, a DeltaDocument", content((EventsDocument = "application/json"), (String = "text/event-stream"))),
        ReadRefusals
    )
)]
async fn list_events(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(listing): Query<ListEventsParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = page::page_length(listing.limit, PAGE)?;
    let after = parse_last_event_id(&headers)?
        .or(listing.after)
        .unwrap_or(0);
    // Numbers are kept as signed ones below.
    let after = after.min(i64::MAX.unsigned_abs());
    let chat = open_conversation(&app, &owner, &id, None).await?;
    let wants = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if wants.is_some_and(|accept| accept.contains("text/event-stream")) {
        let closing = app.shutdown_token().clone();
        // Subscribed before stored events are read, so that no piece falls in between.
        let deltas = delta_events(app.live_feed().subscribe_to(&owner, chat.id()));
        let events = chat.follow(after).map(to_sse_event);
        let all = merge_until_first_ends(events, deltas).map(Ok);
        return Ok(sse_response(all.take_until(closing.cancelled_owned())));
    }
    let found = app
        .engine()
        .store()
        .list_events(&owner, chat.id(), after, limit)
        .await?;
    let more = found.len() == limit;
    let events = found.iter().map(EventDocument::from).collect();
    Ok(Json(EventsDocument { events, more }).into_response())
}

/// Merges both streams, and ends with the first.
fn merge_until_first_ends(
    events: impl Stream<Item = Event>,
    deltas: impl Stream<Item = Event>,
) -> impl Stream<Item = Event> {
    // The `None` marks the end of the events: `select` alone would wait for both streams to end.
    let events = events.map(Some).chain(stream::once(ready(None)));
    let both = stream::select(events, deltas.map(Some));
    both.take_while(|event| ready(event.is_some()))
        .filter_map(ready)
}

/// Converts pieces of answers to events; a receiver that is too slow is told how many it missed.
fn delta_events(receiver: Receiver<DeltaDocument>) -> impl Stream<Item = Event> {
    stream::unfold(receiver, async |mut receiver| {
        let event = match receiver.recv().await {
            Ok(delta) => {
                let data = serde_json::to_string(&delta).unwrap_or_default();
                Event::default().event("delta").data(data)
            }
            Err(RecvError::Lagged(missed)) => {
                let data = format!("{{\"missed\":{missed}}}");
                Event::default().event("lagged").data(data)
            }
            Err(RecvError::Closed) => return None,
        };
        Some((event, receiver))
    })
}

/// Answers with events as they come.
pub(crate) fn sse_response(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    Sse::new(events)
        .keep_alive(KeepAlive::default())
        .into_response()
}

fn to_sse_event(event: Result<contexture::store::Event, contexture::EngineError>) -> Event {
    match event {
        Ok(event) => {
            let document = EventDocument::from(&event);
            let data = serde_json::to_string(&document).unwrap_or_default();
            Event::default()
                .id(document.seq.to_string())
                .event(document.kind)
                .data(data)
        }
        Err(error) => failed_event(&error),
    }
}

/// Says that events could not be read.
pub(crate) fn failed_event(error: &contexture::EngineError) -> Event {
    tracing::warn!(error = %error_chain(error), "following events");
    Event::default()
        .event("error")
        .data("the server failed; come back with `last-event-id`")
}

fn parse_last_event_id(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(&LAST_EVENT) else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| {
        Problem::new(
            Code::BadHeader,
            "`last-event-id`: expected the number of an event",
        )
    })
}
