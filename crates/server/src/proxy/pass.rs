//! One request on its way to a provider and its answer on the way back: the same bytes, as they come.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_ENCODING;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use contexture::client::{Passed, Passing, Upstream};

use crate::app::App;
use crate::documents::RequestDocument;
use crate::nowhere::nothing_here;
use crate::panics::caught;
use crate::problem::Problem;
use crate::proxy::call::Call;
use crate::proxy::came::Came;
use crate::proxy::choice::{Asking, Choice};
use crate::proxy::credentials::{Outgoing, admit};
use crate::proxy::failing::fail_open;
use crate::proxy::headers;
use crate::proxy::injected::is_by_user;
use crate::proxy::listen_in::{Answering, Begun, Rewriting, listen_in};
use crate::proxy::matching::{Asked, Miss};
use crate::proxy::offered::restricted;
use crate::proxy::outcome::{RequestId, Telling};
use crate::proxy::own::{Exchange, Shown, back};
use crate::proxy::place::{Place, place};
use crate::proxy::redact::{redacted, storing_without};
use crate::proxy::refusal::Refusal;
use crate::proxy::rewrite::{Rewritten, patience};
use crate::proxy::tee::Tee;
use crate::proxy::wishes::Wishes;

/// What a provider answers to a request that it cannot read, or that is too long.
const REFUSED: [StatusCode; 3] = [
    StatusCode::BAD_REQUEST,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNPROCESSABLE_ENTITY,
];

/// Passes a request on, if its path leads to an upstream.
pub(crate) async fn pass_on(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(place) = place(app.upstreams(), &parts.uri, &parts.headers) else {
        return nothing_here().await.into_response();
    };
    let passed = caught(through(&app, &place, &parts, body)).await;
    let passed = passed.unwrap_or_else(|panicked| Err(Problem::from(panicked).into()));
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
    let most = app.config().server.limits.body_bytes;
    let mut came = Came::new(parts.headers.clone(), whole(body, most).await?, most);
    let call = Call::of(&parts.method, place);
    let asking = Asking {
        place,
        call: call.as_ref(),
        principal: &principal,
        came: &came,
    };
    let is_read = asking.is_read();
    let choice = match call.is_none() && came.bytes().is_empty() {
        true => Choice::default(),
        false => Choice::of(app, &asking, &wishes).await?,
    };
    let tools = choice.tools();
    if let Some(call) = call.as_ref().filter(|_| !tools.allows_all())
        && let Some(text) = restricted(call.format, came.text().await, &tools)?
    {
        came.replace(text);
        out.headers.remove(CONTENT_ENCODING);
    }
    let secrets = choice.secrets().filter(|_| is_read);
    let redacted = match &secrets {
        Some(secrets) => redacted(secrets, came.text().await)?.map(Bytes::from),
        None => None,
    };
    if redacted.is_some() {
        out.headers.remove(CONTENT_ENCODING);
    }
    let sent = redacted.clone().unwrap_or_else(|| came.bytes().clone());
    let call = call.filter(|_| !wishes.bypass);
    let room = match &call {
        Some(_) => app.behind().room(came.length()).await,
        None => None,
    };
    let listening = call.map(|call| {
        let policy = choice.rewriting();
        let document = RequestDocument {
            policy: choice.policy.map(|(name, _)| name.to_owned()),
            ..RequestDocument::of(&place.upstream.name, wishes.conversation.as_ref())
        };
        let (id, telling) = app.outcomes().begin(&principal.owner, document);
        let wait = wishes.wait;
        let asked = Asked {
            engine: match secrets {
                Some(secrets) => storing_without(app.engine(), secrets),
                None => app.engine().clone(),
            },
            owner: principal.owner.clone(),
            call,
            came,
            redacted,
            wishes,
            conversation_from: place.upstream.conversation_from.clone(),
            by_user: policy.as_ref().is_some_and(is_by_user),
            skills: choice
                .policy
                .and_then(|(name, _)| app.skills_of(name).cloned()),
            room,
        };
        let patience = policy.as_ref().map(patience);
        let (answering, rewriting) = listen_in(app, asked, policy, telling.clone());
        Listening {
            id,
            telling,
            answering,
            rewriting: patience.map(|patience| (rewriting, patience)),
            wait,
        }
    });
    let request = Passing {
        method: parts.method.clone(),
        path: match &out.query {
            Some(query) if !query.is_empty() => format!("{}?{query}", place.path),
            _ => place.path.to_owned(),
        },
        headers: out.headers,
        body: sent,
    };
    let response = answered(&place.upstream.host, request, listening).await?;
    let mut response = permit.through(response);
    response.extensions_mut().insert(principal);
    Ok(response)
}

/// The provider's answer, and who hears it.
async fn answered(
    host: &Upstream,
    request: Passing,
    listening: Option<Listening>,
) -> Result<Response, Refusal> {
    let Some(mut listening) = listening else {
        let passed = host.send(request).await?;
        let tee = Tee::unheard(passed.body);
        return Ok(respond(passed.status, &passed.headers, tee));
    };
    let rewritten = listening.rewritten().await;
    let sent = send(host, &request, rewritten, &listening.telling).await?;
    match sent {
        (passed, Some(sent)) if sent.own.is_some() && passed.status.is_success() => {
            let host = host.clone();
            listening
                .respond_in_rounds(passed, sent, host, request)
                .await
        }
        (passed, sent) => Ok(listening.respond(passed, sent).await),
    }
}

/// Sends what stands for a request, and the request itself if the provider will not have that.
async fn send(
    host: &Upstream,
    request: &Passing,
    rewritten: Option<Box<Rewritten>>,
    telling: &Telling,
) -> Result<(Passed, Option<Box<Rewritten>>), Refusal> {
    let Some(rewritten) = rewritten else {
        return Ok((host.send(request.clone()).await?, None));
    };
    let passed = host.send(instead(request, rewritten.body.clone())).await?;
    if !REFUSED.contains(&passed.status) {
        telling.tell(|document| {
            document.tokens_saved = Some(rewritten.saved);
            document.predicted = Some(rewritten.predicted.into());
        });
        return Ok((passed, Some(rewritten)));
    }
    let why = format!("the provider answered {}", passed.status);
    fail_open(telling, &Miss::new("refused", why));
    Ok((host.send(request.clone()).await?, None))
}

/// The same request with another body, which is not packed.
fn instead(request: &Passing, body: Bytes) -> Passing {
    let mut headers = request.headers.clone();
    headers.remove(CONTENT_ENCODING);
    Passing {
        method: request.method.clone(),
        path: request.path.clone(),
        headers,
        body,
    }
}

/// The body: matching needs all of it, and an answer may not begin before it has come.
async fn whole(body: Body, most: usize) -> Result<Bytes, Refusal> {
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
    /// What to send instead, and how long to wait for it.
    rewriting: Option<(Rewriting, Duration)>,
    /// Whether the answer's head waits until the request is stored.
    wait: bool,
}

impl Listening {
    /// What to send in the place of the request.
    async fn rewritten(&mut self) -> Option<Box<Rewritten>> {
        let (rewriting, patience) = self.rewriting.take()?;
        match tokio::time::timeout(patience, rewriting).await {
            // Without a word it has failed, and says why elsewhere.
            Ok(rewritten) => rewritten.ok().flatten(),
            Err(_) => {
                let why = format!("it took longer than {} ms", patience.as_millis());
                fail_open(&self.telling, &Miss::new("timeout", why));
                None
            }
        }
    }

    async fn respond(self, passed: Passed, sent: Option<Box<Rewritten>>) -> Response {
        let length = headers::length(&passed.headers);
        let (tee, heard) = Tee::heard(passed.body, length);
        let begun = Begun::Heard {
            status: passed.status,
            headers: passed.headers.clone(),
            heard,
            sent,
        };
        // If nobody listens any more there is nothing to tell.
        let _ = self.answering.send(begun);
        let mut response = respond(passed.status, &passed.headers, tee);
        let known = known(&self.telling, self.wait).await;
        say(response.headers_mut(), self.id, &known);
        response
    }

    /// Whoever listens answers, as only what is the client's of an answer may be passed on.
    async fn respond_in_rounds(
        self,
        passed: Passed,
        sent: Box<Rewritten>,
        host: Upstream,
        request: Passing,
    ) -> Result<Response, Refusal> {
        let (back, shown) = back();
        let exchange = Exchange {
            passed,
            host,
            request: instead(&request, Bytes::new()),
            back,
        };
        let begun = Begun::Own {
            exchange: Box::new(exchange),
            sent,
        };
        // If nobody listens any more, nobody answers.
        let _ = self.answering.send(begun);
        let Shown {
            status,
            headers,
            body,
        } = shown.await.map_err(|_| unanswered())??;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        let known = known(&self.telling, self.wait).await;
        say(response.headers_mut(), self.id, &known);
        Ok(response)
    }
}

/// What is known of a request when its answer's head is sent.
async fn known(telling: &Telling, wait: bool) -> RequestDocument {
    match wait {
        true => telling.once_stored().await,
        false => telling.now(),
    }
}

fn unanswered() -> Refusal {
    let message = "the answer was lost on its way: what the server's log says of it is why";
    Refusal::new(StatusCode::BAD_GATEWAY, "fault", message)
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
        ("x-contexture-policy", known.policy.clone()),
        (
            "x-contexture-tokens-saved",
            known.tokens_saved.map(|saved| saved.to_string()),
        ),
        ("x-contexture-cache", known.verdict()),
        ("x-contexture-failed", known.failed.clone()),
    ];
    for (name, value) in said {
        let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
