//! Anthropic's messages.

use serde_json::{Value, json};

use crate::answer::UpstreamResponse;
use crate::scripted::reply::{ScriptedReply, ScriptedToolCall};

pub(crate) fn completion_json(reply: &ScriptedReply) -> Value {
    let text = json!({"type": "text", "text": reply.text});
    let calls = reply
        .calls
        .iter()
        .map(|made| tool_call_json(made, &made.parse_arguments()));
    let content: Vec<Value> = [text].into_iter().chain(calls).collect();
    message_json(
        reply,
        &content,
        stop_reason(reply).into(),
        &usage_json(reply, reply.usage.output),
    )
}

pub(crate) fn completion_stream(reply: &ScriptedReply) -> UpstreamResponse {
    let event = |kind: &str, mut event: Value| {
        event["type"] = kind.into();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    let delta = |index: usize, delta: Value| {
        event(
            "content_block_delta",
            json!({"index": index, "delta": delta}),
        )
    };
    // Anthropic reports one output token when a message begins; clients must take the later figure.
    let begun = message_json(reply, &[], Value::Null, &usage_json(reply, 1));
    let text = json!({"type": "text", "text": ""});
    let mut events = vec![
        event("message_start", json!({"message": begun})),
        event(
            "content_block_start",
            json!({"index": 0, "content_block": text}),
        ),
        // Real streams have pings, and clients must pass over them.
        event("ping", json!({})),
    ];
    events.extend(
        reply
            .text_deltas()
            .map(|text| delta(0, json!({"type": "text_delta", "text": text}))),
    );
    events.push(event("content_block_stop", json!({"index": 0})));
    for (number, made) in reply.calls.iter().enumerate() {
        // Block 0 is the text.
        let index = number + 1;
        let block = tool_call_json(made, &json!({}));
        events.push(event(
            "content_block_start",
            json!({"index": index, "content_block": block}),
        ));
        // An empty first delta, as the provider sends it; then cuts at colons, within the JSON.
        let parts = [""].into_iter().chain(made.arguments.split_inclusive(':'));
        events.extend(parts.map(|part| {
            delta(
                index,
                json!({"type": "input_json_delta", "partial_json": part}),
            )
        }));
        events.push(event("content_block_stop", json!({"index": index})));
    }
    let stopped = json!({"stop_reason": stop_reason(reply), "stop_sequence": null});
    let usage = usage_json(reply, reply.usage.output);
    events.push(event(
        "message_delta",
        json!({"delta": stopped, "usage": usage}),
    ));
    events.push(event("message_stop", json!({})));
    UpstreamResponse::event_stream(events)
}

fn message_json(reply: &ScriptedReply, content: &[Value], stop: Value, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": reply.model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage
    })
}

fn tool_call_json(call: &ScriptedToolCall, input: &Value) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{}", call.id), "name": call.name, "input": input})
}

fn stop_reason(reply: &ScriptedReply) -> &'static str {
    if reply.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    }
}

/// Input is what did not come from the cache, and what is new is written to it.
fn usage_json(reply: &ScriptedReply, output: usize) -> Value {
    json!({
        "input_tokens": reply.usage.input - reply.usage.cached, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.usage.cached, "output_tokens": output, "service_tier": "standard"
    })
}
