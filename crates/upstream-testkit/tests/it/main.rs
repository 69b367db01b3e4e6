//! The upstream does on the wire what it says, and its answers are the providers'.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod replaying;
mod scripted;
mod tap;
mod wire;

use contexture_upstream_testkit::Upstream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends a request that asks for the connection to be closed, and reads until the connection is closed.
async fn exchange(upstream: &Upstream, sent: &[u8]) -> Vec<u8> {
    let mut stream = connect(upstream).await;
    stream.write_all(sent).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    answer
}

async fn connect(upstream: &Upstream) -> TcpStream {
    let address = upstream.base_url();
    let address = address.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// A request as a client writes it.
fn post(target: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: here\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
