//! Clients of others, as they are: what each sees of a provider, and what the provider sees of it.
//!
//! Each client's script (`tests/clients`) goes through its scenarios against the scripted upstream, in one process, and
//! must see what a provider shows. Between the two stands a tap, which knows what the client sent.

mod expected;
pub(crate) mod installed;
mod script;
mod sent;

use contexture_upstream_testkit::{ScriptedProvider, Tap, Upstream};

use installed::Installed;
use script::Script;

async fn check(name: &str) {
    let Some(installed) = Installed::find() else {
        return;
    };
    let script = Script::new(&installed, name);
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let tap = Tap::start(&upstream.base()).await;
    let saw = script.run(&tap.base()).await;
    expected::check(name, &saw);
    expected::clients_left(&upstream, &saw).await;
    sent::compare(&tap.sent().await, &upstream.received());
}

#[tokio::test]
async fn openai_for_python() {
    check("openai_sdk.py").await;
}

#[tokio::test]
async fn anthropic_for_python() {
    check("anthropic_sdk.py").await;
}

#[tokio::test]
async fn google_genai_for_python() {
    check("google_genai.py").await;
}

#[tokio::test]
async fn pydantic_ai() {
    check("pydantic_ai_agent.py").await;
}

#[tokio::test]
async fn langchain() {
    check("langchain_chat.py").await;
}

#[tokio::test]
async fn openai_for_node() {
    check("openai-sdk.mjs").await;
}

#[tokio::test]
async fn anthropic_for_node() {
    check("anthropic-sdk.mjs").await;
}

#[tokio::test]
async fn google_genai_for_node() {
    check("google-genai.mjs").await;
}

#[tokio::test]
async fn ai_sdk() {
    check("ai-sdk.mjs").await;
}

#[tokio::test]
async fn tanstack_ai() {
    check("tanstack-ai.mjs").await;
}

#[tokio::test]
async fn codex() {
    check("codex_cli.py").await;
}
