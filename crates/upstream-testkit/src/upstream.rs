//! The listener, and what it has seen.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connection::{Connection, ConnectionState};
use crate::provider::Provider;
use crate::provider::Received;

/// A provider on the loopback. It stops when dropped, answers under way with it.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    seen: watch::Receiver<UpstreamLog>,
    accepting: JoinHandle<()>,
}

/// What an upstream has seen so far.
#[derive(Clone, Debug, Default)]
pub struct UpstreamLog {
    /// The requests, in the order in which they were complete.
    pub received: Vec<Arc<Received>>,
    /// Answers that were sent as they were meant to be.
    pub answered: usize,
    /// Clients that left before their answer's end.
    pub left: usize,
    /// What came and was no request.
    pub refused: Vec<String>,
}

impl Upstream {
    /// Listens on a free port of the loopback.
    pub async fn start(provider: impl Provider) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = watch::channel(UpstreamLog::default());
        let accepting = tokio::spawn(accept_connections(listener, Arc::new(provider), tell));
        Self {
            address,
            seen,
            accepting,
        }
    }

    /// Where it listens: `http://127.0.0.1:port`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn received_requests(&self) -> Vec<Arc<Received>> {
        self.seen.borrow().received.clone()
    }

    /// Waits until it has seen this.
    pub async fn wait_until(&self, condition: impl FnMut(&UpstreamLog) -> bool) -> UpstreamLog {
        let mut seen = self.seen.clone();
        seen.wait_for(condition).await.unwrap().clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept_connections(
    listener: TcpListener,
    provider: Arc<dyn Provider>,
    tell: watch::Sender<UpstreamLog>,
) {
    // Its connections end with this set, and so with the upstream.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (provider, tell) = (provider.clone(), tell.clone());
        connections.spawn(async move {
            serve_connection(Connection::new(stream), &*provider, &tell).await
        });
        // Finished connections are reaped as new ones come.
        while connections.try_join_next().is_some() {}
    }
}

async fn serve_connection(
    mut connection: Connection,
    provider: &dyn Provider,
    tell: &watch::Sender<UpstreamLog>,
) {
    loop {
        let request = match connection.next_request().await {
            Ok(Some(request)) => Arc::new(request),
            Ok(None) => return,
            Err(error) => {
                // Malformed requests are part of the log: tests assert that there are none.
                tell.send_modify(|seen| seen.refused.push(error.to_string()));
                return;
            }
        };
        let answer = provider.respond_to(&request);
        let is_last = request.header("connection") == Some("close");
        // Recorded before it is answered: a test may wait for the request while the answer is held back.
        tell.send_modify(|seen| seen.received.push(request));
        let left = connection.send_response(&answer).await;
        tell.send_modify(|seen| match left {
            ConnectionState::Open | ConnectionState::Closed => seen.answered += 1,
            ConnectionState::ByClient => seen.left += 1,
        });
        // Closing is decided by either side.
        if left != ConnectionState::Open || is_last {
            return;
        }
    }
}
