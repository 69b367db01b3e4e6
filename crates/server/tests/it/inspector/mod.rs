//! The inspector: who may see and change what, and that pages say what the API says.

mod access;
mod browser;
mod pages;
mod speed;

use contexture::Engine;
use contexture_upstream_testkit::ScriptedProvider;
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::proxy::{Proxied, said, says};
use crate::test_support::{Answer, Stand};

/// A browser as far as the server can tell: it says which page asks, keeps the cookie, and follows nothing by itself.
pub(crate) struct Browser {
    base: String,
    client: reqwest::Client,
    pub(crate) cookie: Option<String>,
    /// What it says of the page that asks.
    pub(crate) site: &'static str,
}

impl Browser {
    pub(crate) fn new(stand: &Stand) -> Self {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(Policy::none());
        Self {
            base: stand.url(""),
            client: client.build().unwrap(),
            cookie: None,
            site: "same-origin",
        }
    }

    async fn send(&self, method: Method, path: &str, form: Option<String>) -> Answer {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        request = request.header("sec-fetch-site", self.site);
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        if let Some(form) = form {
            let origin = if self.site == "same-origin" {
                self.base.as_str()
            } else {
                "https://evil.example"
            };
            request = request
                .header("origin", origin)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(form);
        }
        let response = request.send().await.unwrap();
        Answer {
            status: response.status(),
            headers: response.headers().clone(),
            text: response.text().await.unwrap(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, None).await
    }

    /// Sends a form with these fields.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let form = reqwest::Url::parse_with_params("http://localhost/", fields).unwrap();
        self.send(
            Method::POST,
            path,
            Some(form.query().unwrap_or_default().to_owned()),
        )
        .await
    }

    /// Signs in, and keeps the cookie.
    pub(crate) async fn sign_in(&mut self, key: &str) -> Answer {
        let answer = self
            .post("/ui/sign-in", &[("key", key), ("next", "/ui/money")])
            .await;
        let cookie = answer
            .headers
            .get("set-cookie")
            .and_then(|cookie| cookie.to_str().ok());
        self.cookie = cookie.map(|cookie| cookie.split(';').next().unwrap().to_owned());
        answer
    }

    /// The token that the forms of a page carry.
    pub(crate) async fn token(&self, path: &str) -> Option<String> {
        let page = self.get(path).await.text;
        let (_, rest) = page.split_once("name=\"token\" value=\"")?;
        Some(rest.split('"').next()?.to_owned())
    }
}

/// The page of an answer that is one.
#[track_caller]
pub(crate) fn page(answer: &Answer) -> &str {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    &answer.text
}

/// Calls of an agent that reads files, under a policy that lets old outputs go: with breaks, hits and previews.
pub(crate) async fn recorded_calls(engine: Engine, turns: usize, more: &str) -> Proxied {
    recorded_calls_of(engine, turns, usize::MAX, &[], more).await
}

/// The same of a client that sends its newest messages alone, at most about so many, with these headers.
pub(crate) async fn recorded_calls_of(
    engine: Engine,
    turns: usize,
    newest: usize,
    headers: &[(&str, &str)],
    more: &str,
) -> Proxied {
    let policy = format!(
        "[policies.tidy]\nlimit_tokens = 12000\npreview = 3000\nwindow = {{ turns = 6 }}\n\
         [[routes]]\npolicy = \"tidy\"\n{more}"
    );
    let proxied = Proxied::to(ScriptedProvider::default(), engine, &policy).await;
    let tool = json!({"type": "function", "function": {"name": "read_file", "description": "Reads a file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}});
    let mut history = vec![says(
        "Always answer in German. Find out why the parcel of order W8342 is late.",
    )];
    for turn in 0..turns {
        let id = format!("call_{turn}");
        let arguments = json!({"path": format!("orders/{turn}.log")}).to_string();
        let call = json!({"id": id, "type": "function", "function": {"name": "read_file", "arguments": arguments}});
        history.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        let output: String = (0..60 + turn * 7 % 40)
            .map(|line| {
                format!("{line:04} order W8342 scanned at depot {turn}, state=in_transit\n")
            })
            .collect();
        history.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
        // From a question on: what begins with an output has nothing that it answers.
        let from = history.len().saturating_sub(newest);
        let questions = history[from..].iter().position(|one| one["role"] == "user");
        let sent = &history[from + questions.unwrap_or_default()..];
        let body = json!({"model": "gpt-4.1", "messages": sent, "tools": [tool]});
        let answer = proxied
            .ask_with("/v1/chat/completions", &body, headers)
            .await;
        proxied.outcome(&answer).await;
        history.push(said(&answer));
        history.push(says(&format!("And what does file {} say?", turn + 1)));
    }
    proxied
}

/// All calls of the record, newest first.
pub(crate) async fn all_calls(stand: &Stand) -> Vec<Value> {
    let calls = stand.get("/api/v1/calls?limit=500&include=band").await.ok();
    calls["calls"].as_array().unwrap().clone()
}
