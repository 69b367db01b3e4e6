//! Gemini's contents.

use serde_json::{Value, json};

use crate::answer::UpstreamResponse;
use crate::scripted::reply::{ScriptedReply, ScriptedToolCall};

pub(crate) fn completion_json(reply: &ScriptedReply) -> Value {
    let parts: Vec<Value> = [json!({"text": reply.text})]
        .into_iter()
        .chain(reply.calls.iter().map(tool_call_json))
        .collect();
    response_json(reply, &parts, Some("STOP"))
}

/// Returns a reply as server-sent events, as Gemini streams with `alt=sse`.
pub(crate) fn completion_stream(reply: &ScriptedReply) -> UpstreamResponse {
    UpstreamResponse::event_stream(
        stream_chunks(reply)
            .iter()
            .map(|chunk| format!("data: {chunk}\r\n\r\n")),
    )
}

/// Returns a reply as one JSON array of chunks, as Gemini streams without `alt=sse`.
pub(crate) fn completion_array(reply: &ScriptedReply) -> UpstreamResponse {
    let chunks = stream_chunks(reply);
    let text: Vec<String> = chunks.iter().map(Value::to_string).collect();
    UpstreamResponse::from_body(
        200,
        "application/json; charset=UTF-8",
        format!("[{}\n]\n", text.join("\n,\r\n")),
    )
}

fn stream_chunks(reply: &ScriptedReply) -> Vec<Value> {
    let text = reply.text_deltas().map(|delta| json!({"text": delta}));
    let parts: Vec<Value> = text.chain(reply.calls.iter().map(tool_call_json)).collect();
    let last = parts.len().saturating_sub(1);
    // Only the last chunk has a reason to finish.
    let finish = |number| (number == last).then_some("STOP");
    let parts = parts.iter().enumerate();
    parts
        .map(|(number, part)| response_json(reply, std::slice::from_ref(part), finish(number)))
        .collect()
}

fn response_json(reply: &ScriptedReply, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage_json(reply), "modelVersion": reply.model, "responseId": reply.id
    })
}

/// The arguments come whole, also in a stream.
fn tool_call_json(call: &ScriptedToolCall) -> Value {
    json!({"functionCall": {"id": call.id, "name": call.name, "args": call.parse_arguments()}})
}

fn usage_json(reply: &ScriptedReply) -> Value {
    let usage = reply.usage;
    json!({
        "promptTokenCount": usage.input, "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output, "totalTokenCount": usage.total()
    })
}
