//! `idempotency-key`: the same request under one key is made once.

use reqwest::Method;
use serde_json::{Value, json};

use crate::messages::{said, talk};
use crate::test_support::{Answer, Stand};

async fn keyed(stand: &Stand, path: &str, key: &str, body: &Value) -> Answer {
    let request = stand
        .request(Method::POST, path)
        .header("content-type", "application/json");
    stand
        .send(
            request
                .header("idempotency-key", key)
                .body(body.to_string()),
        )
        .await
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer() {
    let stand = Stand::new().await;
    let path = format!("{}/messages", talk(&stand, "a", &[]).await);
    let first = keyed(&stand, &path, "k1", &said("one")).await;
    let again = keyed(&stand, &path, "k1", &said("one")).await;
    assert_eq!((first.status, &first.text), (again.status, &again.text));
    assert_eq!(first.headers["etag"], again.headers["etag"]);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert!(first.headers.get("idempotency-replayed").is_none());
    keyed(&stand, &path, "k1", &said("two"))
        .await
        .refused(422, "idempotency_key_reused");
    keyed(&stand, &path, "k2", &said("one")).await.ok();
    // A refusal is an answer as well.
    let refused = keyed(&stand, "/api/v1/conversations", "k3", &json!({"id": "a"})).await;
    refused.refused(409, "already_exists");
    let again = keyed(&stand, "/api/v1/conversations", "k3", &json!({"id": "a"})).await;
    assert_eq!(refused.text, again.text);
    assert_eq!(
        stand.get("/api/v1/conversations/a/items").await.ok()["depth"],
        2
    );
    keyed(&stand, &path, &"k".repeat(256), &said("one"))
        .await
        .refused(400, "bad_header");
    let made = keyed(&stand, "/api/v1/conversations", "k4", &json!({}))
        .await
        .ok();
    assert_eq!(
        keyed(&stand, "/api/v1/conversations", "k4", &json!({}))
            .await
            .ok(),
        made
    );
}

#[tokio::test]
async fn sent_at_the_same_time_it_is_made_once() {
    let stand = Stand::new().await;
    let path = format!("{}/messages", talk(&stand, "a", &[]).await);
    let body = said("one");
    let answers =
        futures_util::future::join_all((0..8).map(|_| keyed(&stand, &path, "k", &body))).await;
    let mut made = 0;
    for answer in &answers {
        match answer.status.as_u16() {
            201 => made += 1,
            _ => answer.refused(409, "in_progress"),
        }
    }
    assert!(made >= 1);
    assert_eq!(
        stand.get("/api/v1/conversations/a/items").await.ok()["depth"],
        1
    );
    keyed(&stand, &path, "k", &body).await.ok();
    assert_eq!(
        stand.get("/api/v1/conversations/a/items").await.ok()["depth"],
        1
    );
}

#[tokio::test]
async fn a_key_outlives_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.db");
    let open = async || contexture::open(file.to_str().unwrap()).await.unwrap();
    let stand = Stand::over(open().await, "").await;
    let path = format!("{}/messages", talk(&stand, "a", &[]).await);
    let first = keyed(&stand, &path, "k", &said("one")).await;
    stand.stopped().await;
    let stand = Stand::over(open().await, "").await;
    let again = keyed(&stand, &path, "k", &said("one")).await;
    assert_eq!((first.status, first.text), (again.status, again.text));
}

#[tokio::test]
async fn keys_of_two_owners_are_two_keys() {
    let (ada, first) = crate::keys::key("ada", "ada", &["read", "write"]);
    let (bob, second) = crate::keys::key("bob", "bob", &["read", "write"]);
    let mut stand = Stand::with(&[first, second].concat()).await;
    for key in [&ada, &bob] {
        stand.as_bearer(Some(key));
        let made = keyed(&stand, "/api/v1/conversations", "k", &json!({"id": "a"})).await;
        assert!(made.headers.get("idempotency-replayed").is_none());
        assert_eq!(made.status, 201);
    }
}

#[tokio::test]
async fn who_may_not_write_leaves_no_answer() {
    let (reader, first) = crate::keys::key("reader", "ada", &["read"]);
    let (writer, second) = crate::keys::key("writer", "ada", &["read", "write"]);
    let mut stand = Stand::with(&[first, second].concat()).await;
    let path = "/api/v1/conversations";
    stand.as_bearer(Some(&reader));
    keyed(&stand, path, "k", &json!({"id": "a"}))
        .await
        .refused(403, "missing_scope");
    let values = contexture::store::ListEntries::default();
    let owner = "ada".parse().unwrap();
    let kept = stand
        .engine
        .store()
        .list_entries(&owner, values)
        .await
        .unwrap();
    assert_eq!(kept.entries, []);
    stand.as_bearer(Some(&writer));
    let made = keyed(&stand, path, "k", &json!({"id": "a"})).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

#[tokio::test]
async fn a_missing_scope_is_not_an_answer_for_good() {
    let (writer, first) = crate::keys::key("writer", "ada", &["write"]);
    let (both, second) = crate::keys::key("both", "ada", &["read", "write"]);
    let mut stand = Stand::with(&[first, second].concat()).await;
    stand.as_bearer(Some(&both));
    let path = format!("{}/compile", talk(&stand, "a", &["one"]).await);
    let body = json!({"to": "openai-chat", "model": "gpt-4o"});
    stand.as_bearer(Some(&writer));
    keyed(&stand, &path, "k", &body)
        .await
        .refused(403, "missing_scope");
    stand.as_bearer(Some(&both));
    keyed(&stand, &path, "k", &body).await.ok();
}
