//! A client of any format in front of a provider whose model reads what it was not shown.

use contexture::ir::{Item, Message, RequestOptions, Role, ToolDefinition, Transcript};
use contexture::wire::{Accumulator, Dialect, DocumentKind, StreamFraming};
use contexture::{Engine, Format, lift, lower};
use contexture_testdata::{Validator, request_validator, schema};
use contexture_upstream_testkit::{Provider, Received, ScriptedProvider};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::Proxied;
use crate::test_support::Answer;

pub(crate) const OWN: &str = "read_context";
/// Makes the scripted model read what says the needle.
pub(crate) const READS: &str = "upstream: again 1 read_context {\"query\":\"needle-7431\"}";

/// The formats whose streams the client of these tests reads: server-sent events. The edits of others have tests beside
/// them.
pub(crate) fn text_streamed() -> impl Iterator<Item = Format> {
    let is_text = |format: &Format| {
        let http = format.spec().http();
        http.is_some_and(|http| http.framing == StreamFraming::ServerSentEvents)
    };
    Format::PROVIDERS.into_iter().filter(is_text)
}

/// How a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Whole,
    Streamed,
}

pub(crate) const MODES: [Mode; 2] = [Mode::Whole, Mode::Streamed];

/// A client that keeps its history itself.
pub(crate) struct Talk {
    pub(crate) proxied: Proxied,
    pub(crate) format: Format,
    pub(crate) mode: Mode,
    pub(crate) items: Vec<Item>,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) options: RequestOptions,
    /// More members of its requests.
    pub(crate) more: Value,
}

/// What a client got.
pub(crate) struct Got {
    pub(crate) answer: Answer,
    /// What it put together of that.
    pub(crate) document: Value,
    pub(crate) said: Transcript,
    pub(crate) outcome: Value,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        spoken(&self.said)
    }

    /// The names of the tools that are called.
    pub(crate) fn calls(&self) -> Vec<&str> {
        let items = self.said.items.iter();
        let names = items.filter_map(|item| match item {
            Item::FunctionCall(call) => Some(call.name.as_str()),
            _ => None,
        });
        names.collect()
    }
}

/// The texts of messages, one behind the other.
pub(crate) fn spoken(said: &Transcript) -> String {
    let messages = said.items.iter().filter_map(|item| match item {
        Item::Message(message) => Some(&message.content),
        _ => None,
    });
    let texts = messages.flatten().filter_map(|part| part.as_text());
    texts.collect()
}

pub(crate) fn item(value: &Value) -> Item {
    Item::parse(&value.to_string()).unwrap()
}

pub(crate) fn user(text: &str) -> Item {
    Item::Message(Message::text(Role::User, text))
}

pub(crate) fn output(id: &str, text: &str) -> Item {
    item(&json!({"type": "function_call_output", "call_id": id, "output": text}))
}

pub(crate) fn tool(name: &str) -> ToolDefinition {
    let function = json!({"name": name, "parameters": {"type": "object", "properties": {}}});
    let tool = json!({"type": "function", "function": function});
    let request = json!({"messages": [], "tools": [tool]}).to_string();
    let lifted = lift(Format::OpenAiChat, &request).unwrap();
    lifted.transcript.tools[0].clone()
}

/// An output of which a preview shows neither needle nor the lines around it.
pub(crate) fn long() -> String {
    let line = |number: usize| match number {
        60 => "line 60 has the needle-7431 in it\n".to_owned(),
        number => format!("line {number} of a listing that nobody reads to its end\n"),
    };
    (0..120).map(line).collect()
}

fn model(format: Format) -> &'static str {
    match format {
        Format::Anthropic => "claude-sonnet-4-5",
        Format::Gemini => "gemini-2.5-flash",
        _ => "gpt-4.1",
    }
}

/// Where a format's clients ask.
pub(crate) fn path_of(format: Format, mode: Mode) -> String {
    match (format, mode) {
        (Format::OpenAiChat, _) => "/v1/chat/completions".to_owned(),
        (Format::OpenAiResponses, _) => "/v1/responses".to_owned(),
        (Format::Anthropic, _) => "/v1/messages".to_owned(),
        (_, Mode::Whole) => format!("/v1beta/models/{}:generateContent", model(format)),
        (_, Mode::Streamed) => format!(
            "/v1beta/models/{}:streamGenerateContent?alt=sse",
            model(format)
        ),
    }
}

/// A request as a format's client writes it.
pub(crate) fn body_of(format: Format, mode: Mode, request: Transcript) -> Value {
    let request = Transcript {
        model: (format != Format::Gemini).then(|| model(format).to_owned()),
        ..request
    };
    let body = lower(&Dialect::of(format), DocumentKind::Request, &request).json;
    let mut body: Value = serde_json::from_str(&body).unwrap();
    if mode == Mode::Streamed && format != Format::Gemini {
        body["stream"] = true.into();
        if format == Format::OpenAiChat {
            body["stream_options"] = json!({"include_usage": true});
        }
    }
    body
}

impl Talk {
    pub(crate) async fn new(format: Format, mode: Mode) -> Self {
        Self::to(
            format,
            mode,
            ScriptedProvider::default(),
            Engine::in_memory(),
        )
        .await
    }

    pub(crate) async fn to(
        format: Format,
        mode: Mode,
        provider: impl Provider,
        engine: Engine,
    ) -> Self {
        let policy =
            "[policies.short]\npreview = 1000\npays = \"fits\"\n[[routes]]\npolicy = \"short\"\n";
        let proxied = Proxied::to(provider, engine, policy).await;
        let call =
            json!({"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": "{}"});
        let options = RequestOptions {
            max_output_tokens: (format == Format::Anthropic).then_some(500),
            ..RequestOptions::default()
        };
        Self {
            proxied,
            format,
            mode,
            items: vec![
                user("List it."),
                item(&call),
                output("call_1", &long()),
                Item::Message(Message::text(Role::Assistant, "There it is.")),
            ],
            tools: vec![tool("ls")],
            options,
            // A stream whose answer the provider keeps offers nothing.
            more: match (format, mode) {
                (Format::OpenAiResponses, Mode::Streamed) => json!({"store": false}),
                _ => json!({}),
            },
        }
    }

    pub(crate) fn offer(&mut self, name: &str) {
        self.tools.push(tool(name));
    }

    fn body(&self) -> Value {
        let request = Transcript {
            items: self.items.clone(),
            tools: self.tools.clone(),
            options: self.options.clone(),
            ..Transcript::default()
        };
        let mut body = body_of(self.format, self.mode, request);
        for (name, value) in self.more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    }

    pub(crate) fn request(&self) -> reqwest::RequestBuilder {
        let path = path_of(self.format, self.mode);
        let request = self.proxied.stand.request(Method::POST, &path);
        request
            .header("content-type", "application/json")
            .header("x-contexture-wait", "ingest")
            .body(self.body().to_string())
    }

    /// Sends the history, and adds what is answered.
    pub(crate) async fn send(&mut self) -> Got {
        let answer = self.proxied.stand.send(self.request()).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let document = match self.mode {
            Mode::Whole => answer.text.clone(),
            Mode::Streamed => legal(self.format, &answer.text),
        };
        let lifted = lift(self.format, &document).unwrap();
        assert_eq!(lifted.kind, DocumentKind::Response, "{document}");
        let outcome = self.proxied.outcome(&answer).await;
        self.items.extend(lifted.transcript.items.clone());
        let document = serde_json::from_str(&document).unwrap();
        let findings = response_validator(self.format).validation_errors(&document);
        assert_eq!(findings, Vec::<String>::new(), "{document}");
        Got {
            answer,
            document,
            said: lifted.transcript,
            outcome,
        }
    }

    pub(crate) async fn ask(&mut self, text: &str) -> Got {
        self.items.push(user(text));
        self.send().await
    }

    /// What the provider was asked, read; each is legal.
    pub(crate) fn asked(&self) -> Vec<Transcript> {
        let validator = request_validator(self.format.as_str());
        let received = self.proxied.upstream.received_requests();
        let asked = received.iter().map(|received| {
            let mut request = received.json();
            // The schema is that of requests without a stream.
            for name in ["stream", "stream_options"] {
                request.as_object_mut().unwrap().remove(name);
            }
            let findings = validator.validation_errors(&request);
            assert_eq!(findings, Vec::<String>::new(), "{}", received.json());
            lift(self.format, &received.json().to_string())
                .unwrap()
                .transcript
        });
        asked.collect()
    }

    /// What a scripted provider answered to each of them.
    pub(crate) fn answered(&self) -> Vec<Transcript> {
        let provider = ScriptedProvider::default();
        let received = self.proxied.upstream.received_requests();
        let answers = received.iter().map(|received: &std::sync::Arc<Received>| {
            let body = provider.respond_to(received).body();
            let text = String::from_utf8(body.to_vec()).unwrap();
            let document = match self.mode {
                Mode::Whole => text,
                Mode::Streamed => accumulated(self.format, &text),
            };
            lift(self.format, &document).unwrap().transcript
        });
        answers.collect()
    }

    /// The only conversation there is, in one branch.
    pub(crate) async fn only(&self) -> Value {
        let conversations = self.proxied.conversations().await;
        assert_eq!(conversations.len(), 1, "{conversations:#?}");
        assert_eq!(conversations[0]["branches"], 1, "{conversations:#?}");
        conversations[0].clone()
    }
}

pub(crate) fn offers(asked: &Transcript) -> bool {
    asked.tools.iter().any(|tool| tool.name() == OWN)
}

fn response_validator(format: Format) -> Validator {
    Validator::new(&schema(match format {
        Format::OpenAiChat => "openai.chat.response",
        Format::OpenAiResponses => "openai.responses.response",
        Format::Anthropic => "anthropic.messages.response",
        _ => "gemini.GenerateContentResponse",
    }))
}

fn data(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines
        .filter_map(|line| line.strip_prefix("data: "))
        .collect()
}

/// The document that a stream comes to.
pub(crate) fn accumulated(format: Format, text: &str) -> String {
    let mut accumulator = Accumulator::new(format).unwrap();
    for data in data(text) {
        accumulator.push(data).unwrap();
    }
    assert!(accumulator.is_complete(), "{text}");
    accumulator.finish().unwrap()
}

/// The document that a stream comes to, which is one that a provider could have sent.
fn legal(format: Format, text: &str) -> String {
    let document = accumulated(format, text);
    let events = data(text).into_iter().filter(|data| *data != "[DONE]");
    let events: Vec<Value> = events
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    match format {
        Format::Anthropic => {
            assert_eq!(events[0]["type"], "message_start", "{text}");
            assert_eq!(events.last().unwrap()["type"], "message_stop", "{text}");
            assert_eq!(
                (of("message_start"), of("message_delta"), of("message_stop")),
                (1, 1, 1)
            );
            let mut open = None;
            let mut next = 0;
            for event in &events {
                match event["type"].as_str().unwrap() {
                    "content_block_start" => {
                        assert_eq!(
                            (open, event["index"].as_u64()),
                            (None, Some(next)),
                            "{text}"
                        );
                        open = Some(next);
                        next += 1;
                    }
                    "content_block_delta" => assert_eq!(event["index"].as_u64(), open, "{text}"),
                    "content_block_stop" => assert_eq!(event["index"].as_u64(), open.take()),
                    _ => {}
                }
            }
            assert_eq!(open, None);
        }
        Format::OpenAiChat => {
            assert_eq!(text.matches("data: [DONE]").count(), 1, "{text}");
            assert!(text.trim_end().ends_with("data: [DONE]"), "{text}");
            assert!(
                events.iter().all(|event| event["id"] == events[0]["id"]),
                "{text}"
            );
            let choices = events
                .iter()
                .filter_map(|event| event.pointer("/choices/0"));
            let choices: Vec<&Value> = choices.collect();
            let finished = choices
                .iter()
                .filter(|choice| !choice["finish_reason"].is_null());
            assert_eq!(finished.count(), 1, "{text}");
            let roles = choices
                .iter()
                .filter(|choice| !choice["delta"]["role"].is_null());
            assert_eq!(roles.count(), 1, "{text}");
            let usages = events.iter().filter(|event| !event["usage"].is_null());
            assert_eq!(usages.count(), 1, "{text}");
        }
        Format::OpenAiResponses => {
            for (number, event) in events.iter().enumerate() {
                assert_eq!(
                    event["sequence_number"].as_u64(),
                    Some(number as u64),
                    "{text}"
                );
            }
            assert_eq!(
                (of("response.created"), of("response.completed")),
                (1, 1),
                "{text}"
            );
            let last = events.last().unwrap();
            assert_eq!(last["type"], "response.completed", "{text}");
            assert_eq!(
                last["response"]["id"], events[0]["response"]["id"],
                "{text}"
            );
            let done = events
                .iter()
                .filter(|event| event["type"] == "response.output_item.done");
            let done: Vec<&Value> = done.collect();
            let places = done
                .iter()
                .map(|event| event["output_index"].as_u64().unwrap());
            assert!(places.eq(0..done.len() as u64), "{text}");
            let items: Vec<&Value> = done.iter().map(|event| &event["item"]).collect();
            assert_eq!(json!(items), last["response"]["output"], "{text}");
        }
        _ => {
            let ends = events
                .iter()
                .filter_map(|event| event.pointer("/candidates/0/finishReason"));
            assert_eq!(ends.count(), 1, "{text}");
            let last = events.last().unwrap();
            assert!(
                last.pointer("/candidates/0/finishReason").is_some(),
                "{text}"
            );
            assert!(
                events
                    .iter()
                    .all(|event| event["responseId"] == events[0]["responseId"])
            );
        }
    }
    document
}
