//! The documents of each format.

use serde_json::{Value, json};

use crate::answer::UpstreamResponse;
use crate::provider::Received;
use crate::scripted::dialect::ProviderApi;
use crate::scripted::reply::{CREATED, ScriptedReply};
use crate::scripted::{anthropic, chat, gemini, responses};

const MODELS: [&str; 2] = ["scripted", "scripted-mini"];

pub(crate) fn completion_response(
    dialect: ProviderApi,
    request: &Received,
    reply: &ScriptedReply,
) -> UpstreamResponse {
    let body = request.json();
    let streams = body["stream"] == true;
    match dialect {
        ProviderApi::Chat if streams => chat::completion_stream(reply, &body),
        ProviderApi::Chat => UpstreamResponse::json(200, &chat::completion_json(reply)),
        ProviderApi::Responses if streams => responses::completion_stream(reply),
        ProviderApi::Responses => UpstreamResponse::json(200, &responses::completion_json(reply)),
        ProviderApi::Anthropic if streams => anthropic::completion_stream(reply),
        ProviderApi::Anthropic => UpstreamResponse::json(200, &anthropic::completion_json(reply)),
        ProviderApi::Gemini if !request.path().ends_with(":streamGenerateContent") => {
            UpstreamResponse::json(200, &gemini::completion_json(reply))
        }
        ProviderApi::Gemini if request.target.contains("alt=sse") => {
            gemini::completion_stream(reply)
        }
        ProviderApi::Gemini => gemini::completion_array(reply),
    }
    // As the providers do: clients log this header for support.
    .with_header("x-request-id", &format!("req_{}", reply.id))
}

pub(crate) fn error_response(dialect: ProviderApi, status: u16, message: &str) -> UpstreamResponse {
    let document = match dialect {
        ProviderApi::Chat | ProviderApi::Responses => {
            let kind = match status {
                429 => "rate_limit_exceeded",
                400..500 => "invalid_request_error",
                _ => "server_error",
            };
            json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
        }
        ProviderApi::Anthropic => {
            let kind = match status {
                429 => "rate_limit_error",
                404 => "not_found_error",
                400..500 => "invalid_request_error",
                529 => "overloaded_error",
                _ => "api_error",
            };
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_error"})
        }
        ProviderApi::Gemini => {
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
    UpstreamResponse::json(status, &document)
}

pub(crate) fn model_list_json(dialect: ProviderApi) -> Value {
    let models: Vec<Value> = MODELS
        .iter()
        .map(|name| model_json(dialect, name))
        .collect();
    match dialect {
        ProviderApi::Chat | ProviderApi::Responses => json!({"object": "list", "data": models}),
        ProviderApi::Anthropic => {
            let [first, last] = MODELS;
            json!({"data": models, "has_more": false, "first_id": first, "last_id": last})
        }
        ProviderApi::Gemini => json!({"models": models}),
    }
}

pub(crate) fn model_json(dialect: ProviderApi, name: &str) -> Value {
    match dialect {
        ProviderApi::Chat | ProviderApi::Responses => {
            json!({"id": name, "object": "model", "created": CREATED, "owned_by": "script"})
        }
        ProviderApi::Anthropic => {
            json!({"type": "model", "id": name, "display_name": name, "created_at": "2025-10-09T08:53:20Z"})
        }
        ProviderApi::Gemini => json!({
            "name": format!("models/{name}"), "version": "1", "displayName": name,
            "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"]
        }),
    }
}

pub(crate) fn token_count_json(dialect: ProviderApi, tokens: usize) -> Value {
    match dialect {
        ProviderApi::Chat | ProviderApi::Responses => {
            json!({"object": "response.input_tokens", "input_tokens": tokens})
        }
        ProviderApi::Anthropic => json!({"input_tokens": tokens}),
        ProviderApi::Gemini => {
            json!({"totalTokens": tokens, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": tokens}]})
        }
    }
}
