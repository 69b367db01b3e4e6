//! One request on its way to a provider and its answer on the way back: the same bytes, as they come.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_ENCODING;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use contexture::models_http::{PassthroughRequest, PassthroughResponse, Upstream};

use crate::http::panics::catch_panic;
use crate::problem::{Code, Problem};
use crate::proxy::auth::{OutgoingHead, authorize_request};
use crate::proxy::capture::ingest::CaptureRequest;
use crate::proxy::capture::task::{AnswerSender, AnswerStart, RewriteReceiver, capture};
use crate::proxy::capture::tee::Tee;
use crate::proxy::control_headers::ControlHeaders;
use crate::proxy::failure::ProxyFailure;
use crate::proxy::failure::count_failed_open;
use crate::proxy::headers;
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::request_body::RequestBody;
use crate::proxy::rewrite::filter_tools::restrict_tools;
use crate::proxy::rewrite::injected_layers::has_user_memory;
use crate::proxy::rewrite::redact::{redact_request, with_added_secrets};
use crate::proxy::rewrite::{RewrittenRequest, rewrite_timeout};
use crate::proxy::route::model_call::ModelEndpoint;
use crate::proxy::route::policy::{PolicyChoice, PolicyQuery};
use crate::proxy::route::target::{RouteTarget, resolve_target};
use crate::proxy::server_tools::{ClientReply, ToolLoopStart, client_channel};
use crate::state::App;
use crate::state::request_outcomes::{OutcomeRecorder, RequestId};
use contexture_api::RequestDocument;

/// What a provider answers to a request that it cannot read, or that is too long.
const RETRY_ORIGINAL_ON: [StatusCode; 3] = [
    StatusCode::BAD_REQUEST,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNPROCESSABLE_ENTITY,
];

/// Passes a request on, if its path leads to an upstream.
pub(crate) async fn proxy_request(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(place) = resolve_target(app.upstreams(), &parts.uri, &parts.headers) else {
        return unknown_path().into_response();
    };
    let passed = catch_panic(forward(&app, &place, &parts, body)).await;
    let passed = passed.unwrap_or_else(|panicked| Err(Problem::from(panicked).into()));
    passed.unwrap_or_else(|refusal| refusal.encode_for(place.upstream.format))
}

fn unknown_path() -> Problem {
    Problem::new(
        Code::NotFound,
        "there is nothing at this path; /openapi.json lists what is",
    )
}

async fn forward(
    app: &App,
    place: &RouteTarget<'_>,
    parts: &Parts,
    body: Body,
) -> Result<Response, ProxyRefusal> {
    let mut out = OutgoingHead {
        headers: headers::forwarded_request_headers(&parts.headers),
        query: parts.uri.query().map(str::to_owned),
    };
    let principal = authorize_request(app, place.upstream, &parts.headers, &mut out)?;
    let permit = app.rate_limiter().acquire_permit(&principal.owner)?;
    let wishes = ControlHeaders::parse_headers(&parts.headers)?;
    let most = app.config().server.limits.body_bytes;
    let mut came = RequestBody::new(parts.headers.clone(), read_body(body, most).await?, most);
    let call = ModelEndpoint::from_request(&parts.method, place);
    let asking = PolicyQuery {
        target: place,
        endpoint: call.as_ref(),
        principal: &principal,
        body: &came,
    };
    let is_read = asking.has_json_body();
    let choice = match call.is_none() && came.bytes().is_empty() {
        true => PolicyChoice::default(),
        false => PolicyChoice::resolve_policy(app, &asking, &wishes).await?,
    };
    let tools = choice.allowed_tools();
    if let Some(call) = call.as_ref().filter(|_| !tools.allows_all())
        && let Some(text) = restrict_tools(call.format, came.read_text().await, &tools)?
    {
        came.replace_text(text);
        out.headers.remove(CONTENT_ENCODING);
    }
    let secrets = choice.secret_patterns().filter(|_| is_read);
    let redacted = match &secrets {
        Some(secrets) => redact_request(secrets, came.read_text().await)?.map(Bytes::from),
        None => None,
    };
    if redacted.is_some() {
        out.headers.remove(CONTENT_ENCODING);
    }
    let sent = redacted.clone().unwrap_or_else(|| came.bytes().clone());
    let call = call.filter(|_| !wishes.bypass);
    let room = match &call {
        Some(_) => app.store_queue().acquire_permit(came.known_length()).await,
        None => None,
    };
    let listening = call.map(|call| {
        let policy = choice.rewrite_policy();
        let document = RequestDocument {
            policy: choice.policy.map(|(name, _)| name.to_owned()),
            ..RequestDocument::for_upstream(&place.upstream.name, wishes.conversation.as_ref())
        };
        let (id, telling) = app
            .request_outcomes()
            .begin_request(&principal.owner, document);
        let wait = wishes.wait;
        let asked = CaptureRequest {
            engine: match secrets {
                Some(secrets) => with_added_secrets(app.engine(), secrets),
                None => app.engine().clone(),
            },
            owner: principal.owner.clone(),
            endpoint: call,
            body: came,
            redacted,
            control_headers: wishes,
            conversation_from: place.upstream.conversation_from.clone(),
            by_user: policy.as_ref().is_some_and(has_user_memory),
            skills: choice
                .policy
                .and_then(|(name, _)| app.skills_for_policy(name).cloned()),
            queue_permit: room,
        };
        let patience = policy.as_ref().map(rewrite_timeout);
        let (answering, rewriting) = capture(app, asked, policy, telling.clone());
        CaptureHandle {
            id,
            outcome: telling,
            answer_sender: answering,
            rewriting: patience.map(|patience| (rewriting, patience)),
            should_wait_for_store: wait,
        }
    });
    let request = PassthroughRequest {
        method: parts.method.clone(),
        path: match &out.query {
            Some(query) if !query.is_empty() => format!("{}?{query}", place.path),
            _ => place.path.to_owned(),
        },
        headers: out.headers,
        body: sent,
    };
    let response = send_and_respond(&place.upstream.host, request, listening).await?;
    let mut response = permit.attach_to_response(response);
    response.extensions_mut().insert(principal);
    Ok(response)
}

/// The provider's answer, and who hears it.
async fn send_and_respond(
    host: &Upstream,
    request: PassthroughRequest,
    listening: Option<CaptureHandle>,
) -> Result<Response, ProxyRefusal> {
    let Some(mut listening) = listening else {
        let passed = host.send(request).await?;
        let tee = Tee::body_without_capture(passed.body);
        return Ok(build_response(passed.status, &passed.headers, tee));
    };
    let rewritten = listening.wait_for_rewrite().await;
    let sent = send_with_fallback(host, &request, rewritten, &listening.outcome).await?;
    match sent {
        (passed, Some(sent)) if sent.plan.is_some() && passed.status.is_success() => {
            let host = host.clone();
            listening
                .respond_with_tool_loop(passed, sent, host, request)
                .await
        }
        (passed, sent) => Ok(listening.respond_with_capture(passed, sent).await),
    }
}

/// Sends what stands for a request, and the request itself if the provider will not have that.
async fn send_with_fallback(
    host: &Upstream,
    request: &PassthroughRequest,
    rewritten: Option<Box<RewrittenRequest>>,
    telling: &OutcomeRecorder,
) -> Result<(PassthroughResponse, Option<Box<RewrittenRequest>>), ProxyRefusal> {
    let Some(rewritten) = rewritten else {
        return Ok((host.send(request.clone()).await?, None));
    };
    let passed = host
        .send(replace_body(request, rewritten.body.clone()))
        .await?;
    if !RETRY_ORIGINAL_ON.contains(&passed.status) {
        telling.update_outcome(|document| {
            document.tokens_saved = Some(rewritten.saved);
            document.predicted = Some(rewritten.predicted.into());
        });
        return Ok((passed, Some(rewritten)));
    }
    let why = format!("the provider answered {}", passed.status);
    count_failed_open(telling, &ProxyFailure::new("refused", why));
    Ok((host.send(request.clone()).await?, None))
}

/// The same request with another body, which is not packed.
fn replace_body(request: &PassthroughRequest, body: Bytes) -> PassthroughRequest {
    let mut headers = request.headers.clone();
    headers.remove(CONTENT_ENCODING);
    PassthroughRequest {
        method: request.method.clone(),
        path: request.path.clone(),
        headers,
        body,
    }
}

/// The body: matching needs all of it, and an answer may not begin before it has come.
async fn read_body(body: Body, most: usize) -> Result<Bytes, ProxyRefusal> {
    axum::body::to_bytes(body, most).await.map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        match cause.is::<http_body_util::LengthLimitError>() {
            true => ProxyRefusal::too_large(most),
            false => ProxyRefusal::new(
                StatusCode::BAD_REQUEST,
                "bad_body",
                "the body ended before its end",
            ),
        }
    })
}

/// A request that is listened to.
struct CaptureHandle {
    id: RequestId,
    outcome: OutcomeRecorder,
    answer_sender: AnswerSender,
    /// What to send instead, and how long to wait for it.
    rewriting: Option<(RewriteReceiver, Duration)>,
    /// Whether the answer's head waits until the request is stored.
    should_wait_for_store: bool,
}

impl CaptureHandle {
    /// What to send in the place of the request.
    async fn wait_for_rewrite(&mut self) -> Option<Box<RewrittenRequest>> {
        let (rewriting, patience) = self.rewriting.take()?;
        match tokio::time::timeout(patience, rewriting).await {
            // Without a word it has failed, and says why elsewhere.
            Ok(rewritten) => rewritten.ok().flatten(),
            Err(_) => {
                let why = format!("it took longer than {} ms", patience.as_millis());
                count_failed_open(&self.outcome, &ProxyFailure::new("timeout", why));
                None
            }
        }
    }

    async fn respond_with_capture(
        self,
        passed: PassthroughResponse,
        sent: Option<Box<RewrittenRequest>>,
    ) -> Response {
        let length = headers::content_length(&passed.headers);
        let (tee, heard) = Tee::body_with_capture(passed.body, length);
        let begun = AnswerStart::Passthrough {
            status: passed.status,
            headers: passed.headers.clone(),
            heard,
            sent,
        };
        // If nobody listens any more there is nothing to tell.
        let _ = self.answer_sender.send(begun);
        let mut response = build_response(passed.status, &passed.headers, tee);
        let known = outcome_for_headers(&self.outcome, self.should_wait_for_store).await;
        add_response_headers(response.headers_mut(), self.id, &known);
        response
    }

    /// Whoever listens answers, as only what is the client's of an answer may be passed on.
    async fn respond_with_tool_loop(
        self,
        passed: PassthroughResponse,
        sent: Box<RewrittenRequest>,
        host: Upstream,
        request: PassthroughRequest,
    ) -> Result<Response, ProxyRefusal> {
        let (back, shown) = client_channel();
        let exchange = ToolLoopStart {
            response: passed,
            upstream: host,
            request: replace_body(&request, Bytes::new()),
            client: back,
        };
        let begun = AnswerStart::ToolLoop {
            exchange: Box::new(exchange),
            sent,
        };
        // If nobody listens any more, nobody answers.
        let _ = self.answer_sender.send(begun);
        let ClientReply {
            status,
            headers,
            body,
        } = shown.await.map_err(|_| lost_answer())??;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        let known = outcome_for_headers(&self.outcome, self.should_wait_for_store).await;
        add_response_headers(response.headers_mut(), self.id, &known);
        Ok(response)
    }
}

/// What is known of a request when its answer's head is sent.
async fn outcome_for_headers(telling: &OutcomeRecorder, wait: bool) -> RequestDocument {
    match wait {
        true => telling.wait_until_stored().await,
        false => telling.current_outcome(),
    }
}

fn lost_answer() -> ProxyRefusal {
    let message = "the answer was lost on its way: what the server's log says of it is why";
    ProxyRefusal::new(StatusCode::BAD_GATEWAY, "fault", message)
}

fn build_response(status: StatusCode, came: &HeaderMap, body: Tee) -> Response {
    let mut response = Response::new(Body::from_stream(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers::forwarded_response_headers(came);
    response
}

/// Our headers: what is known by now.
fn add_response_headers(headers: &mut HeaderMap, id: RequestId, known: &RequestDocument) {
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
        ("x-contexture-cache", known.cache_prediction()),
        ("x-contexture-failed", known.failed.clone()),
    ];
    for (name, value) in said {
        let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
