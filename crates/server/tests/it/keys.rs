//! Who may call: keys, scopes, loopback.

use contexture_server::NewKey;
use reqwest::Method;
use serde_json::json;

use crate::test_support::Stand;

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
        ("origin", "http://localhost:3000", 200),
        ("origin", "http://127.0.0.1:3000", 200),
    ] {
        let request = stand.request(Method::GET, path).header(name, value);
        assert_eq!(stand.send(request).await.status, status, "{name}: {value}");
    }
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
