//! The listener: accepts connections within limits on their number, head size and idle time, and drains them at shutdown.
//!
//! Not here: TLS and HTTP/2, which are left to a reverse proxy in front.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::metrics::run_upkeep_loop;
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
                .max_buf_size(limits.header_bytes);
            protocol
        };
        let service = Connections {
            protocol,
            router: routes::router(&app),
            graceful: GracefulShutdown::new(),
            connection_slots: Arc::new(Semaphore::new(limits.connections)),
            header_timeout: Duration::from_secs(limits.header_seconds),
        };
        if let Some(figures) = app.metrics_handle() {
            let upkeep = run_upkeep_loop(figures.clone());
            let upkeep = app
                .shutdown_token()
                .clone()
                .run_until_cancelled_owned(upkeep);
            app.background_tasks().spawn(upkeep);
        }
        let mut running = JoinSet::new();
        tokio::select! {
            () = stop => {}
            never = service.accept_connections(listener, &mut running) => match never {},
        }
        // Streams end first: they would otherwise hold their connections for the whole drain time.
        app.shutdown_token().cancel();
        app.background_tasks().close();
        let drained = async {
            service.graceful.shutdown().await;
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

struct Connections {
    protocol: http1::Builder,
    router: Router,
    graceful: GracefulShutdown,
    connection_slots: Arc<Semaphore>,
    /// How long the first request's head may take.
    header_timeout: Duration,
}

impl Connections {
    async fn accept_connections(
        &self,
        listener: TcpListener,
        running: &mut JoinSet<()>,
    ) -> Infallible {
        loop {
            let Ok(slot) = self.connection_slots.clone().acquire_owned().await else {
                // Unreachable: the semaphore is never closed.
                std::future::pending().await
            };
            let stream = tokio::select! {
                accepted = listener.accept() => accepted,
                // Finished tasks are reaped while waiting, so that the set does not grow with every connection.
                Some(_) = running.join_next() => continue,
            };
            match stream {
                Ok((stream, _)) => {
                    let connection = self.serve_connection(stream);
                    running.spawn(async move {
                        connection.await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    fn serve_connection(&self, stream: TcpStream) -> impl Future<Output = ()> + use<> {
        // Without it, small events of a stream wait for the acknowledgement of the previous packet.
        let _ = stream.set_nodelay(true);
        let (asked, first) = (Arc::new(Notify::new()), self.header_timeout);
        let service = {
            let (asked, router) = (asked.clone(), self.router.clone());
            let router = TowerToHyperService::new(router);
            service_fn(move |request| {
                asked.notify_one();
                router.call(request)
            })
        };
        let connection = self
            .protocol
            .serve_connection(TokioIo::new(stream), service);
        let connection = self.graceful.watch(connection);
        async move {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = &mut connection => ended,
                // The first head has its own, shorter timeout: hyper's is the keep-alive time.
                () = asked.notified() => connection.await,
                () = tokio::time::sleep(first) => return,
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        }
    }
}
