//! One request on its way to a provider and its answer on the way back: the same bytes, as they come.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use contexture::client::{Passed, Passing};

use crate::app::App;
use crate::documents::RequestDocument;
use crate::nowhere::nothing_here;
use crate::proxy::call::Call;
use crate::proxy::credentials::{Outgoing, admit};
use crate::proxy::headers;
use crate::proxy::listen_in::{Answering, Begun, listen_in};
use crate::proxy::matching::Asked;
use crate::proxy::outcome::{RequestId, Telling};
use crate::proxy::place::{Place, place};
use crate::proxy::refusal::Refusal;
use crate::proxy::tee::Tee;
use crate::proxy::wishes::Wishes;

/// Passes a request on, if its path leads to an upstream.
pub(crate) async fn pass_on(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(place) = place(app.upstreams(), &parts.uri, &parts.headers) else {
        return nothing_here().await.into_response();
    };
    let passed = through(&app, &place, &parts, body).await;
    passed.unwrap_or_else(|refusal| refusal.in_shape_of(place.upstream.format))
}

async fn through(
    app: &App,
    place: &Place<'_>,
    parts: &Parts,
    body: Body,
) -> Result<Response, Refusal> {
    let mut out = Outgoing {
        headers: headers::of_request(&parts.headers),
        query: parts.uri.query().map(str::to_owned),
    };
    let principal = admit(app, place.upstream, &parts.headers, &mut out)?;
    let permit = app.load().enter(&principal.owner)?;
    let wishes = Wishes::of(&parts.headers)?;
    let wait = wishes.wait;
    let body = whole(app, body).await?;
    let call = Call::of(&parts.method, place).filter(|_| !wishes.bypass);
    let listening = call.map(|call| {
        let document = RequestDocument::of(&place.upstream.name, wishes.conversation.as_ref());
        let (id, telling) = app.outcomes().begin(&principal.owner, document);
        let asked = Asked {
            owner: principal.owner.clone(),
            call,
            headers: parts.headers.clone(),
            body: body.clone(),
            wishes,
            conversation_from: place.upstream.conversation_from.clone(),
            most: app.config().server.limits.body_bytes,
        };
        let answering = listen_in(app, asked, telling.clone());
        Listening {
            id,
            telling,
            answering,
        }
    });
    let request = Passing {
        method: parts.method.clone(),
        path: match &out.query {
            Some(query) if !query.is_empty() => format!("{}?{query}", place.path),
            _ => place.path.to_owned(),
        },
        headers: out.headers,
        body,
    };
    let passed = place.upstream.host.send(request).await?;
    let response = match listening {
        None => respond(passed.status, &passed.headers, Tee::unheard(passed.body)),
        Some(listening) => listening.respond(passed, wait).await,
    };
    let mut response = permit.through(response);
    response.extensions_mut().insert(principal);
    Ok(response)
}

/// The body: matching needs all of it, and an answer may not begin before it has come.
async fn whole(app: &App, body: Body) -> Result<Bytes, Refusal> {
    let most = app.config().server.limits.body_bytes;
    axum::body::to_bytes(body, most).await.map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        match cause.is::<http_body_util::LengthLimitError>() {
            true => Refusal::too_large(most),
            false => Refusal::new(
                StatusCode::BAD_REQUEST,
                "bad_body",
                "the body ended before its end",
            ),
        }
    })
}

/// A request that is listened to.
struct Listening {
    id: RequestId,
    telling: Telling,
    answering: Answering,
}

impl Listening {
    async fn respond(self, passed: Passed, wait: bool) -> Response {
        let length = headers::length(&passed.headers);
        let (tee, heard) = Tee::heard(passed.body, length);
        let begun = Begun {
            status: passed.status,
            headers: passed.headers.clone(),
            heard,
        };
        // If nobody listens any more there is nothing to tell.
        let _ = self.answering.send(begun);
        let mut response = respond(passed.status, &passed.headers, tee);
        let known = match wait {
            true => self.telling.once_stored().await,
            false => self.telling.now(),
        };
        say(response.headers_mut(), self.id, &known);
        response
    }
}

fn respond(status: StatusCode, came: &HeaderMap, body: Tee) -> Response {
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers::of_answer(came);
    response
}

/// Our headers: what is known by now.
fn say(headers: &mut HeaderMap, id: RequestId, known: &RequestDocument) {
    let said = [
        ("x-contexture-request", Some(id.to_string())),
        ("x-contexture-conversation", known.conversation.clone()),
        ("x-contexture-node", known.node.clone()),
        ("x-contexture-match", known.matched.clone()),
        ("x-contexture-failed", known.failed.clone()),
    ];
    for (name, value) in said {
        let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
