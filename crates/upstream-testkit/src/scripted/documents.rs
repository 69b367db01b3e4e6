//! The documents of each format.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::received::Received;
use crate::scripted::dialect::Dialect;
use crate::scripted::reply::{CREATED, Reply};
use crate::scripted::{anthropic, chat, gemini, responses};

const MODELS: [&str; 2] = ["scripted", "scripted-mini"];

pub(crate) fn answer(dialect: Dialect, request: &Received, reply: &Reply) -> Answer {
    let body = request.json();
    let streams = body["stream"] == true;
    match dialect {
        Dialect::Chat if streams => chat::stream(reply, &body),
        Dialect::Chat => Answer::json(200, &chat::whole(reply)),
        Dialect::Responses if streams => responses::stream(reply),
        Dialect::Responses => Answer::json(200, &responses::whole(reply)),
        Dialect::Anthropic if streams => anthropic::stream(reply),
        Dialect::Anthropic => Answer::json(200, &anthropic::whole(reply)),
        Dialect::Gemini if !request.path().ends_with(":streamGenerateContent") => {
            Answer::json(200, &gemini::whole(reply))
        }
        Dialect::Gemini if request.target.contains("alt=sse") => gemini::stream(reply),
        Dialect::Gemini => gemini::array(reply),
    }
    .with_header("x-request-id", &format!("req_{}", reply.id))
}

pub(crate) fn error(dialect: Dialect, status: u16, message: &str) -> Answer {
    let document = match dialect {
        Dialect::Chat | Dialect::Responses => {
            let kind = match status {
                429 => "rate_limit_exceeded",
                400..500 => "invalid_request_error",
                _ => "server_error",
            };
            json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
        }
        Dialect::Anthropic => {
            let kind = match status {
                429 => "rate_limit_error",
                404 => "not_found_error",
                400..500 => "invalid_request_error",
                529 => "overloaded_error",
                _ => "api_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_error"})
        }
        Dialect::Gemini => {
            let kind = match status {
                429 => "RESOURCE_EXHAUSTED",
                404 => "NOT_FOUND",
                400..500 => "INVALID_ARGUMENT",
                503 => "UNAVAILABLE",
                _ => "INTERNAL",
            };
            json!({"error": {"code": status, "message": message, "status": kind}})
        }
    };
    Answer::json(status, &document)
}

pub(crate) fn models(dialect: Dialect) -> Value {
    let models: Vec<Value> = MODELS.iter().map(|name| model(dialect, name)).collect();
    match dialect {
        Dialect::Chat | Dialect::Responses => json!({"object": "list", "data": models}),
        Dialect::Anthropic => {
            let [first, last] = MODELS;
            json!({"data": models, "has_more": false, "first_id": first, "last_id": last})
        }
        Dialect::Gemini => json!({"models": models}),
    }
}

pub(crate) fn model(dialect: Dialect, name: &str) -> Value {
    match dialect {
        Dialect::Chat | Dialect::Responses => {
            json!({"id": name, "object": "model", "created": CREATED, "owned_by": "script"})
        }
        Dialect::Anthropic => {
            json!({"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"})
        }
        Dialect::Gemini => json!({
            "name": format!("models/{name}"), "version": "1", "displayName": name,
            "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"]
        }),
    }
}

pub(crate) fn count(dialect: Dialect, tokens: usize) -> Value {
    match dialect {
        Dialect::Chat | Dialect::Responses => {
            json!({"object": "response.input_tokens", "input_tokens": tokens})
        }
        Dialect::Anthropic => json!({"input_tokens": tokens}),
        Dialect::Gemini => {
            json!({"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]})
        }
    }
}
