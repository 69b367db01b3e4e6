//! The agent: a loop over OpenAI's chat format as people write it, which knows a base URL, a key and a task.
//!
//! It keeps its whole history and sends all of it with every call. Nothing here knows that there is a server of ours in between.
//!
//! Not here: what a call costs, and which policy holds.

use std::time::Duration;

use bytes::Bytes;
use contexture::Format;
use contexture::models_http::{ApiKey, ClientOptions, PassthroughRequest, Upstream};
use futures_util::TryStreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::served::ProviderAddress;
use crate::tasks::{EvalTask, ToolSpec, World};

/// How often a call that failed for now is made again.
const RETRIES: u32 = 2;

/// Wait before the first retry, where the provider asks for none.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Longest wait that a provider may ask for; beyond, the call has failed.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How the loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoopEnd {
    /// All turns were answered.
    Answered,
    /// The task itself went wrong: too many calls, or a history that the model cannot hold.
    Stopped(String),
    /// The provider failed; says nothing about the agent.
    ProviderFailed(ProviderFailure),
}

/// What a provider that failed said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderFailure {
    pub(crate) status: Option<u16>,
    pub(crate) why: String,
}

impl ProviderFailure {
    fn new(why: impl std::fmt::Display) -> Self {
        Self {
            status: None,
            why: why.to_string(),
        }
    }

    /// Whether every further call would fail, too: the key is refused.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.status, Some(401 | 403))
    }
}

/// The agent before its first call.
pub(crate) struct ChatAgent {
    upstream: Upstream,
    headers: HeaderMap,
    model: String,
    max_calls: u32,
}

impl ChatAgent {
    /// Makes an agent that calls the model at this base URL, at most so often.
    pub(crate) fn new(
        base_url: &str,
        provider: &ProviderAddress,
        max_calls: u32,
    ) -> Result<Self, ProviderFailure> {
        let upstream = Upstream::new(base_url, &ClientOptions::default());
        let upstream = upstream.map_err(ProviderFailure::new)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let key = ApiKey::new(&provider.key).header_value("Bearer ");
        headers.insert(AUTHORIZATION, key.map_err(ProviderFailure::new)?);
        Ok(Self {
            upstream,
            headers,
            model: provider.model.clone(),
            max_calls,
        })
    }

    /// Plays all turns of a task in one conversation.
    pub(crate) async fn play_turns(&self, task: &EvalTask, world: &mut dyn World) -> LoopEnd {
        let tools: Vec<Value> = task.tools.iter().map(tool_json).collect();
        let mut messages = vec![json!({"role": "system", "content": task.instructions})];
        let mut calls = 0;
        for turn in task.turns {
            messages.push(json!({"role": "user", "content": turn}));
            loop {
                if calls == self.max_calls {
                    let why = format!("it was not done after {calls} calls (--max-calls)");
                    return LoopEnd::Stopped(why);
                }
                calls += 1;
                let request =
                    json!({"model": self.model, "messages": messages, "tools": tools}).to_string();
                let message = match self.ask(request.into()).await {
                    Ok(message) => message,
                    Err(end) => return end,
                };
                let outputs = run_tool_calls(&message, world);
                messages.push(message);
                if outputs.is_empty() {
                    break;
                }
                messages.extend(outputs);
            }
        }
        LoopEnd::Answered
    }

    /// Makes one call, again where the provider fails for now, and returns the message of its answer.
    async fn ask(&self, body: Bytes) -> Result<Value, LoopEnd> {
        let mut wait = FIRST_WAIT;
        for attempt in 0.. {
            let failure = match self.send(body.clone()).await {
                Ok((status, _, text)) if status.is_success() => return read_message(&text),
                Ok((status, headers, text)) => {
                    let spec = Format::OpenAiChat.spec();
                    if spec.too_long(status.as_u16(), &text).is_some() {
                        let why = "the history is too long for the model".to_owned();
                        return Err(LoopEnd::Stopped(why));
                    }
                    wait = asked_wait(&headers).unwrap_or(wait);
                    ProviderFailure {
                        status: Some(status.as_u16()),
                        why: format!("status {}: {}", status.as_u16(), error_text(&text)),
                    }
                }
                Err(failure) => failure,
            };
            let may_pass = failure
                .status
                .is_none_or(|status| matches!(status, 408 | 409 | 429 | 500..));
            if attempt == RETRIES || !may_pass || wait > LONGEST_WAIT {
                return Err(LoopEnd::ProviderFailed(failure));
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        Err(LoopEnd::ProviderFailed(ProviderFailure::new(
            "no attempt was made",
        )))
    }

    async fn send(&self, body: Bytes) -> Result<(StatusCode, HeaderMap, String), ProviderFailure> {
        let request = PassthroughRequest {
            method: Method::POST,
            path: "/v1/chat/completions".to_owned(),
            headers: self.headers.clone(),
            body,
        };
        let response = self.upstream.send(request).await;
        let response = response.map_err(ProviderFailure::new)?;
        let pieces: Vec<Bytes> = response
            .body
            .try_collect()
            .await
            .map_err(ProviderFailure::new)?;
        let text = String::from_utf8_lossy(&pieces.concat()).into_owned();
        Ok((response.status, response.headers, text))
    }
}

/// Runs the calls of a message in their order and returns the messages with their outputs.
fn run_tool_calls(message: &Value, world: &mut dyn World) -> Vec<Value> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let output = |call: &Value| {
        let function = call.get("function").unwrap_or(&Value::Null);
        let name = function.get("name").and_then(Value::as_str);
        let arguments = function.get("arguments").and_then(Value::as_str);
        let content = match serde_json::from_str(arguments.unwrap_or("{}")) {
            Ok(arguments) => world.call_tool(name.unwrap_or_default(), &arguments),
            Err(error) => Err(format!("the arguments are no JSON: {error}")),
        };
        // The model reads an error as it reads an output, and may try again.
        let content = content.unwrap_or_else(|why| format!("error: {why}"));
        json!({"role": "tool", "tool_call_id": call.get("id"), "content": content})
    };
    calls.into_iter().flatten().map(output).collect()
}

/// Reads the message of an answer: what clients send back of it.
fn read_message(text: &str) -> Result<Value, LoopEnd> {
    let unreadable =
        |why: &str| LoopEnd::ProviderFailed(ProviderFailure::new(format!("its answer {why}")));
    let document: Value = serde_json::from_str(text).map_err(|_| unreadable("is no JSON"))?;
    let message = document.pointer("/choices/0/message");
    let message = message.ok_or_else(|| unreadable("has no message"))?;
    let mut kept = json!({"role": "assistant", "content": message.get("content")});
    // Members that only answers have are left out: not every provider accepts them in a request.
    if let (Some(calls), Some(kept)) = (message.get("tool_calls"), kept.as_object_mut())
        && calls.as_array().is_some_and(|calls| !calls.is_empty())
    {
        kept.insert("tool_calls".to_owned(), calls.clone());
    }
    Ok(kept)
}

fn tool_json(tool: &ToolSpec) -> Value {
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    for (name, kind, description) in tool.parameters {
        let schema = json!({"type": kind, "description": description});
        properties.insert((*name).to_owned(), schema);
        if !description.starts_with("optional") {
            required.push(*name);
        }
    }
    let parameters = json!({"type": "object", "properties": properties, "required": required});
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": parameters
    }})
}

fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds: f64 = seconds.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Returns the message of an error in OpenAI's shape, or the beginning of what came instead.
fn error_text(text: &str) -> String {
    let document: Value = serde_json::from_str(text).unwrap_or_default();
    let message = document.pointer("/error/message").and_then(Value::as_str);
    message.unwrap_or(text).chars().take(300).collect()
}
