//! Anthropic's messages.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::scripted::reply::{Call, Reply};

pub(crate) fn whole(reply: &Reply) -> Value {
    let text = json!({"type": "text", "text": reply.text});
    let calls = reply.calls.iter().map(|made| call(made, &made.input()));
    let content: Vec<Value> = [text].into_iter().chain(calls).collect();
    message(
        reply,
        &content,
        stop(reply).into(),
        &usage(reply, reply.usage.output),
    )
}

pub(crate) fn stream(reply: &Reply) -> Answer {
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
    let begun = message(reply, &[], Value::Null, &usage(reply, 1));
    let text = json!({"type": "text", "text": ""});
    let mut events = vec![
        event("message_start", json!({"message": begun})),
        event(
            "content_block_start",
            json!({"index": 0, "content_block": text}),
        ),
        event("ping", json!({})),
    ];
    events.extend(
        reply
            .deltas()
            .map(|text| delta(0, json!({"type": "text_delta", "text": text}))),
    );
    events.push(event("content_block_stop", json!({"index": 0})));
    for (number, made) in reply.calls.iter().enumerate() {
        let index = number + 1;
        let block = call(made, &json!({}));
        events.push(event(
            "content_block_start",
            json!({"index": index, "content_block": block}),
        ));
        let parts = [""].into_iter().chain(made.arguments.split_inclusive(':'));
        events.extend(parts.map(|part| {
            delta(
                index,
                json!({"type": "input_json_delta", "partial_json": part}),
            )
        }));
        events.push(event("content_block_stop", json!({"index": index})));
    }
    let stopped = json!({"stop_reason": stop(reply), "stop_sequence": null});
    let usage = usage(reply, reply.usage.output);
    events.push(event(
        "message_delta",
        json!({"delta": stopped, "usage": usage}),
    ));
    events.push(event("message_stop", json!({})));
    Answer::events(events)
}

fn message(reply: &Reply, content: &[Value], stop: Value, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": reply.model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage
    })
}

fn call(call: &Call, input: &Value) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{}", call.id), "name": call.name, "input": input})
}

fn stop(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    }
}

/// Input is what did not come from the cache, and what is new is written to it.
fn usage(reply: &Reply, output: usize) -> Value {
    json!({
        "input_tokens": reply.usage.input - reply.usage.cached, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.usage.cached, "output_tokens": output, "service_tier": "standard"
    })
}
