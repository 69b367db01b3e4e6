//! What a client sent, and what the provider received of it.

use std::sync::Arc;

use contexture_upstream_testkit::Received;

/// Of one connection only, or what frames a body.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The same requests: method, target, headers but those above, and every byte of the body.
pub(crate) fn compare(sent: &[Received], received: &[Arc<Received>]) {
    assert!(!sent.is_empty());
    let sent = sorted(sent.iter());
    let received = sorted(received.iter().map(Arc::as_ref));
    assert_eq!(sent.len(), received.len());
    for (sent, received) in sent.iter().zip(&received) {
        let of = |request: &Received| (request.method.clone(), request.target.clone());
        assert_eq!(of(sent), of(received));
        assert_eq!(
            headers(sent),
            headers(received),
            "headers of {}",
            sent.target
        );
        assert!(
            sent.body == received.body,
            "{}\nsent      {:?}\nreceived  {:?}",
            sent.target,
            sent.body,
            received.body
        );
    }
}

/// In an order of their own, for clients have several connections.
fn sorted<'a>(requests: impl Iterator<Item = &'a Received>) -> Vec<&'a Received> {
    let mut requests: Vec<&Received> = requests.collect();
    // The same request may come twice; what tells the two apart is a header.
    requests.sort_by_cached_key(|request| {
        (
            request.target.clone(),
            request.body.clone(),
            headers(request),
        )
    });
    requests
}

/// Sorted, for the order of different names means nothing.
fn headers(request: &Received) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, value) in &request.headers {
        let name = name.to_lowercase();
        if !HOP_BY_HOP.contains(&name.as_str()) {
            headers.push((name, String::from_utf8_lossy(value).into_owned()));
        }
    }
    headers.sort();
    headers
}
