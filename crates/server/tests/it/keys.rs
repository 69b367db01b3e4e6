//! Who may call: keys, scopes, loopback.

use contexture_server::NewKey;
use reqwest::Method;
use serde_json::json;

use crate::proxy::configuration;
use crate::test_support::{RawLog, Stand};

/// A key for an owner, and its lines of the configuration.
pub(crate) fn key(name: &str, owner: &str, scopes: &[&str]) -> (String, String) {
    let key = NewKey::random().unwrap();
    let lines = format!(
        "[[keys]]\nname = {name:?}\nsha256 = \"{}\"\nowner = {owner:?}\nscopes = {scopes:?}\n",
        key.hash()
    );
    (key.secret().to_owned(), lines)
}

#[test]
fn a_key_is_256_random_bits_and_prints_nothing() {
    let (one, two) = (NewKey::random().unwrap(), NewKey::random().unwrap());
    assert_ne!(one.secret(), two.secret());
    assert_eq!(one.secret().len(), "ctx_".len() + 43);
    assert!(!format!("{one:?}").contains(one.secret()));
}

#[tokio::test]
async fn with_keys_everybody_needs_one() {
    let (key, lines) = key("ada", "acme/ada", &["read", "write"]);
    let mut stand = Stand::with(&lines).await;
    let path = "/api/v1/conversations";
    let without = stand.get(path).await;
    without.refused(401, "unauthenticated");
    assert_eq!(without.headers["www-authenticate"], "Bearer");
    let bearer = |key: &str| {
        stand
            .request(Method::GET, path)
            .header("authorization", format!("Bearer {key}"))
    };
    stand
        .send(bearer("ctx_wrong"))
        .await
        .refused(401, "unauthenticated");
    stand.send(bearer(&key)).await.ok();
    stand.get("/health").await.ok();
    stand.get("/openapi.json").await.ok();
    stand.as_bearer(Some(&key));
    stand.post(path, &json!({"id": "a"})).await.ok();
    let record = stand
        .engine
        .conversation("a")
        .owner("acme/ada")
        .open_existing()
        .await
        .unwrap();
    assert_eq!(record.owner().as_str(), "acme/ada");
    stand.as_bearer(Some(&key[..10]));
    stand.get(path).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn scopes_say_what_a_key_may_do() {
    let (reader, first) = key("reader", "ada", &["read"]);
    let (writer, second) = key("writer", "ada", &["write"]);
    let (admin, third) = key("admin", "ada", &["admin"]);
    let mut stand = Stand::with(&[first, second, third].concat()).await;
    let path = "/api/v1/conversations";
    for (key, reads, writes, figures) in [
        (&reader, 200, 403, 403),
        (&writer, 403, 201, 403),
        (&admin, 403, 403, 200),
    ] {
        stand.as_bearer(Some(key));
        assert_eq!(stand.get(path).await.status, reads);
        assert_eq!(stand.post(path, &json!({})).await.status, writes);
        assert_eq!(stand.get("/metrics").await.status, figures);
    }
    stand.as_bearer(Some(&reader));
    stand
        .post(path, &json!({}))
        .await
        .refused(403, "missing_scope");
}

#[tokio::test]
async fn without_keys_pages_of_other_sites_are_refused() {
    let stand = Stand::new().await;
    let path = "/api/v1/conversations";
    for (name, value, status) in [
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("host", "evil.example:8484", 403),
        ("host", "localhost:8484", 200),
        ("host", "localhost:80@evil.com", 403),
        // Other programs of this machine have pages too.
        ("origin", "http://localhost:3000", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "same-origin", 200),
        ("sec-fetch-site", "none", 200),
    ] {
        let request = stand.request(Method::GET, path).header(name, value);
        assert_eq!(stand.send(request).await.status, status, "{name}: {value}");
    }
}

/// The routes of the three interfaces: an origin is judged alike at each.
async fn statuses_by_interface(stand: &Stand, headers: &[(&str, &str)]) -> Vec<u16> {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let mut statuses = Vec::new();
    for (method, path, body) in [
        (Method::GET, "/api/v1/conversations", None),
        (Method::POST, "/mcp", Some(list.to_string())),
        (Method::GET, "/openai/v1/models", None),
    ] {
        let mut request = stand
            .request(method, path)
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        statuses.push(stand.send(request).await.status.as_u16());
    }
    statuses
}

#[tokio::test]
async fn one_rule_decides_about_origins_everywhere() {
    let log = RawLog::start().await;
    let (key, lines) = key("ada", "ada", &["read", "proxy"]);
    let open = configuration(&log.base_url(), "");
    let listed = format!("[server]\norigins = [\"https://app.example.com\"]\n{open}");
    for (config, key) in [
        (listed.clone(), None),
        (format!("{listed}{lines}"), Some(&*key)),
    ] {
        let mut stand = Stand::with(&config).await;
        stand.as_bearer(key);
        let own = format!("http://localhost:{}", stand.address.port());
        let other = format!("http://localhost:{}", stand.address.port().wrapping_add(1));
        for (origin, expected) in [
            (&*own, 200),
            ("https://app.example.com", 200),
            (&other, 403),
            ("https://evil.example", 403),
            ("null", 403),
        ] {
            let headers = [("origin", origin), ("sec-fetch-site", "cross-site")];
            let found = statuses_by_interface(&stand, &headers).await;
            assert_eq!(found, [expected; 3], "{origin}, key: {}", key.is_some());
        }
        // A page that hides its origin needs a key, which the browser does not send by itself.
        let hidden = statuses_by_interface(&stand, &[("sec-fetch-site", "cross-site")]).await;
        assert_eq!(hidden, [if key.is_some() { 200 } else { 403 }; 3]);
    }
}

#[tokio::test]
async fn browsers_are_answered_from_the_list() {
    let log = RawLog::start().await;
    let open = configuration(&log.base_url(), "");
    let config = format!("[server]\norigins = [\"https://app.example.com\"]\n{open}");
    let stand = Stand::with(&config).await;
    for path in [
        "/api/v1/conversations",
        "/mcp",
        "/openai/v1/chat/completions",
    ] {
        let ask = |origin: &str| {
            let request = stand
                .request(Method::OPTIONS, path)
                .header("origin", origin);
            let request = request.header("access-control-request-method", "POST");
            request.header(
                "access-control-request-headers",
                "authorization,content-type",
            )
        };
        let may = stand.send(ask("https://app.example.com")).await;
        assert_eq!(may.status, 204, "{path}");
        let said = |name: &str| may.headers[name].to_str().unwrap().to_owned();
        assert_eq!(
            said("access-control-allow-origin"),
            "https://app.example.com"
        );
        assert_eq!(
            said("access-control-allow-headers"),
            "authorization,content-type"
        );
        assert!(said("access-control-allow-methods").contains("POST"));
        let refused = stand.send(ask("https://evil.example")).await;
        refused.refused(403, "foreign_origin");
        assert!(refused.headers.get("access-control-allow-origin").is_none());
    }
    // Not even asked: the provider.
    assert_eq!(log.text(), "");
    let get = stand.request(Method::GET, "/api/v1/conversations");
    let read = stand
        .send(get.header("origin", "https://app.example.com"))
        .await;
    assert_eq!(
        read.headers["access-control-allow-origin"],
        "https://app.example.com"
    );
}

#[tokio::test]
async fn too_many_requests_are_told_when_to_come_again() {
    let stand = Stand::with("[server.limits]\nper_minute = 10").await;
    stand.get("/api/v1/conversations").await.ok();
    let refused = stand.get("/api/v1/conversations").await;
    refused.refused(429, "too_many_requests");
    assert!(
        refused.headers["retry-after"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            <= 6
    );
    assert_eq!(refused.json()["retryable"], true);
    stand.get("/health").await.ok();
}
