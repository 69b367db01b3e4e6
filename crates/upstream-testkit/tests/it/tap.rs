//! What a client sends is kept, and comes through.

use contexture_upstream_testkit::{Received, Tap, Upstream, UpstreamResponse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::post;

#[tokio::test]
async fn what_is_sent_is_kept_and_passed_on() {
    let upstream = Upstream::start(|request: &Received| {
        UpstreamResponse::from_body(200, "", request.body.clone())
    })
    .await;
    let tap = Tap::start(&upstream.base_url()).await;
    let base = tap.base_url();
    let mut client = TcpStream::connect(base.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    client
        .write_all(b"GET /first HTTP/1.1\r\nx: y\r\n\r\n")
        .await
        .unwrap();
    upstream.wait_until(|seen| seen.answered == 1).await;
    client.write_all(&post("/second", b"body")).await.unwrap();
    let mut answers = Vec::new();
    client.read_to_end(&mut answers).await.unwrap();
    assert!(answers.ends_with(b"\r\n\r\nbody"));
    let sent = tap.sent_requests().await;
    let received: Vec<Received> = upstream
        .received_requests()
        .iter()
        .map(|request| (**request).clone())
        .collect();
    assert_eq!(sent, received);
    assert_eq!(sent.len(), 2);
}
