//! Whose key goes where.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use contexture::Engine;
use contexture_server::NewKey;
use contexture_server::config::KeyHash;
use contexture_upstream_testkit::{Received, ScriptedProvider, Upstream};
use percent_encoding::percent_decode;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{Proxied, chat, configuration, says};
use crate::abuse::wire::{exchange, statuses};
use crate::test_support::{RawLog, Stand};

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

/// A key in every spelling in which a client, or a library below it, might write it.
fn spellings(key: &str) -> Vec<(&'static str, String)> {
    let base64 = |text: String| STANDARD.encode(text);
    let escaped =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![
        ("plain", key.to_owned()),
        ("bearer", format!("Bearer {key}")),
        ("small bearer", format!("bearer {key}")),
        ("capital bearer", format!("BEARER  {key}")),
        ("bearer and tab", format!("Bearer\t{key}")),
        ("quoted", format!("Bearer \"{key}\"")),
        ("another scheme", format!("Token token={key}")),
        ("raw basic", format!("Basic {key}")),
        (
            "basic, as the user",
            format!("Basic {}", base64(format!("{key}:"))),
        ),
        (
            "basic, as the password",
            format!("basic {}", base64(format!("me:{key}"))),
        ),
        (
            "base64 for addresses",
            URL_SAFE_NO_PAD.encode(format!("??>{key}")),
        ),
        ("base64 twice", base64(base64(key.to_owned()))),
        (
            "base64 behind letters",
            format!("ab{}", base64(key.to_owned())),
        ),
        ("hexadecimal", hex),
        ("escaped", escaped(key)),
        ("escaped twice", escaped(&escaped(key))),
        ("partly escaped", key.replacen('_', "%5f", 1)),
        (
            "escaped base64",
            base64(format!("k={key}")).replace('=', "%3D"),
        ),
        (
            "second of a list",
            format!("Bearer sk-client, Bearer {key}"),
        ),
        ("within a word", format!("x{key}x")),
        (
            "signed",
            format!("AWS4-HMAC-SHA256 Credential={key}/20261122/eu/x/aws4_request"),
        ),
    ]
}

/// The key of a configuration, and one that somebody made up.
fn keys_to_hide() -> [(String, String); 2] {
    let (key, config) = keyed("[\"proxy\"]");
    let made_up = "correct-horse-battery";
    let lines = format!(
        "[[keys]]\nname = \"other\"\nsha256 = \"{}\"\nowner = \"other\"\n",
        KeyHash::of(made_up)
    );
    [
        (key.secret().to_owned(), config),
        (made_up.to_owned(), lines),
    ]
}

/// Sends a head as it is, and returns the status of the answer.
async fn status_of(stand: &Stand, head: &str) -> u16 {
    let text = format!("{head}host: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let answer = exchange(stand.address, text.as_bytes()).await;
    statuses(&answer)[0]
}

#[tokio::test]
async fn no_spelling_of_a_key_reaches_a_provider() {
    let log = RawLog::start().await;
    let [(key, config), (made_up, more)] = keys_to_hide();
    let config = format!("{config}{}", configuration(&log.base_url(), &more));
    let stand = Stand::over(Engine::in_memory(), &config).await;
    let auth = format!("x-contexture-key: {key}\r\n");
    let mut sent = 0;
    let long = spellings(&key).into_iter();
    // Within other letters nobody can tell a key of which only the hash is known.
    let short = spellings(&made_up).into_iter();
    let short = short.filter(|(name, _)| *name != "within a word");
    for (name, spelled) in long.chain(short) {
        for slot in [
            "authorization",
            "x-api-key",
            "x-goog-api-key",
            "api-key",
            "x-secret",
            "openai-organization",
            "cookie",
            "proxy-authorization",
            "x-contexture-user",
        ] {
            status_of(
                &stand,
                &format!("GET /v1/models HTTP/1.1\r\n{auth}{slot}: {spelled}\r\n"),
            )
            .await;
            sent += 1;
        }
        let in_address: String = spelled
            .bytes()
            .map(|byte| match byte {
                b' ' | b'\t' | b'"' => format!("%{byte:02x}"),
                byte => char::from(byte).to_string(),
            })
            .collect();
        for target in [
            format!("/v1/models?key={in_address}"),
            format!("/v1/models?%6bey={in_address}&alt=sse"),
            format!("/v1/models?a=b&token={in_address}"),
            format!("/v1/models?{in_address}"),
            format!("/openai/v1/models/{in_address}"),
        ] {
            let status = status_of(&stand, &format!("GET {target} HTTP/1.1\r\n{auth}")).await;
            assert!([200, 400].contains(&status), "{name}: {target}: {status}");
            sent += 1;
        }
    }
    // The raw bytes, and everything that a reader of them could make of them, are searched for both.
    let seen = log.text();
    assert!(
        sent > 500 && seen.matches("HTTP/1.1").count() > sent / 3,
        "{sent}: {seen}"
    );
    for (key, spelled) in [&key, &made_up].map(|key| (key, spellings(key))) {
        let hits = spelled
            .iter()
            .filter(|(_, text)| seen.contains(text.as_str()));
        let hits: Vec<_> = hits.map(|(name, _)| name).collect();
        assert!(hits.is_empty() && !seen.contains(key.as_str()), "{hits:?}");
    }
    let lenient =
        String::from_utf8_lossy(&percent_decode(seen.as_bytes()).collect::<Vec<_>>()).into_owned();
    assert!(!lenient.contains(&key) && !lenient.contains(&made_up));
}

#[tokio::test]
async fn every_place_for_a_key_knows_it_in_every_case() {
    let log = RawLog::start().await;
    let (key, config) = keyed("[\"proxy\", \"read\"]");
    let key = key.secret();
    let config = format!("{config}{}", configuration(&log.base_url(), ""));
    let stand = Stand::over(Engine::in_memory(), &config).await;
    for scheme in ["Bearer ", "bearer ", "BEARER ", "bEaReR  ", ""] {
        for path in ["/api/v1/conversations", "/v1/models"] {
            let head = format!("GET {path} HTTP/1.1\r\nauthorization: {scheme}{key}\r\n");
            assert_eq!(status_of(&stand, &head).await, 200, "{head}");
        }
    }
    for query in ["key=", "%6bey=", "%6B%65%79=", "a=b&key="] {
        let head = format!("GET /v1/models?{query}{key} HTTP/1.1\r\n");
        assert_eq!(status_of(&stand, &head).await, 200, "{head}");
    }
    // Browsers send such credentials by themselves, for pages of any site.
    let basic = format!("Basic {}", STANDARD.encode(format!("me:{key}")));
    let head = format!("GET /v1/models HTTP/1.1\r\nauthorization: {basic}\r\n");
    assert_eq!(status_of(&stand, &head).await, 401);
    assert!(!log.text().contains(key), "{}", log.text());
}
