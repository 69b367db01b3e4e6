//! Bytes: how answers are framed, cut, held back, and what is kept of requests.

use contexture_upstream_testkit::{Gate, Received, Upstream, UpstreamResponse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{connect, exchange};

const GET: &[u8] = b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n";

async fn check(answer: UpstreamResponse, expected: &str) {
    let upstream = Upstream::start(move |_: &Received| answer.clone()).await;
    let sent = exchange(&upstream, GET).await;
    assert_eq!(String::from_utf8(sent).unwrap(), expected);
}

#[tokio::test]
async fn an_answer_is_sent_byte_for_byte() {
    check(
        UpstreamResponse::text(201, "yes").with_header("X-Odd", "a  b"),
        "HTTP/1.1 201 \r\ncontent-type: text/plain; charset=utf-8\r\nX-Odd: a  b\r\ncontent-length: 3\r\n\r\nyes",
    )
    .await;
    let events =
        || UpstreamResponse::event_stream(["data: 1\n\n".to_owned(), "data: 2\n\n".to_owned()]);
    let head = "HTTP/1.1 200 \r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
    let sent = |chunks: &str| format!("{head}{chunks}");
    check(
        events(),
        &sent("9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"),
    )
    .await;
    let cut = events().in_pieces_of(16);
    check(
        cut,
        &sent("10\r\ndata: 1\n\ndata: 2\r\n2\r\n\n\n\r\n0\r\n\r\n"),
    )
    .await;
    check(
        events().dropped_at(10),
        &sent("9\r\ndata: 1\n\n\r\n1\r\nd\r\n"),
    )
    .await;
    check(UpstreamResponse::no_response(), "").await;
    check(
        UpstreamResponse::text(200, "whole").dropped_at(2),
        "HTTP/1.1 200 \r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 5\r\n\r\nwh",
    )
    .await;
}

#[tokio::test]
async fn requests_are_kept_as_they_came() {
    let upstream = Upstream::start(|_: &Received| UpstreamResponse::text(200, "")).await;
    let chunked = b"POST /a?b=%20c HTTP/1.1\r\nHost: x\r\nX-Two: 2\r\nX-One: 1\r\nx-two:  3 \r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\ntrailer: t\r\n\r\n";
    let whole = b"PUT /whole HTTP/1.1\r\ncontent-length: 2\r\nconnection: close\r\n\r\n\xff\x00";
    exchange(&upstream, &[&chunked[..], whole].concat()).await;
    let received = upstream.received_requests();
    let first = &received[0];
    assert_eq!(
        (first.method.as_str(), first.target.as_str()),
        ("POST", "/a?b=%20c")
    );
    let headers: Vec<(&str, &[u8])> = first
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), &value[..]))
        .collect();
    let expected: [(&str, &[u8]); 5] = [
        ("Host", b"x"),
        ("X-Two", b"2"),
        ("X-One", b"1"),
        ("x-two", b"3"),
        ("Transfer-Encoding", b"chunked"),
    ];
    assert_eq!(headers, expected);
    assert_eq!((first.path(), first.header("x-ONE")), ("/a", Some("1")));
    assert_eq!(&first.body[..], b"abcde");
    assert_eq!(&received[1].body[..], b"\xff\x00");
}

#[tokio::test]
async fn what_is_no_request_is_told() {
    let upstream = Upstream::start(|_: &Received| UpstreamResponse::text(200, "")).await;
    exchange(&upstream, b"GET / HTTP/1.1\r\nno header\r\n\r\n").await;
    let seen = upstream.wait_until(|seen| !seen.refused.is_empty()).await;
    assert!(seen.received.is_empty());
}

#[tokio::test]
async fn a_gate_holds_back_what_follows() {
    let gate = Gate::new_closed();
    let held = gate.clone();
    let provider = move |_: &Received| {
        UpstreamResponse::event_stream(["one".to_owned(), "two".to_owned()]).gated_by(&held)
    };
    let upstream = Upstream::start(provider).await;
    let mut client = connect(&upstream).await;
    client.write_all(GET).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"3\r\none\r\n") {
        client.read_buf(&mut seen).await.unwrap();
    }
    assert_eq!(upstream.wait_until(|_| true).await.answered, 0);
    gate.release_chunks(1);
    client.read_to_end(&mut seen).await.unwrap();
    assert!(seen.ends_with(b"3\r\ntwo\r\n0\r\n\r\n"));
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed() {
    let stalls = |_: &Received| UpstreamResponse::text(200, "never whole").stalled_at(5);
    let upstream = Upstream::start(stalls).await;
    let mut client = connect(&upstream).await;
    client.write_all(GET).await.unwrap();
    let mut seen = Vec::new();
    while !seen.ends_with(b"never") {
        client.read_buf(&mut seen).await.unwrap();
    }
    drop(client);
    assert_eq!(upstream.wait_until(|seen| seen.left == 1).await.answered, 0);
}
