//! Requests that are passed on: what goes out, what comes back, and what is kept of both.

mod apart;
mod bedrock;
mod booking;
mod bound_thinking;
mod calls;
mod compacting;
mod credentials;
mod denying;
mod failing;
mod full_speed;
mod injecting;
mod keeping;
mod never_worse;
mod own;
mod own_talk;
mod passing;
mod past;
mod paths;
mod policies;
mod recorded_changes;
mod redacting;
mod selecting;
mod shown;
mod slow;
mod spending;
mod summaries;
mod too_long;
mod two_servers;

use contexture::Engine;
use contexture_upstream_testkit::{Provider, ScriptedProvider, Upstream};
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::test_support::{Answer, Stand};

/// A provider that follows a script, and a server in front of it.
pub(crate) struct Proxied {
    pub(crate) upstream: Upstream,
    pub(crate) stand: Stand,
}

impl Proxied {
    pub(crate) async fn new() -> Self {
        Self::to(ScriptedProvider::default(), Engine::in_memory(), "").await
    }

    /// The same in front of this provider, over this engine, with more configuration.
    pub(crate) async fn to(provider: impl Provider, engine: Engine, more: &str) -> Self {
        let upstream = Upstream::start(provider).await;
        let config = configuration(&upstream.base_url(), more);
        let stand = Stand::over(engine, &config).await;
        Self { upstream, stand }
    }

    /// Asks, and waits until what was asked is stored.
    pub(crate) async fn ask(&self, path: &str, body: &Value) -> Answer {
        self.ask_with(path, body, &[]).await
    }

    pub(crate) async fn ask_with(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = self
            .stand
            .request(Method::POST, path)
            .header("content-type", "application/json")
            .header("x-contexture-wait", "ingest");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.stand.send(request.body(body.to_string())).await
    }

    /// What became of a request, once nothing more happens.
    pub(crate) async fn outcome(&self, answer: &Answer) -> Value {
        self.outcome_of(&answer.headers).await
    }

    /// The same by an answer's head.
    pub(crate) async fn outcome_of(&self, head: &HeaderMap) -> Value {
        let id = head["x-contexture-request"].to_str().unwrap();
        loop {
            let outcome = self.stand.get(&format!("/api/v1/requests/{id}")).await.ok();
            if outcome["done"] == true {
                return outcome;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The conversations there are.
    pub(crate) async fn conversations(&self) -> Vec<Value> {
        let listed = self.stand.get("/api/v1/conversations?limit=500").await.ok();
        listed["conversations"].as_array().unwrap().clone()
    }
}

pub(crate) fn configuration(base: &str, more: &str) -> String {
    let upstreams = ["openai", "anthropic", "gemini", "bedrock"].map(|format| {
        format!("[upstreams.{format}]\nformat = \"{format}\"\nbase_url = \"{base}\"\n")
    });
    format!("{}{more}", upstreams.concat())
}

/// A history as a chat client sends it.
pub(crate) fn chat(messages: &[Value]) -> Value {
    json!({"model": "gpt-4.1", "messages": messages})
}

pub(crate) fn says(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The message of an answer, as clients send it back.
pub(crate) fn said(answer: &Answer) -> Value {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let message = &answer.json()["choices"][0]["message"];
    json!({"role": "assistant", "content": message["content"]})
}
