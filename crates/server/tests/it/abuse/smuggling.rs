//! One request never becomes two.

use contexture::Engine;
use contexture_upstream_testkit::{Received, UpstreamResponse as Scripted};

use super::corpus::{Case, HIDDEN, Passed, cases};
use super::wire::{exchange, statuses};
use crate::proxy::Proxied;

const LIMITS: &str = "[server.limits]\nbody_bytes = 1000000\n";

async fn proxied() -> Proxied {
    let provider = |_: &Received| Scripted::text(200, "yes");
    Proxied::to(provider, Engine::in_memory(), LIMITS).await
}

/// What is wrong with how a case was read.
async fn fault(proxied: &Proxied, case: &Case) -> Option<String> {
    let before = proxied.upstream.received_requests().len();
    let came = exchange(proxied.stand.address, &case.bytes).await;
    let seen = proxied.upstream.received_requests().split_off(before);
    let passed: Vec<_> = seen
        .iter()
        .map(|seen| Passed {
            method: seen.method.clone(),
            target: seen.target.clone(),
            body: String::from_utf8_lossy(&seen.body).into_owned(),
        })
        .collect();
    let clear = seen.iter().all(|seen| {
        let framing = ["content-length", "transfer-encoding"];
        let count = |name: &str| {
            let named = seen.headers.iter();
            named
                .filter(|(known, _)| known.eq_ignore_ascii_case(name))
                .count()
        };
        framing.map(count).iter().sum::<usize>() <= 1
            && count("host") == 1
            && ["upgrade", "http2-settings", "te", "trailer"].map(count) == [0; 4]
    });
    let good = statuses(&came) == case.answers && passed == case.passed && clear;
    (!good).then(|| format!("{}: {seen:?}\n{came}\n", case.name))
}

#[tokio::test]
async fn a_request_is_read_in_one_way_or_refused() {
    let proxied = proxied().await;
    let cases = cases();
    assert!(cases.len() >= 100, "{}", cases.len());
    let mut faults = Vec::new();
    for case in &cases {
        faults.extend(fault(&proxied, case).await);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let refused = proxied.upstream.wait_until(|_| true).await.refused;
    assert_eq!(refused, [""; 0], "the provider could read all it got");
}

#[tokio::test]
async fn what_comes_before_its_answer_is_finished_is_not_lost() {
    let proxied = proxied().await;
    // One byte at a time: where the pieces are cut changes nothing.
    let bytes = format!(
        "POST /v1/files HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello{HIDDEN}"
    );
    let mut stream = tokio::net::TcpStream::connect(proxied.stand.address)
        .await
        .unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in bytes.as_bytes() {
        use tokio::io::AsyncWriteExt as _;
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let came = super::wire::all(&mut stream).await;
    assert_eq!(statuses(&came), [200]);
    assert_eq!(proxied.upstream.received_requests().len(), 1);
}

/// A provider that says it speaks another protocol now.
#[tokio::test]
async fn a_provider_cannot_change_the_protocol() {
    let provider =
        |_: &Received| Scripted::text(101, "HTTP/1.1 200 OK\r\n\r\n").with_header("upgrade", "h2c");
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let head = "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\nupgrade: h2c\r\n\r\n";
    let came = exchange(proxied.stand.address, format!("{head}{HIDDEN}").as_bytes()).await;
    assert_eq!(statuses(&came), [502], "{came}");
    let seen = proxied.upstream.received_requests();
    assert!(
        seen.iter()
            .all(|seen| seen.header("upgrade").is_none() && seen.header("connection").is_none()),
        "{seen:?}"
    );
}
