//! Whose key goes where.

use contexture::Engine;
use contexture_server::NewKey;
use contexture_upstream_testkit::{Received, ScriptedProvider, Upstream};
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Proxied, chat, configuration, says};
use crate::test_support::Stand;

const CHAT: &str = "/v1/chat/completions";

/// Places for a key, and what is asked there.
const SLOTS: [(&str, &str, &str); 3] = [
    ("authorization", "Bearer ", CHAT),
    ("x-api-key", "", "/v1/messages"),
    (
        "x-goog-api-key",
        "",
        "/v1beta/models/gemini-2.5-flash:generateContent",
    ),
];

fn keyed(scopes: &str) -> (NewKey, String) {
    let key = NewKey::random().unwrap();
    let config = format!(
        "[[keys]]\nname = \"team\"\nsha256 = \"{}\"\nowner = \"team\"\nscopes = {scopes}\n",
        key.hash()
    );
    (key, config)
}

fn headers(received: &Received) -> String {
    format!("{:?} {}", received.headers, received.target)
}

#[tokio::test]
async fn without_keys_of_ours_the_clients_goes_through() {
    let proxied = Proxied::new().await;
    for (slot, word, path) in SLOTS {
        let value = format!("{word}sk-client");
        proxied
            .ask_with(path, &json!({"messages": []}), &[(slot, &value)])
            .await;
        let seen = proxied.upstream.received_requests();
        assert_eq!(seen.last().unwrap().header(slot), Some(value.as_str()));
    }
    let request = proxied.stand.request(
        Method::POST,
        "/v1beta/models/gemini-2.5-flash:generateContent?key=sk-client&alt=json",
    );
    proxied.stand.send(request).await;
    let seen = proxied.upstream.received_requests();
    assert!(
        seen.last()
            .unwrap()
            .target
            .ends_with("?key=sk-client&alt=json")
    );
}

#[tokio::test]
async fn ours_is_asked_for_and_goes_no_further() {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "sk-of-the-upstream\n").unwrap();
    let (key, config) = keyed("[\"proxy\"]");
    let with_key = configuration(&upstream.base_url(), "").replace(
        "base_url",
        &format!("key_file = {:?}\nbase_url", file.to_str().unwrap()),
    );
    let stand = Stand::over(Engine::in_memory(), &format!("{config}{with_key}")).await;
    let ask = |path: &str, name: &str, value: &str| {
        let request = stand
            .request(Method::POST, path)
            .header("content-type", "application/json")
            .header(name, value)
            .body(chat(&[says("Hi")]).to_string());
        stand.send(request)
    };
    for (slot, word, path) in SLOTS {
        let nobody = ask(path, "x-nothing", "1").await;
        assert_eq!(nobody.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(nobody.headers["x-contexture-failed"], "unauthenticated");
        let stranger = ask(path, slot, &format!("{word}sk-stranger")).await;
        assert_eq!(stranger.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(!stranger.text.contains("sk-stranger"), "{}", stranger.text);
        for (name, value) in [
            (slot, format!("{word}{}", key.secret())),
            ("x-contexture-key", key.secret().to_owned()),
        ] {
            let before = upstream.received_requests().len();
            ask(path, name, &value).await;
            let seen = upstream.received_requests();
            assert_eq!(seen.len(), before + 1, "{path} with {name}");
            let sent = seen.last().unwrap();
            let theirs = format!("{word}sk-of-the-upstream");
            assert_eq!(sent.header(slot), Some(theirs.as_str()));
            assert!(!headers(sent).contains(key.secret()), "{}", headers(sent));
        }
    }
    let request = stand.request(
        Method::POST,
        &format!(
            "/gemini/v1beta/models/g:generateContent?key={}&alt=json",
            key.secret()
        ),
    );
    stand.send(request).await;
    let seen = upstream.received_requests();
    let sent = seen.last().unwrap();
    assert_eq!(sent.target, "/v1beta/models/g:generateContent?alt=json");
    assert_eq!(sent.header("x-goog-api-key"), Some("sk-of-the-upstream"));
}

#[tokio::test]
async fn a_key_must_be_allowed_to_call_providers() {
    let (key, config) = keyed("[\"read\", \"write\"]");
    let proxied = Proxied::to(ScriptedProvider::default(), Engine::in_memory(), &config).await;
    let asked = [("x-contexture-key", key.secret())];
    let answer = proxied.ask_with(CHAT, &chat(&[says("Hi")]), &asked).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.json()["error"]["type"], "permission_error");
    assert!(proxied.upstream.received_requests().is_empty());
}

#[tokio::test]
async fn what_passes_belongs_to_the_bearer_of_the_key() {
    let (key, config) = keyed("[\"proxy\", \"read\"]");
    let (other, more) = keyed("[\"proxy\", \"read\"]");
    let more = more.replace("\"team\"", "\"others\"");
    let mut proxied = Proxied::to(
        ScriptedProvider::default(),
        Engine::in_memory(),
        &format!("{config}{more}"),
    )
    .await;
    proxied.stand.as_bearer(Some(key.secret()));
    let answer = proxied.ask(CHAT, &chat(&[says("Hi")])).await;
    answer.ok();
    proxied.outcome(&answer).await;
    assert_eq!(proxied.conversations().await.len(), 1);
    let id = answer.headers["x-contexture-request"]
        .to_str()
        .unwrap()
        .to_owned();
    proxied.stand.as_bearer(Some(other.secret()));
    assert!(proxied.conversations().await.is_empty());
    let theirs = proxied.stand.get(&format!("/api/v1/requests/{id}")).await;
    theirs.refused(404, "not_found");
}
