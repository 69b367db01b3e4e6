//! What happens in all conversations of an owner, followed as server-sent events.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::response::sse::Event;
use contexture::Owner;
use contexture::engine::{FollowFrom, FollowOwner, OwnerTail};
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::calls::parse_time_parameter;
use crate::api::conventions::error_responses::ReadRefusals;
use crate::api::conventions::page;
use crate::api::conversations::events::{LAST_EVENT, failed_event, sse_response};
use crate::http::extractors::{Query, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::{EventDocument, format_timestamp};

const LIST: &str = "events";

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_owner_events))
}

/// Where to begin, and whether to wait.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FollowParams {
    /// The `id` of an event of this stream, after which to begin. Default: with what comes.
    after: Option<String>,
    /// Without `after`: the time with which to begin, RFC 3339, a day (`2026-11-24`), how long ago (`12h`, `7d`), or milliseconds
    /// since the Unix epoch. Default: now.
    since: Option<String>,
    /// Whether new events are waited for; `false` ends the stream with what is there. Default: true.
    follow: Option<bool>,
}

/// Follows what happens in all conversations of the owner, those that are made later included.
///
/// The first event is `begin`, with the time `at` from which on all is sent. Events of a conversation come in order; between
/// conversations there is no order. They come within a second. A client that comes back with `last-event-id` misses none, and may get
/// again what is dated up to 10 s before: such an event has the same `conversation` and `seq`. Deletions are not told, nor what is
/// dated more than 10 s back when it is stored, as by an import. Pieces of answers come with the conversation's own events.
#[utoipa::path(
    get, path = "/events", tag = "events",
    params(
        FollowParams,
        ("last-event-id" = Option<String>, Header, description = "The `id` of the last event that was seen; it goes before `after`"),
    ),
    responses(
        (status = 200, description = "Events whose data are an EventDocument with its conversation", content((String = "text/event-stream"))),
        ReadRefusals
    )
)]
async fn list_owner_events(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(asked): Query<FollowParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get(&LAST_EVENT);
    let last = last.map(|value| {
        let detail = "`last-event-id`: expected the `id` of an event of this stream";
        value
            .to_str()
            .map_err(|_| Problem::new(Code::BadHeader, detail))
    });
    let place = last.transpose()?.or(asked.after.as_deref());
    let since = parse_time_parameter("since", asked.since.as_deref())?;
    let from = match (place, since) {
        (Some(place), _) => FollowFrom::Place(page::decode_cursor(&owner, LIST, place)?),
        (None, Some(since)) => FollowFrom::Since(since),
        (None, None) => FollowFrom::Now,
    };
    let mut options = FollowOwner {
        from,
        ..FollowOwner::default()
    };
    if asked.follow == Some(false) {
        options.poll = None;
    }
    let tail = OwnerTail::open(app.engine(), &owner, options).await?;
    let begin = begin_event(&owner, tail.place_ms());
    let events = stream::once(async { begin }).chain(to_sse_events(owner, tail));
    let closing = app.shutdown_token().clone();
    let events = events.map(Ok::<_, Infallible>);
    Ok(sse_response(events.take_until(closing.cancelled_owned())))
}

fn begin_event(owner: &Owner, place_ms: i64) -> Event {
    let data = serde_json::json!({"at": format_timestamp(place_ms)});
    Event::default()
        .id(page::encode_cursor(owner, LIST, &place_ms))
        .event("begin")
        .data(data.to_string())
}

fn to_sse_events(owner: Owner, tail: OwnerTail) -> impl Stream<Item = Event> {
    stream::unfold((owner, tail), async |(owner, mut tail)| {
        let event = match tail.next().await? {
            Ok(told) => {
                let document = EventDocument::from(&told.event);
                let document = document.with_conversation(&told.conversation);
                let data = serde_json::to_string(&document).unwrap_or_default();
                Event::default()
                    .id(page::encode_cursor(&owner, LIST, &tail.place_ms()))
                    .event(document.kind)
                    .data(data)
            }
            Err(error) => failed_event(&error),
        };
        Some((event, (owner, tail)))
    })
}
