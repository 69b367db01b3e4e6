//! The listener: accepts connections within limits on their number, head size and idle time, and drains them at shutdown.
//!
//! Not here: which connections are closed for others (`connections`), TLS and HTTP/2, which are left to a reverse proxy in
//! front.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access::Principal;
use crate::metrics::run_upkeep_loop;
use crate::problem::{Code, Problem};
use crate::serve::client_stream::ClientStream;
use crate::serve::connections::{
    ClientKeys, Connection, ConnectionLimits, Connections, RunningRequest,
};
use crate::serve::retention::{run_call_sweep_loop, run_retention_loop};
use crate::serve::routes;
use crate::state::App;

/// Pause after an error of `accept`, too many open files say: retrying at once would spin.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// An error that keeps the server from listening.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is reachable from other machines, but no keys are configured.
    #[error(
        "will not listen on {address} without keys: everybody who reaches it could read and write everything"
    )]
    NoKeys {
        /// Address to listen on, from the configuration.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// Address to listen on, from the configuration.
        address: SocketAddr,
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
}

/// A server that listens, and answers once it runs.
#[derive(Debug)]
pub struct Server {
    app: App,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens where the configuration says. Port 0 takes any.
    ///
    /// # Errors
    /// [`ServeError::NoKeys`] on any address but loopback while no keys are configured; the address is taken or
    /// not this machine's.
    pub async fn bind(app: App) -> Result<Self, ServeError> {
        let address = app.config().server.listen;
        // Loopback alone is protected by the machine's own users; anything else needs keys.
        if !address.ip().is_loopback() && !app.api_keys().is_key_required() {
            return Err(ServeError::NoKeys { address });
        }
        let failed = |source| ServeError::Bind { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            app,
            listener,
            address,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready. Then no connection is accepted any more, streams are ended, and requests that
    /// run have as long as the configuration gives them; what runs on is cut off.
    pub async fn run_until(self, stop: impl Future<Output = ()>) {
        let Self { app, listener, .. } = self;
        let limits = app.config().server.limits.clone();
        let protocol = {
            let mut protocol = http1::Builder::new();
            protocol
                .timer(TokioTimer::new())
                // Counted from the end of the previous answer, so it is the keep-alive time too.
                .header_read_timeout(Duration::from_secs(limits.keep_alive_seconds))
                .max_headers(limits.headers)
                // The limit itself is exact (`http::limits`); this one is on what is read, which comes in steps.
                .max_buf_size(limits.header_bytes.saturating_mul(2));
            protocol
        };
        let clients = match app.api_keys().is_key_required() {
            true => ClientKeys::Needed,
            false => ClientKeys::None,
        };
        let connection_limits =
            ConnectionLimits::new(limits.connections, limits.connections_per_peer, clients);
        let service = HttpService {
            protocol,
            router: routes::router(&app),
            connections: Arc::new(Connections::new(connection_limits)),
            draining: CancellationToken::new(),
            header_timeout: Duration::from_secs(limits.header_seconds),
            send_timeout: Duration::from_secs(limits.send_seconds),
        };
        if let Some(figures) = app.metrics_handle() {
            let upkeep = run_upkeep_loop(figures.clone());
            let upkeep = app
                .shutdown_token()
                .clone()
                .run_until_cancelled_owned(upkeep);
            app.background_tasks().spawn(upkeep);
        }
        if !app.config().retention.is_empty() {
            let retention = run_retention_loop(app.clone());
            let token = app.shutdown_token().clone();
            let retention = token.run_until_cancelled_owned(retention);
            app.background_tasks().spawn(retention);
        }
        let sweep = run_call_sweep_loop(app.clone());
        let token = app.shutdown_token().clone();
        app.background_tasks()
            .spawn(token.run_until_cancelled_owned(sweep));
        let mut running = JoinSet::new();
        tokio::select! {
            () = stop => {}
            never = service.accept_connections(listener, &mut running) => match never {},
        }
        // Streams end first: they would otherwise hold their connections for the whole drain time.
        app.shutdown_token().cancel();
        app.background_tasks().close();
        let drained = async {
            service.draining.cancel();
            while running.join_next().await.is_some() {}
            // Answers that were captured last are stored before the process ends.
            app.background_tasks().wait().await;
        };
        let drain = Duration::from_secs(limits.drain_seconds);
        if tokio::time::timeout(drain, drained).await.is_err() {
            tracing::warn!(
                seconds = limits.drain_seconds,
                "requests were cut off that did not end in time"
            );
        }
        running.shutdown().await;
    }
}

/// What serves each connection.
struct HttpService {
    protocol: http1::Builder,
    router: Router,
    connections: Arc<Connections>,
    /// Cancelled when the server stops: each connection ends after the request that it runs.
    draining: CancellationToken,
    /// How long the first request's head may take.
    header_timeout: Duration,
    /// How long sending an answer may stall.
    send_timeout: Duration,
}

impl HttpService {
    async fn accept_connections(
        &self,
        listener: TcpListener,
        running: &mut JoinSet<()>,
    ) -> Infallible {
        loop {
            self.connections.wait_for_room().await;
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                // Finished tasks are reaped while waiting, so that the set does not grow with every connection.
                Some(_) = running.join_next() => continue,
            };
            match accepted {
                Ok((stream, peer)) => {
                    // Without it, small events of a stream wait for the acknowledgement of the previous packet.
                    let _ = stream.set_nodelay(true);
                    let close = self.draining.child_token();
                    let stream = ClientStream::new(stream, self.send_timeout);
                    let added = (close.clone(), stream.is_stalled());
                    // Without an answer: it would take the room that there is not.
                    let Some(connection) = self.connections.add(peer.ip(), added) else {
                        tracing::debug!(%peer, "a peer has too many connections that are busy");
                        continue;
                    };
                    running.spawn(self.serve_connection(stream, connection, close));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    fn serve_connection(
        &self,
        stream: ClientStream,
        connection: Arc<Connection>,
        close: CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        let (asked, first) = (Arc::new(Notify::new()), self.header_timeout);
        let service = {
            let (asked, connection) = (asked.clone(), connection.clone());
            let router = TowerToHyperService::new(self.router.clone());
            service_fn(move |request| {
                asked.notify_one();
                let running = connection.begin_request();
                let response = router.call(request);
                let connection = connection.clone();
                async move {
                    let response = response.await?;
                    let principal = response.extensions().get::<Principal>();
                    if principal.is_some_and(|caller| caller.key.is_some()) {
                        connection.set_has_key();
                    }
                    let response = match connection.is_beyond_share() {
                        true => refuse_stranger(),
                        false => response,
                    };
                    // A request runs until its answer is sent.
                    Ok::<_, Infallible>(response.map(|body| GuardedBody {
                        body,
                        _running: running,
                    }))
                }
            })
        };
        let served = self
            .protocol
            .serve_connection(TokioIo::new(stream), service);
        async move {
            // Held until the connection has ended: as long as it is open it counts.
            let _connection = connection;
            let mut served = std::pin::pin!(served);
            let ended = tokio::select! {
                // In this order, so that a request that has come is not lost.
                biased;
                ended = &mut served => ended,
                () = asked.notified() => tokio::select! {
                    ended = &mut served => ended,
                    () = close.cancelled() => {
                        served.as_mut().graceful_shutdown();
                        served.await
                    }
                },
                // The first head has its own, shorter timeout: hyper's is the keep-alive time.
                () = tokio::time::sleep(first) => return,
                // Nothing was asked yet.
                () = close.cancelled() => return,
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        }
    }
}

/// What a client without a key is answered where the room that is left is kept for others: so little that it is sent at once, and
/// then the connection ends.
fn refuse_stranger() -> Response {
    let detail = "all connections for clients without a key are in use";
    Problem::new(Code::Overloaded, detail).into_last_response()
}

/// The body of an answer, with the request that runs until it is sent.
struct GuardedBody {
    body: Body,
    _running: RunningRequest,
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
