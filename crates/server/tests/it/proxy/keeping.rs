//! What is kept of what passes.

use contexture::Engine;
use contexture::store_sqlite::SqliteStore;
use contexture_upstream_testkit::ScriptedProvider;
use serde_json::{Value, json};
use std::sync::Arc;

use super::{Proxied, chat, said, says};

const CHAT: &str = "/v1/chat/completions";

/// JSON that no parsed value holds passes as it came and is stored: one emoji cut in half in a long history must not end its
/// recording.
#[tokio::test]
async fn json_that_no_value_holds_is_stored() {
    let proxied = Proxied::new().await;
    let bodies = [
        r#"{"model":"gpt-4.1","messages":[{"role":"user","content":"a\ud800b"}]}"#,
        r#"{"model":"gpt-4.1","temperature":1e400,"messages":[{"role":"user","content":"number"}]}"#,
        r#"{"model":"gpt-4.1","messages":[{"role":"user","content":"x","content":"twice"}],"seed":1,"seed":2}"#,
        r#"{"model":"gpt-4.1","messages":[{"role":"user","content":"untyped"}],"tools":[{"function":{"name":"f"}}]}"#,
    ];
    for (body, said) in bodies
        .into_iter()
        .zip(["a\u{fffd}b", "number", "twice", "untyped"])
    {
        let request = proxied
            .stand
            .request(reqwest::Method::POST, "/v1/chat/completions")
            .header("content-type", "application/json")
            .header("x-contexture-wait", "ingest");
        let answer = proxied.stand.send(request.body(body)).await;
        assert!(
            !answer.headers.contains_key("x-contexture-failed"),
            "{body}"
        );
        let outcome = proxied.outcome(&answer).await;
        assert!(outcome["answer"]["head"].is_string(), "{outcome}");
        let id = outcome["conversation"].as_str().unwrap();
        let path = format!("/api/v1/conversations/{id}/items");
        let items = proxied.stand.get(&path).await.text;
        assert!(items.contains(said), "{items}");
        let sent = proxied.upstream.received_requests();
        assert_eq!(sent.last().unwrap().body, body.as_bytes());
    }
}

#[tokio::test]
async fn forty_resent_turns_are_stored_once_across_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept.db");
    let open = || Engine::new(Arc::new(SqliteStore::open(&file).unwrap()));
    let mut history = Vec::new();
    let mut proxied = Proxied::to(ScriptedProvider::default(), open(), "").await;
    for turn in 0..40 {
        if turn == 20 {
            proxied.stand.stop();
            proxied.stand.stopped().await;
            proxied = Proxied::to(ScriptedProvider::default(), open(), "").await;
        }
        history.push(says(&format!("question {turn}")));
        let answer = proxied.ask(CHAT, &chat(&history)).await;
        history.push(said(&answer));
        let outcome = proxied.outcome(&answer).await;
        let expected = if turn == 0 { "new" } else { "prefix" };
        assert_eq!(outcome["matched"], expected, "turn {turn}: {outcome}");
        assert_eq!(outcome["appended"], 1, "{outcome}");
        assert!(outcome["answer"]["head"].is_string(), "{outcome}");
    }
    let conversations = proxied.conversations().await;
    assert_eq!(conversations.len(), 1);
    assert_eq!(conversations[0]["items"], 80);
    assert_eq!(conversations[0]["branches"], 1);
}

#[tokio::test]
async fn edited_history_branches_if_named_else_new_conversation() {
    let proxied = Proxied::new().await;
    let named = [("x-contexture-conversation", "mine")];
    for headers in [&named[..], &[]] {
        let mut history = Vec::new();
        for turn in 0..3 {
            history.push(says(&format!("question {turn} of {} named", headers.len())));
            let answer = proxied.ask_with(CHAT, &chat(&history), headers).await;
            history.push(said(&answer));
            proxied.outcome(&answer).await;
        }
        let mut edited = history[..2].to_vec();
        edited.push(says("another question"));
        let answer = proxied.ask_with(CHAT, &chat(&edited), headers).await;
        let outcome = proxied.outcome(&answer).await;
        let mine = proxied.stand.get("/api/v1/conversations/mine").await.ok();
        if headers.is_empty() {
            assert_ne!(outcome["conversation"], "mine");
            assert_eq!(outcome["matched"], "new", "{outcome}");
        } else {
            assert_eq!(outcome["conversation"], "mine");
            assert_eq!(answer.headers["x-contexture-match"], "explicit");
            // Six items, and the edit with its answer.
            assert_eq!(mine["items"], 8, "{mine}");
            assert_eq!(mine["branches"], 2, "{mine}");
        }
    }
}

#[tokio::test]
async fn every_format_is_kept_streamed_or_not() {
    let proxied = Proxied::new().await;
    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "Bonjour"}]}]});
    let anthropic = |stream: bool| json!({"model": "claude-sonnet-4-5", "max_tokens": 64, "stream": stream, "messages": [says("Hola")]});
    let asked: [(&str, Value); 8] = [
        (CHAT, chat(&[says("Hello")])),
        (
            CHAT,
            json!({"model": "gpt-4.1", "stream": true, "stream_options": {"include_usage": true}, "messages": [says("Hello again")]}),
        ),
        (
            "/v1/responses",
            json!({"model": "gpt-4.1", "input": "Hallo"}),
        ),
        (
            "/v1/responses",
            json!({"model": "gpt-4.1", "input": "Hallo nochmal", "stream": true}),
        ),
        ("/v1/messages", anthropic(false)),
        ("/anthropic/v1/messages", anthropic(true)),
        (
            "/v1beta/models/gemini-2.5-flash:generateContent",
            gemini.clone(),
        ),
        (
            "/gemini/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
            gemini,
        ),
    ];
    for (path, body) in asked {
        let answer = proxied.ask(path, &body).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
        let outcome = proxied.outcome(&answer).await;
        assert_eq!(outcome["failed"], Value::Null, "{path}: {outcome}");
        let answer = &outcome["answer"];
        assert!(
            answer["output_tokens"].as_u64() > Some(0),
            "{path}: {outcome}"
        );
        // The scripted Gemini answers in a name of its own, which has no price.
        let is_priced = answer["pico_dollars"].as_u64() > Some(0);
        assert_eq!(is_priced, !path.contains("gemini"), "{path}: {outcome}");
    }
}

#[tokio::test]
async fn tools_are_matched_with_their_outputs() {
    let proxied = Proxied::new().await;
    let mut history = vec![says("upstream: call weather {\"city\":\"Paris\"}")];
    let answer = proxied.ask(CHAT, &chat(&history)).await;
    let message = answer.ok()["choices"][0]["message"].clone();
    let call = message["tool_calls"][0]["id"].clone();
    assert!(call.is_string(), "{message}");
    proxied.outcome(&answer).await;
    let words = usize::from(message["content"].is_string());
    history.push(message);
    history.push(json!({"role": "tool", "tool_call_id": call, "content": "18 degrees"}));
    let answer = proxied.ask(CHAT, &chat(&history)).await;
    let outcome = proxied.outcome(&answer).await;
    assert_eq!(outcome["matched"], "prefix");
    assert_eq!(outcome["appended"], 1);
    let conversations = proxied.conversations().await;
    assert_eq!(conversations.len(), 1);
    // What was asked, the call with what was said to it, its output, the answer.
    assert_eq!(conversations[0]["items"], 4 + words);
}

#[tokio::test]
async fn end_users_who_begin_alike_are_kept_apart() {
    let proxied = Proxied::new().await;
    for user in ["ada", "bob"] {
        let mut history = vec![says("Hello")];
        for _ in 0..2 {
            let body = json!({"model": "gpt-4.1", "user": user, "messages": history});
            let answer = proxied.ask(CHAT, &body).await;
            history.push(said(&answer));
            history.push(says("And now?"));
            proxied.outcome(&answer).await;
        }
    }
    let conversations = proxied.conversations().await;
    assert_eq!(conversations.len(), 2);
    for conversation in conversations {
        assert_eq!(conversation["items"], 4, "{conversation}");
    }
}

#[tokio::test]
async fn a_field_may_name_the_conversation() {
    let more = "[upstreams.codex]\nformat = \"openai\"\nbase_url = \"BASE\"\nconversation_from = \"prompt_cache_key\"\n";
    let upstream = contexture_upstream_testkit::Upstream::start(ScriptedProvider::default()).await;
    let config = more.replace("BASE", &upstream.base_url());
    let stand = crate::test_support::Stand::with(&config).await;
    let proxied = Proxied { upstream, stand };
    let body = json!({"model": "gpt-4.1", "input": "Hallo", "prompt_cache_key": "session-7"});
    let answer = proxied.ask("/codex/v1/responses", &body).await;
    answer.ok();
    assert_eq!(answer.headers["x-contexture-conversation"], "session-7");
    assert_eq!(proxied.outcome(&answer).await["conversation"], "session-7");
}
