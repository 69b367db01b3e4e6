//! Histories that are compacted on their way out.

use reqwest::StatusCode;

use serde_json::Value;

use super::policies::{long, sent, with};
use super::{chat, said, says};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn retry_after_refusal_resumes_same_compacted_history() {
    let proxied = with("limit_tokens = 2000\ncompact = \"manifest\"\n").await;
    let mut history = Vec::new();
    for turn in 0..30 {
        let text = long(turn)["content"].as_str().unwrap().to_owned();
        history.push(says(&format!("{text}\nupstream: status 429 once")));
        let refused = proxied.ask(CHAT, &chat(&history)).await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        proxied.outcome(&refused).await;
        let answer = proxied.ask(CHAT, &chat(&history)).await;
        history.push(said(&answer));
        let outcome = proxied.outcome(&answer).await;
        if turn > 0 {
            // The first try was taken back, so the second goes where that had gone.
            assert_eq!(outcome["matched"], "prefix", "turn {turn}: {outcome}");
            assert_eq!(outcome["branch"], "main", "turn {turn}: {outcome}");
        }
        // What was decided for the first try holds for the second.
        let sent = sent(&proxied);
        assert_eq!(sent[2 * turn], sent[2 * turn + 1], "turn {turn}");
    }
    let conversations = proxied.conversations().await;
    assert_eq!(conversations.len(), 1);
    assert_eq!(conversations[0]["branches"], 1, "{conversations:?}");
    let id = conversations[0]["id"].as_str().unwrap();
    let compactions = format!("/api/v1/conversations/{id}/compactions");
    let compactions = proxied.stand.get(&compactions).await.ok();
    assert!(!compactions["compactions"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn compacted_prefix_changes_only_when_history_would_overflow() {
    let proxied = with("limit_tokens = 2000\ncompact = \"manifest\"\n").await;
    // An eighth of the window is the answer's.
    let space = 2_000 - 2_000 / 8;
    let (mut history, mut last) = (Vec::new(), Vec::new());
    let (mut before, mut grows, mut moves) = (0, 0, 0);
    for turn in 0..40 {
        history.push(long(turn));
        let answer = proxied.ask(CHAT, &chat(&history)).await;
        history.push(said(&answer));
        let outcome = proxied.outcome(&answer).await;
        let of = |name: &str| outcome["predicted"][name].as_u64().unwrap();
        let tokens = of("read") + of("written") + of("fresh");
        let document: Value = serde_json::from_str(&sent(&proxied).pop().unwrap()).unwrap();
        let messages = document["messages"].as_array().unwrap().clone();
        if !messages.starts_with(&last) {
            assert!(
                before + grows > space - 20,
                "turn {turn}: {before} and {grows} would fit"
            );
            moves += 1;
        } else if turn > 0 {
            grows = tokens - before;
        }
        (before, last) = (tokens, messages);
    }
    // Beside what was said there is what was compacted: once a move.
    let items = proxied.conversations().await[0]["items"].as_u64().unwrap();
    assert_eq!(items - history.len() as u64, moves);
    println!("{moves} moves of the prefix in 40 turns of {grows} tokens");
    assert!((5..=11).contains(&moves), "{moves}");
}
