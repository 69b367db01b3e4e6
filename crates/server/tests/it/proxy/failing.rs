//! What goes wrong, there or here, and what the client sees of it.

use contexture::Engine;
use contexture_upstream_testkit::{Gate, Received, ScriptedProvider, UpstreamResponse as Scripted};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Proxied, chat, configuration, said, says};
use crate::test_support::{Answer, Stand};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn provider_error_is_forwarded_and_retry_is_stored_once() {
    let proxied = Proxied::new().await;
    let history = [says("upstream: status 429 once")];
    let refused = proxied.ask(CHAT, &chat(&history)).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(
        refused.json()["error"]["message"].is_string(),
        "{}",
        refused.text
    );
    assert!(refused.headers.contains_key("retry-after"));
    let outcome = proxied.outcome(&refused).await;
    assert_eq!(
        (&outcome["answer"], &outcome["failed"]),
        (&Value::Null, &Value::Null)
    );
    let answer = proxied.ask(CHAT, &chat(&history)).await;
    let text = said(&answer);
    let outcome = proxied.outcome(&answer).await;
    assert_eq!(
        outcome["answer"]["response"].as_str().map(str::len),
        Some(32),
        "{outcome}"
    );
    // What no model answered has left nothing behind.
    assert_eq!(proxied.conversations().await.len(), 1);
    let history = [history[0].clone(), text, says("Thanks")];
    let outcome = proxied
        .outcome(&proxied.ask(CHAT, &chat(&history)).await)
        .await;
    assert_eq!(outcome["matched"], "prefix", "{outcome}");
}

#[tokio::test]
async fn an_unreachable_provider_is_told_in_its_own_shape() {
    // A port that was free a moment ago, and on which nobody listens.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let config = configuration(&format!("http://127.0.0.1:{port}"), "");
    let stand = Stand::with(&config).await;
    let paths = [
        (CHAT, "/error/code"),
        ("/v1/messages", "/error/type"),
        (
            "/v1beta/models/gemini-2.5-flash:generateContent",
            "/error/status",
        ),
    ];
    for (path, word) in paths {
        let answer = stand.post(path, &json!({"messages": []})).await;
        assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
        assert_eq!(
            answer.headers["x-contexture-failed"],
            "upstream_unreachable"
        );
        let document = answer.json();
        assert!(document.pointer(word).is_some(), "{path}: {document}");
        assert!(!answer.text.contains("127.0.0.1"), "{}", answer.text);
    }
}

#[tokio::test]
async fn what_cannot_be_read_passes_all_the_same() {
    let provider = |_: &Received| Scripted::text(200, "whatever");
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    for body in ["", "no JSON", "[]", "{\"messages\": 7}"] {
        let request = proxied
            .stand
            .request(Method::POST, CHAT)
            .header("x-contexture-wait", "ingest")
            .body(body);
        let answer = proxied.stand.send(request).await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (StatusCode::OK, "whatever")
        );
        assert_eq!(answer.headers["x-contexture-failed"], "request", "{body:?}");
        assert_eq!(proxied.outcome(&answer).await["failed"], "request");
    }
    // Packed in a way that nobody knows: passed on as it is.
    let request = proxied
        .stand
        .request(Method::POST, CHAT)
        .header("content-encoding", "pack200")
        .header("x-contexture-wait", "ingest")
        .body("\u{1}\u{2}");
    let answer = proxied.stand.send(request).await;
    assert_eq!(answer.headers["x-contexture-failed"], "request");
    let bodies: Vec<_> = proxied
        .upstream
        .received_requests()
        .iter()
        .map(|seen| seen.body.clone())
        .collect();
    assert_eq!(
        bodies,
        ["", "no JSON", "[]", "{\"messages\": 7}", "\u{1}\u{2}"]
    );
}

/// Bytes that are not UTF-8 pass as they came. What is left is stored, with a mark and the bytes, and counted as damage.
#[tokio::test]
async fn an_answer_that_is_not_utf8_is_stored_as_damaged() {
    let event: &[u8] = b"data: {\"id\":\"1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\xff\xfe\xc3(\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let document: &[u8] = b"{\"id\":\"1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"a\xff\xfe\xc3(\"},\"finish_reason\":\"stop\"}]}";
    for (kind, body, is_stream) in [
        ("text/event-stream", event, true),
        ("application/json", document, false),
    ] {
        let provider = move |_: &Received| Scripted::from_body(200, kind, body);
        let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
        let mut asked = chat(&[says("hi")]);
        asked["stream"] = is_stream.into();
        let request = proxied
            .stand
            .request(Method::POST, CHAT)
            .header("content-type", "application/json")
            .body(asked.to_string());
        let answer = request.send().await.unwrap();
        let head = answer.headers().clone();
        assert_eq!(answer.bytes().await.unwrap(), body, "{kind}");
        let outcome = proxied.outcome_of(&head).await;
        assert_eq!(outcome["failed"], "damaged", "{kind}: {outcome}");
        assert!(outcome["answer"]["head"].is_string(), "{outcome}");
        let id = outcome["conversation"].as_str().unwrap();
        let items = proxied
            .stand
            .get(&format!("/api/v1/conversations/{id}/items"))
            .await
            .text;
        assert!(items.contains("a\u{fffd}\u{fffd}\u{fffd}("), "{items}");
        assert!(items.contains("ctx:damaged"), "{items}");
        let figures = proxied.stand.get("/metrics").await.text;
        let counted = figures.contains("contexture_proxy_damaged_total");
        assert!(counted, "{figures}");
    }
}

/// An answer that breaks off before anything whole has come is counted, and leaves no conversation behind.
#[tokio::test]
async fn an_answer_of_which_nothing_came_is_counted() {
    let proxied = Proxied::new().await;
    let body = json!({"model": "gpt-4.1", "stream": true, "messages": [says("upstream: words 200\nupstream: drop 5")]});
    let request = proxied
        .stand
        .request(Method::POST, CHAT)
        .header("content-type", "application/json")
        .body(body.to_string());
    let answer = request.send().await.unwrap();
    let head = answer.headers().clone();
    assert!(answer.bytes().await.is_err());
    let outcome = proxied.outcome_of(&head).await;
    assert_eq!(outcome["failed"], "answer", "{outcome}");
    assert!(outcome["conversation"].is_null(), "{outcome}");
    assert_eq!(proxied.conversations().await.len(), 0);
    let figures = proxied.stand.get("/metrics").await.text;
    let missed = "contexture_proxy_missed_total{what=\"answer\"}";
    assert!(figures.contains(missed), "{figures}");
}

#[tokio::test]
async fn truncated_answer_is_cut_for_client_and_stored_partially() {
    let proxied = Proxied::new().await;
    let body = json!({"model": "gpt-4.1", "stream": true, "messages": [says("upstream: words 200\nupstream: drop 2000")]});
    let request = proxied
        .stand
        .request(Method::POST, CHAT)
        .header("content-type", "application/json")
        .body(body.to_string());
    let mut answer = request.send().await.unwrap();
    let head = answer.headers().clone();
    let mut came = 0;
    let broke = loop {
        match answer.chunk().await {
            Ok(Some(chunk)) => came += chunk.len(),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(broke, "the client is told that something is missing");
    assert_eq!(came, 2000);
    let outcome = proxied.outcome_of(&head).await;
    assert!(outcome["answer"]["head"].is_string(), "{outcome}");
    assert_eq!(proxied.conversations().await[0]["items"], 2);
}

#[tokio::test]
async fn unreadable_first_answer_leaves_no_conversation() {
    let document = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4.1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]});
    let call =
        json!({"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}});
    let history = [
        says("list it"),
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "call_1", "content": "a line of a listing\n".repeat(200)}),
    ];
    // With the policy tools of ours are offered, so that the answer may come in rounds.
    let short =
        "[policies.short]\npreview = 1000\npays = \"fits\"\n[[routes]]\npolicy = \"short\"\n";
    for config in ["", short] {
        let document = document.clone();
        let provider = move |_: &Received| Scripted::json(200, &document).dropped_at(20);
        let proxied = Proxied::to(provider, Engine::in_memory(), config).await;
        let request = proxied
            .stand
            .request(Method::POST, CHAT)
            .header("content-type", "application/json")
            .body(chat(&history).to_string());
        let head = request.send().await.unwrap().headers().clone();
        let outcome = proxied.outcome_of(&head).await;
        assert_eq!(
            (&outcome["answer"], &outcome["conversation"]),
            (&Value::Null, &Value::Null),
            "{config}: {outcome}"
        );
        assert_eq!(
            proxied.conversations().await,
            Vec::<Value>::new(),
            "{config}"
        );
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call_and_what_came_is_kept() {
    let gate = Gate::new_closed();
    let provider = {
        let gate = gate.clone();
        move |_: &Received| {
            let word = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1",
                "choices": [{"index": 0, "delta": {"role": "assistant", "content": "word "}, "finish_reason": null}]});
            Scripted::event_stream((0..1000).map(|_| format!("data: {word}\n\n"))).gated_by(&gate)
        }
    };
    let proxied = Proxied::to(provider, Engine::in_memory(), "").await;
    let body = json!({"model": "gpt-4.1", "stream": true, "messages": [says("Hi")]});
    let request = proxied
        .stand
        .request(Method::POST, CHAT)
        .header("content-type", "application/json")
        .body(body.to_string());
    gate.release_chunks(2);
    let mut answer = request.send().await.unwrap();
    let head = answer.headers().clone();
    answer.chunk().await.unwrap().unwrap();
    drop(answer);
    // The provider sends on until it meets a closed connection.
    gate.release_chunks(1000);
    proxied.upstream.wait_until(|seen| seen.left == 1).await;
    let outcome = proxied.outcome_of(&head).await;
    assert!(outcome["answer"]["head"].is_string(), "{outcome}");
}

#[tokio::test]
async fn limits_are_told_in_the_providers_shape() {
    let proxied = Proxied::to(
        ScriptedProvider::default(),
        Engine::in_memory(),
        "[server.limits]\nbody_bytes = 1000\n",
    )
    .await;
    let answer = proxied
        .ask(
            "/v1/messages",
            &json!({"messages": [says(&"x".repeat(2000))]}),
        )
        .await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(answer.json()["error"]["type"], "request_too_large");
    assert!(proxied.upstream.received_requests().is_empty());
    let bad = [
        ("x-contexture-conversation", "no spaces please"),
        ("x-contexture-branch", ""),
        ("x-contexture-bypass", "perhaps"),
    ];
    for (name, value) in bad {
        let answer = proxied
            .ask_with(CHAT, &chat(&[says("Hi")]), &[(name, value)])
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{name}");
        assert!(answer.text.contains(name), "{}", answer.text);
    }
}

/// A history as it is sent, and nothing is waited for but the answer.
async fn ask_at_once(proxied: &Proxied, history: &[Value], name: Option<&str>) -> Answer {
    let mut request = proxied.stand.request(Method::POST, CHAT);
    if let Some(name) = name {
        request = request.header("x-contexture-conversation", name);
    }
    let request = request.header("content-type", "application/json");
    proxied
        .stand
        .send(request.body(chat(history).to_string()))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_request_moves_no_branch() {
    let refuse = "upstream: status 404";
    let once = "upstream: status 429 once";
    for name in [None, Some("fail")] {
        let proxied = Proxied::new().await;
        let mut history = vec![says("one")];
        let answer = ask_at_once(&proxied, &history, name).await;
        let id = proxied.outcome(&answer).await["conversation"].clone();
        let path = format!("/api/v1/conversations/{}", id.as_str().unwrap());
        history.push(said(&answer));
        let before = proxied.stand.get(&path).await.ok();
        let is_as_before = async || {
            let now = proxied.stand.get(&path).await.ok();
            for member in ["active", "branches", "messages"] {
                assert_eq!(now[member], before[member], "{now}");
            }
            let log = proxied.stand.get(&format!("{path}/log")).await.ok();
            assert!(!log.to_string().contains("upstream: status"), "{log}");
        };
        // Behind the branch, twice; beside it; with the words of before edited.
        let behind = [&history[..], &[says(refuse)]].concat();
        let beside = vec![says(refuse)];
        let edited = vec![says("zero"), history[1].clone(), says(refuse)];
        for refused in [&behind, &behind, &beside, &beside, &edited] {
            let answer = ask_at_once(&proxied, refused, name).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND);
            // At once: what the client sends next must find it so.
            is_as_before().await;
        }
        // Sent again it is answered, and is on the branch that it would have been on.
        history.push(says(once));
        let refused = ask_at_once(&proxied, &history, name).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        is_as_before().await;
        for turn in 0..3 {
            let answer = ask_at_once(&proxied, &history, name).await;
            let outcome = proxied.outcome(&answer).await;
            assert_eq!(outcome["conversation"], id, "{outcome}");
            assert_eq!(outcome["branch"], "main", "{outcome}");
            history.extend([said(&answer), says(&format!("turn {turn}"))]);
        }
        let now = proxied.stand.get(&path).await.ok();
        assert_eq!(
            (&now["active"], &now["branches"]),
            (&before["active"], &before["branches"])
        );
        assert_eq!(now["messages"], history.len() - 1, "{now}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_request_is_active_where_it_would_have_been() {
    let name = Some("fail");
    let proxied = Proxied::new().await;
    let answer = ask_at_once(&proxied, &[says("one")], name).await;
    proxied.outcome(&answer).await;
    let beside = [says("another\nupstream: status 429 once")];
    let refused = ask_at_once(&proxied, &beside, name).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    let answer = ask_at_once(&proxied, &beside, name).await;
    let outcome = proxied.outcome(&answer).await;
    assert_eq!(outcome["branch"], "main-v2", "{outcome}");
    let conversation = proxied.stand.get("/api/v1/conversations/fail").await.ok();
    assert_eq!(conversation["active"], "main-v2", "{conversation}");
    assert_eq!(conversation["branches"], 2, "{conversation}");
    assert_eq!(conversation["messages"], 2, "{conversation}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_request_of_a_name_may_be_refused() {
    let proxied = Proxied::new().await;
    let history = [says("hello\nupstream: status 429 once")];
    let refused = ask_at_once(&proxied, &history, Some("fail")).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    let conversation = proxied.stand.get("/api/v1/conversations/fail").await.ok();
    assert_eq!(
        (&conversation["branches"], &conversation["messages"]),
        (&json!(1), &json!(0))
    );
    let answer = ask_at_once(&proxied, &history, Some("fail")).await;
    proxied.outcome(&answer).await;
    let conversation = proxied.stand.get("/api/v1/conversations/fail").await.ok();
    assert_eq!(
        (&conversation["branches"], &conversation["messages"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(conversation["items"], 2, "{conversation}");
}
