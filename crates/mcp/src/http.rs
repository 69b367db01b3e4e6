//! The protocol over streamable HTTP, as a service that a server mounts.
//!
//! No session is kept: each request says who it is from, and is answered as JSON, so that any of several servers may
//! answer the next. Not here: listening, TLS, keys.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use contexture::Engine;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Map};
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt as _;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::caller::Caller;
use crate::server::{Callers, McpServer};
use crate::workers::Workers;

/// A service to be mounted, at `/mcp` by custom. Cheap to clone.
#[derive(Clone)]
pub struct HttpService(StreamableHttpService<McpServer, NeverSessionManager>);

/// What requests may look like.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The names by which the server may be reached, with or without a port. Default: those of this machine for
    /// itself, so that no page in a browser reaches it by a name of its own. None named: any, for servers that ask
    /// everybody for a key.
    pub hosts: Vec<String>,
    /// The origins that pages in browsers may have, such as `https://app.example.com`. Default: none of them. `None`: any,
    /// for servers that decide before.
    pub origins: Option<Vec<String>>,
    /// Bytes of a request's body; more is answered with 413. Default 4 MiB.
    pub body_bytes: usize,
    /// Where requests are worked on. Default: a thread of the runtime's blocking pool for each.
    pub workers: Workers,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            hosts: ["localhost", "127.0.0.1", "::1"]
                .map(str::to_owned)
                .to_vec(),
            origins: Some(Vec::new()),
            body_bytes: 4 << 20,
            workers: Workers::default(),
        }
    }
}

/// The protocol as a service. `whose` says for whom a request is, by what a layer before it put among the request's
/// extensions, say; where it says nobody, nothing is answered.
pub fn http_service(
    engine: Engine,
    options: HttpOptions,
    whose: impl Fn(&Parts) -> Option<Caller> + Send + Sync + 'static,
) -> HttpService {
    let callers = Callers::PerRequest(Arc::new(whose));
    let server = McpServer::new(engine, callers, options.workers);
    // Stateless and as plain JSON: the next request may reach another server, which knows nothing
    // of this one. Hosts and origins guard against pages that reach this server by a name of their
    // own (DNS rebinding).
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_hosts(options.hosts)
        .with_max_request_body_bytes(options.body_bytes);
    let config = match options.origins {
        Some(origins) => config
            .with_allowed_origins(origins)
            .enforce_origin_validation(),
        None => config.disable_allowed_origins(),
    };
    // The service wants a manager even where no session is kept; this one refuses to make any.
    let sessions = Arc::new(NeverSessionManager::default());
    HttpService(StreamableHttpService::new(
        move || Ok(server.clone()),
        sessions,
        config,
    ))
}

/// The body of a request, of whatever type it was: its error only as text.
type RequestBody = UnsyncBoxBody<Bytes, String>;
type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

impl HttpService {
    /// Answers a request. Neither generic nor `async`, so that the protocol's code is compiled here and not once more in each
    /// crate that mounts the service.
    fn handle(&self, request: Request<RequestBody>) -> BoxFuture<'static, HttpResponse> {
        // The future outlives this borrow; a clone is cheap.
        let service = self.0.clone();
        async move { service.handle(request).await }.boxed()
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: fmt::Display,
{
    type Response = HttpResponse;
    type Error = Infallible;
    type Future =
        Map<BoxFuture<'static, HttpResponse>, fn(HttpResponse) -> Result<HttpResponse, Infallible>>;

    // Always ready: how many requests may run is for whoever mounts the service to say.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = request.map(|body| {
            let body = body.map_err(|error| error.to_string());
            let body = body
                .map_frame(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())));
            body.boxed_unsync()
        });
        self.handle(request).map(Ok)
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}
