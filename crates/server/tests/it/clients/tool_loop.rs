//! Agents of other people's clients at full speed: each loop is one conversation, with one branch and each item once.

use std::collections::BTreeMap;

use contexture::ir::Item;
use contexture::{Format, lift};
use contexture_upstream_testkit::{Received, ScriptedProvider, Upstream};
use serde_json::Value;

use super::installed::Installed;
use super::passing_to;
use super::script::Script;
use crate::test_support::Stand;

/// Requests of a loop.
const REQUESTS: usize = 30;

/// The items of a request, with the first line that the person said.
fn history(received: &Received) -> Option<(String, usize)> {
    let format = match received.path() {
        "/v1/chat/completions" => Format::OpenAiChat,
        "/v1/responses" => Format::OpenAiResponses,
        "/v1/messages" => Format::Anthropic,
        path if path.starts_with("/v1beta") => Format::Gemini,
        _ => return None,
    };
    let text = String::from_utf8(received.body.to_vec()).unwrap();
    let items = lift(format, &text).unwrap().transcript.items;
    let first = items.iter().find_map(|item| match item {
        Item::Message(message) => message.content.first()?.as_text(),
        _ => None,
    })?;
    Some((first.lines().next()?.to_owned(), items.len()))
}

async fn check(script: &str, loops: usize) {
    let Some(installed) = Installed::find() else {
        return;
    };
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let server = Stand::with(&passing_to(&upstream)).await;
    let script = Script::new(&installed, script);
    let saw = script.run(&format!("http://{}", server.address)).await;
    assert_eq!(saw.len(), loops, "{saw:#?}");
    assert!(saw.values().all(|count| *count == REQUESTS), "{saw:#?}");
    let mut longest: BTreeMap<String, usize> = BTreeMap::new();
    for received in upstream.received_requests() {
        let Some((name, items)) = history(&received) else {
            continue;
        };
        let known = longest.entry(name).or_default();
        *known = items.max(*known);
    }
    assert_eq!(longest.len(), loops, "{longest:?}");
    // The answer to the longest request is one message more.
    let mut wanted: Vec<usize> = longest.values().map(|items| items + 1).collect();
    wanted.sort_unstable();
    let conversations = stored(&server, &wanted).await;
    assert_eq!(conversations.len(), loops, "{conversations:#?}");
    for conversation in &conversations {
        assert_eq!(conversation["branches"], 1, "{conversation}");
    }
    assert_eq!(items_of(&conversations), wanted, "{conversations:#?}");
    let figures = server.get("/metrics").await.text;
    assert!(
        !figures.contains("contexture_proxy_raced_total"),
        "{figures}"
    );
}

fn items_of(conversations: &[Value]) -> Vec<usize> {
    let items = conversations.iter().map(|one| one["items"].as_u64());
    let mut items: Vec<usize> = items.map(|items| items.unwrap() as usize).collect();
    items.sort_unstable();
    items
}

/// The conversations, once as much is stored as was said. What is stored too often stays too much.
async fn stored(server: &Stand, wanted: &[usize]) -> Vec<Value> {
    loop {
        let listed = server.get("/api/v1/conversations?limit=100").await.ok();
        let listed = listed["conversations"].as_array().unwrap().clone();
        if items_of(&listed).iter().sum::<usize>() >= wanted.iter().sum() {
            return listed;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loops_of_python_clients_are_one_conversation_each() {
    check("tool_loop.py", 12).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn loops_of_the_ai_sdk_are_one_conversation_each() {
    check("tool-loop.mjs", 16).await;
}
