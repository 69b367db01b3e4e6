//! Bytes to a server and back, as they are.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends bytes and reads until the server closes.
pub(crate) async fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may close before all is sent.
    let _ = stream.write_all(bytes).await;
    all(&mut stream).await
}

/// What comes until the server closes, or cuts.
pub(crate) async fn all(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    // A server that neither answers nor closes is the failure.
    let ended = tokio::time::timeout(Duration::from_secs(60), read).await;
    assert!(
        ended.is_ok(),
        "still open after {}",
        String::from_utf8_lossy(&answer)
    );
    String::from_utf8_lossy(&answer).into_owned()
}

/// The statuses of the answers in what came.
pub(crate) fn statuses(text: &str) -> Vec<u16> {
    let answers = text.split("HTTP/1.").skip(1);
    let status = |answer: &str| answer.get(2..5).and_then(|status| status.parse().ok());
    answers.filter_map(status).collect()
}
