//! What a client sends, seen before anything between it and the provider touches it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::provider::Received;
use crate::reader::RequestReader;

/// Passes connections on, byte for byte, and keeps what clients sent.
#[derive(Debug)]
pub struct Tap {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<CapturedBytes>>>,
    accepting: JoinHandle<()>,
}

/// The bytes of one connection.
type CapturedBytes = Arc<Mutex<BytesMut>>;

impl Tap {
    /// Listens on a free port of the loopback and passes on to `http://host:port`.
    pub async fn start(base: &str) -> Self {
        // An address and no name: nothing is resolved in tests.
        let target: SocketAddr = base.strip_prefix("http://").unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let accepting = tokio::spawn(accept_connections(listener, target, sent.clone()));
        Self {
            address,
            sent,
            accepting,
        }
    }

    /// Where it listens: `http://127.0.0.1:port`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests that were sent whole, connection after connection.
    pub async fn sent_requests(&self) -> Vec<Received> {
        let connections: Vec<Bytes> = {
            let sent = self.sent.lock().unwrap();
            let bytes = |sent: &CapturedBytes| sent.lock().unwrap().clone().freeze();
            sent.iter().map(bytes).collect()
        };
        let mut requests = Vec::new();
        for bytes in connections {
            let mut reader = RequestReader::new(&bytes[..]);
            // An unfinished request at the end is not counted as sent.
            while let Ok(Some(request)) = reader.next_request().await {
                requests.push(request);
            }
        }
        requests
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept_connections(
    listener: TcpListener,
    target: SocketAddr,
    sent: Arc<Mutex<Vec<CapturedBytes>>>,
) {
    // Its connections end with this set, and so with the tap.
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let kept = CapturedBytes::default();
        sent.lock().unwrap().push(kept.clone());
        connections.spawn(async move {
            let Ok(server) = TcpStream::connect(target).await else {
                return;
            };
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
            }
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            // When either side has closed, both are: HTTP knows no half.
            tokio::select! {
                () = forward_bytes(from_client, to_server, Some(kept)) => {}
                () = forward_bytes(from_server, to_client, None) => {}
            }
        });
        // Finished connections are reaped as new ones come.
        while connections.try_join_next().is_some() {}
    }
}

async fn forward_bytes(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    kept: Option<CapturedBytes>,
) {
    let mut bytes = BytesMut::new();
    while from.read_buf(&mut bytes).await.is_ok_and(|read| read > 0) {
        let read = bytes.split();
        // Kept before it is passed on, so that a test never misses what a server has already answered.
        if let Some(kept) = &kept {
            kept.lock().unwrap().extend_from_slice(&read);
        }
        if to.write_all(&read).await.is_err() {
            return;
        }
    }
}
