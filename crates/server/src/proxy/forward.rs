//! Forwarding: one request on its way to a provider and its answer on the way back, byte for byte as they come.
//!
//! Tools and secrets that the policy of a request forbids are removed before it is sent. A rewritten request to send in
//! its place comes from the capture task, within a timeout; if none comes, the request is sent as it came.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_ENCODING;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use contexture::Format;
use contexture::engine::{BackgroundSummary, Secrets};
use contexture::models_http::PassthroughRequest;

use crate::access::Principal;
use crate::http::panics::catch_panic;
use crate::metrics::ProxiedAs;
use crate::problem::{Code, Problem};
use crate::proxy::auth::{OutgoingHead, authorize_request, check_no_key_leaves};
use crate::proxy::capture::ingest::CaptureRequest;
use crate::proxy::capture::task::capture;
use crate::proxy::control_headers::ControlHeaders;
use crate::proxy::failure::count_failed_open;
use crate::proxy::headers;
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::request_body::RequestBody;
use crate::proxy::respond::CaptureHandle;
use crate::proxy::rewrite::injected_layers::has_user_memory;
use crate::proxy::rewrite::redact::{redact_request, with_added_secrets};
use crate::proxy::rewrite::rewrite_timeout;
use crate::proxy::route::mistaken_path::{check_version, refuse_without_version};
use crate::proxy::route::model_call::ModelEndpoint;
use crate::proxy::route::policy::{PolicyChoice, PolicyQuery};
use crate::proxy::route::target::{RouteTarget, resolve_target};
use crate::proxy::send::send_and_respond;
use crate::proxy::signature::RequestSignature;
use crate::proxy::summary::SummaryCaller;
use crate::state::App;
use crate::state::body_memory::estimate_work_bytes_of_length;
use crate::state::call_log::CallRecorder;
use crate::state::spending::check_caller;
use contexture_api::RequestDocument;
use contexture_api::policy::{PolicyConfig, ToolsConfig};

/// The methods that are forwarded. Not `TRACE`, whose answer repeats the request with the configured key (RFC 9110, 9.3.8),
/// and none that a host could understand in its own way.
const FORWARDED_METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Forwards a request to the upstream that its path leads to.
pub(crate) async fn proxy_request(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(target) = resolve_target(app.upstreams(), &parts.uri, &parts.headers) else {
        return match refuse_without_version(parts.uri.path()) {
            Some((format, refusal)) => refusal.encode_for(format),
            None => unknown_path().into_response(),
        };
    };
    if !FORWARDED_METHODS.contains(&parts.method) {
        return unknown_method(&parts.method).encode_for(target.upstream.format);
    }
    // Caught here and not by the outer middleware, so that the refusal has the shape of the provider's errors.
    let response = catch_panic(forward(&app, &target, &parts, body)).await;
    let response = response.unwrap_or_else(|panicked| Err(Problem::from(panicked).into()));
    response.unwrap_or_else(|refusal| refusal.encode_for(target.upstream.format))
}

fn unknown_path() -> Problem {
    Problem::new(
        Code::NotFound,
        "there is nothing at this path; /openapi.json lists what is",
    )
}

fn unknown_method(method: &Method) -> ProxyRefusal {
    let message = format!(
        "the method {method} is not forwarded; GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS are"
    );
    ProxyRefusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        message,
    )
}

/// Authorizes a request, applies the restrictions of its policy, and sends it. A request that any step before
/// `send_and_respond` refuses never reaches the provider.
async fn forward(
    app: &App,
    target: &RouteTarget<'_>,
    parts: &Parts,
    body: Body,
) -> Result<Response, ProxyRefusal> {
    // Before all else: Codex tries a WebSocket first, and goes on over HTTP at once only after this very status. Without the
    // `upgrade`, which is not forwarded, a provider gives another answer, and each try costs the client seconds.
    if parts.method == Method::GET && headers::is_websocket_upgrade(&parts.headers) {
        return Err(ProxyRefusal::no_websocket());
    }
    let mut head = OutgoingHead {
        headers: headers::forwarded_request_headers(&parts.headers),
        query: parts.uri.query().map(str::to_owned),
    };
    // Before the body is read: a caller without a key must not make the server buffer megabytes.
    let principal = authorize_request(app, target.upstream, &parts.headers, &mut head)?;
    let key = principal.key.as_deref();
    let call = CallRecorder::begin_call(app, &principal.owner, &target.upstream.name, key);
    let arrival = Arrival {
        parts,
        body,
        head,
        principal,
        call: call.clone(),
    };
    let response = forward_authorized(app, target, arrival).await;
    if let Err(refusal) = &response {
        call.set_refused(refusal.status(), refusal.code());
    }
    response
}

/// A request whose caller is known.
struct Arrival<'a> {
    parts: &'a Parts,
    body: Body,
    /// What of its head is sent on.
    head: OutgoingHead,
    principal: Principal,
    /// Record of the exchange.
    call: CallRecorder,
}

async fn forward_authorized(
    app: &App,
    target: &RouteTarget<'_>,
    arrival: Arrival<'_>,
) -> Result<Response, ProxyRefusal> {
    let Arrival {
        parts,
        body,
        mut head,
        principal,
        call,
    } = arrival;
    // After the authorization, which may have replaced the client's signature with a configured key.
    let profile = target.upstream.format.http_profile();
    let signature = RequestSignature::from_headers(profile, &head.headers);
    signature.restore_host(&parts.headers, &mut head.headers);
    check_no_key_leaves(app, target.path, &head)?;
    // Before its path decides which policy holds: a host must not read another path than was looked at here.
    check_version(target)?;
    // Also before the body: waiting for a slow upload counts as a running request.
    let permit = app.rate_limiter().acquire_permit(&principal.owner)?;
    let control_headers = ControlHeaders::parse_headers(&parts.headers)?;
    let body = RequestBody::read(app, &principal.owner, parts.headers.clone(), body).await?;
    let body = Arc::new(body);
    let endpoint = ModelEndpoint::from_request(&parts.method, target);
    let query = PolicyQuery {
        target,
        endpoint: endpoint.as_ref(),
        principal: &principal,
        body: &body,
    };
    // Asked now, as the query borrows the body, which is moved further down.
    let is_redactable = query.has_json_body();
    let choice = match endpoint.is_none() && body.bytes().is_empty() {
        // A request for the list of models, say: it has nothing that could be changed, so no route is looked up.
        true => PolicyChoice::default(),
        false => PolicyChoice::resolve_policy(app, &query, &control_headers).await?,
    };
    call.set_policy(
        choice.policy.map(|(name, _)| name),
        endpoint.as_ref().map(|endpoint| endpoint.format.as_str()),
    );
    match &endpoint {
        Some(endpoint) => {
            call.set_model(endpoint.model.as_deref());
            // Calls of no model cost nothing.
            check_caller(app, &principal, call.id()).await?;
        }
        // An embedding, say: it is in the record by its model. A large body is not read for that.
        None if is_redactable && !body.is_heavy() => {
            let model = body.read_model().await.ok().flatten();
            call.set_model(model.as_deref());
        }
        None => {}
    }
    let counted_as = counted_as(endpoint.as_ref());
    // Before capture begins, so that neither the store nor a rewrite ever sees a forbidden tool.
    let restrictions = Restrictions::of_policies(&choice, endpoint.as_ref(), is_redactable);
    let body = restrictions.restrict(app, &principal, body).await?;
    if body.is_changed {
        // The new text is not compressed, whatever the client's was.
        head.headers.remove(CONTENT_ENCODING);
    }
    signature.check_restriction(body.is_changed)?;
    let sent = body.outgoing_bytes();
    // A bypassed request is restricted like any other, but neither stored nor rewritten.
    let capture = match endpoint.filter(|_| !control_headers.bypass) {
        None => None,
        Some(endpoint) => {
            let context = CaptureContext {
                app,
                target,
                principal: &principal,
                choice: &choice,
                signature,
                call: &call,
                head: &head,
            };
            Some(context.start_capture(endpoint, control_headers, body).await)
        }
    };
    let request = PassthroughRequest {
        method: parts.method.clone(),
        path: match &head.query {
            Some(query) if !query.is_empty() => format!("{}?{query}", target.path),
            // Without its key parameter the query may be empty: then no `?` is sent.
            _ => target.path.to_owned(),
        },
        headers: head.headers,
        body: sent,
    };
    let response = send_and_respond(&target.upstream.host, request, capture, call).await?;
    // The permit lives as long as the body: a stream counts as a running request until it ends.
    let mut response = permit.attach_to_response(response);
    response.extensions_mut().insert(principal);
    response.extensions_mut().insert(counted_as);
    Ok(response)
}

/// What the metrics of HTTP count a request as: the format of its call, or `proxy` if it calls no model.
fn counted_as(endpoint: Option<&ModelEndpoint>) -> ProxiedAs {
    ProxiedAs(endpoint.map_or("proxy", |endpoint| endpoint.format.as_str()))
}

/// What the policies of a request forbid to send: tools and secrets.
struct Restrictions {
    tools: ToolsConfig,
    /// Format of the call, if it is one whose tools can be taken out.
    format: Option<Format>,
    /// Patterns of secrets, if the body is searched for some.
    secrets: Option<Secrets>,
}

impl Restrictions {
    fn of_policies(
        choice: &PolicyChoice<'_>,
        endpoint: Option<&ModelEndpoint>,
        is_redactable: bool,
    ) -> Self {
        let tools = choice.allowed_tools();
        let format = endpoint.map(|endpoint| endpoint.format);
        Self {
            format: format.filter(|_| !tools.allows_all()),
            tools,
            secrets: choice.secret_patterns().filter(|_| is_redactable),
        }
    }

    /// Removes from a body what is forbidden; a large body's turn is waited for.
    ///
    /// # Errors
    /// The body cannot be read, it requires a forbidden tool, or there is no memory for it.
    async fn restrict(
        self,
        app: &App,
        principal: &Principal,
        body: Arc<RequestBody>,
    ) -> Result<RestrictedBody, ProxyRefusal> {
        let changes_nothing = self.format.is_none() && self.secrets.is_none();
        if changes_nothing || !body.is_heavy() {
            return self.restrict_now(body).await;
        }
        let restrict = |_| self.restrict_now(body);
        app.work_pool().run(&principal.owner, restrict).await
    }

    async fn restrict_now(
        self,
        mut body: Arc<RequestBody>,
    ) -> Result<RestrictedBody, ProxyRefusal> {
        let mut is_changed = false;
        // Tools first: redaction then has less to search, and what it returns is the final text.
        let edits = self.format.and_then(|format| format.spec().proxy());
        if let Some(edits) = edits {
            let text = body.read_text().await.map_err(Problem::from)?;
            let allowed = |names: &[&str]| self.tools.allows_spelled(names);
            if let Some(text) = edits.filter_tools(text, &allowed)? {
                is_changed = true;
                body = Arc::new(body.with_text(text).map_err(Problem::from)?);
            }
        }
        let mut redacted = None;
        if let Some(secrets) = &self.secrets {
            let text = body.read_text().await.map_err(Problem::from)?;
            if let Some(text) = redact_request(secrets, text)? {
                is_changed = true;
                redacted = Some(body.leased_text(text).map_err(Problem::from)?);
            }
        }
        Ok(RestrictedBody {
            body,
            redacted,
            secrets: self.secrets,
            is_changed,
        })
    }
}

/// A request's body as the restrictions of its policy leave it.
struct RestrictedBody {
    /// Without forbidden tools but still with its secrets, because the history is matched by what the client sends.
    body: Arc<RequestBody>,
    /// The body without secrets, if it had any.
    redacted: Option<Bytes>,
    /// The patterns of secrets that were searched for.
    secrets: Option<Secrets>,
    /// Whether anything was removed.
    is_changed: bool,
}

impl RestrictedBody {
    /// Returns the bytes that may leave the server.
    fn outgoing_bytes(&self) -> Bytes {
        let redacted = self.redacted.clone();
        redacted.unwrap_or_else(|| self.body.bytes().clone())
    }
}

/// What is known of a request when its capture starts.
struct CaptureContext<'a> {
    app: &'a App,
    target: &'a RouteTarget<'a>,
    principal: &'a Principal,
    choice: &'a PolicyChoice<'a>,
    signature: RequestSignature,
    call: &'a CallRecorder,
    /// What of its head is sent on.
    head: &'a OutgoingHead,
}

impl CaptureContext<'_> {
    /// Starts the background task that stores the request and, under a policy, rewrites it.
    async fn start_capture(
        self,
        endpoint: ModelEndpoint,
        control_headers: ControlHeaders,
        body: RestrictedBody,
    ) -> CaptureHandle {
        let (policy, not_rewritten) = self.signature.limit_policy(self.choice.rewrite_policy());
        let summary = policy.as_ref();
        let summary = summary.and_then(|policy| self.summary_under(policy));
        let Self {
            app,
            target,
            principal,
            choice,
            call,
            ..
        } = self;
        let RestrictedBody {
            body,
            redacted,
            secrets,
            ..
        } = body;
        // Before anything is awaited: requests are in order by their arrival.
        let exchange = Arc::new(app.engine().begin_exchange(&principal.owner));
        let delivery = exchange.delivery();
        // Awaited before the request is forwarded: where memory is short, clients are slowed down.
        let mut memory = body.lease();
        let room = memory
            .grow_to(estimate_work_bytes_of_length(body.known_length()))
            .await;
        let limits = &app.config().server.limits;
        let has_spend_limit = limits.conversation_dollars_per_day.is_some();
        let upstream = target.upstream;
        let document = RequestDocument {
            policy: choice.policy.map(|(name, _)| name.to_owned()),
            ..RequestDocument::for_upstream(&upstream.name, control_headers.conversation.as_ref())
        };
        let outcomes = app.request_outcomes();
        let outcome = outcomes.begin_request(&principal.owner, call.id(), document);
        if let Some(failure) = not_rewritten {
            count_failed_open(&outcome, &failure);
        }
        let should_wait_for_store = control_headers.wait;
        let holds_last_piece = app.engine().store().capabilities().shared;
        let skills = choice
            .policy
            .and_then(|(name, _)| app.skills_for_policy(name).cloned());
        let request = CaptureRequest {
            // Secrets that the policy removes from the request must not reach the store either.
            engine: match secrets {
                Some(secrets) => with_added_secrets(app.engine(), secrets),
                None => app.engine().clone(),
            },
            owner: principal.owner.clone(),
            endpoint,
            body,
            redacted,
            control_headers,
            conversation_from: upstream.conversation_from.clone(),
            by_user: policy.as_ref().is_some_and(has_user_memory),
            skills,
            summary,
            refuses_overflow: upstream.refuses_overflow,
            is_awaited: policy.is_some()
                || should_wait_for_store
                || holds_last_piece
                || has_spend_limit,
            memory: room.map(|()| memory),
            exchange,
        };
        // Taken before `capture` consumes the policy. Without a policy nothing is waited for, unless the conversation has a
        // limit: before it is known, nobody can say what it has spent.
        let timeout = match &policy {
            None if has_spend_limit => Some(rewrite_timeout(&PolicyConfig::default())),
            policy => policy.as_ref().map(rewrite_timeout),
        };
        let format = request.endpoint.format;
        let shorten_timeout = policy.as_ref().map(rewrite_timeout);
        let channels = capture(app, request, policy, outcome.clone(), call.clone());
        CaptureHandle {
            call: call.clone(),
            outcome,
            answer_sender: channels.answer,
            delivery,
            rewriting: timeout.map(|timeout| (channels.rewrite, timeout)),
            shortening: shorten_timeout.map(|timeout| (channels.shorter, timeout)),
            format,
            should_wait_for_store,
            holds_last_piece,
        }
    }

    /// Returns who writes summaries behind the request under a policy, if anybody may.
    fn summary_under(&self, policy: &PolicyConfig) -> Option<BackgroundSummary> {
        let caller = SummaryCaller {
            app: self.app,
            principal: self.principal,
            policy: self.choice.policy.map_or("", |(name, _)| name),
            upstream: self.target.upstream,
            path: self.target.path,
            head: self.head,
        };
        caller.summary_for(policy)
    }
}
