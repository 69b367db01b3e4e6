//! Clients of others, as they are: what each sees of a provider, and what the provider sees of it.
//!
//! Each client's script (`tests/clients`) goes through its scenarios against the scripted upstream, in one process: once
//! without the server, to see what a provider shows, and once through it. It must see the same, and what reaches the upstream
//! must be what the client sent, which a tap before the server knows.

mod expected;
mod generated;
pub(crate) mod installed;
mod loop_programs;
mod pages;
mod reading;
mod script;
mod sent;
mod tool_loop;

use contexture_upstream_testkit::{ScriptedProvider, Tap, Upstream};

use installed::Installed;
use script::Script;

use crate::test_support::Stand;

async fn check(name: &str) {
    let Some(installed) = Installed::find() else {
        return;
    };
    let script = Script::new(&installed, name);
    let direct = Upstream::start(ScriptedProvider::default()).await;
    let saw = script.run(&direct.base_url()).await;
    expected::check(name, &saw);

    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let server = Stand::with(&passing_to(&upstream)).await;
    let tap = Tap::start(&format!("http://{}", server.address)).await;
    let sees = script.run(&tap.base_url()).await;
    expected::compare(name, &saw, &sees);
    sent::compare(&tap.sent_requests().await, &upstream.received_requests());
    expected::clients_left(&upstream, &saw).await;
}

/// A configuration with every format, all of them there.
fn passing_to(upstream: &Upstream) -> String {
    let formats = ["openai", "anthropic", "gemini"].iter();
    let section = |format| {
        format!(
            "[upstreams.{format}]\nformat = \"{format}\"\nbase_url = \"{}\"\n",
            upstream.base_url()
        )
    };
    formats.map(section).collect()
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
