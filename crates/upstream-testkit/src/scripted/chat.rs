//! OpenAI's chat completions.

use serde_json::{Value, json};

use crate::answer::UpstreamResponse;
use crate::scripted::reply::{CREATED, ScriptedReply, ScriptedToolCall};

pub(crate) fn completion_json(reply: &ScriptedReply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text, "refusal": null});
    if !reply.calls.is_empty() {
        // The member is absent without calls, as the provider has it.
        message["tool_calls"] = reply.calls.iter().map(tool_call_json).collect();
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply)});
    json!({
        "id": format!("chatcmpl-{}", reply.id), "object": "chat.completion", "created": CREATED,
        "model": reply.model, "choices": [choice], "usage": usage_json(reply)
    })
}

pub(crate) fn completion_stream(reply: &ScriptedReply, request: &Value) -> UpstreamResponse {
    // Usage comes only if it was asked for, in a chunk without choices.
    let with_usage = request["stream_options"]["include_usage"] == true;
    let event = |choices: Value, usage: Option<Value>| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", reply.id), "object": "chat.completion.chunk", "created": CREATED,
            "model": reply.model, "choices": choices
        });
        if with_usage {
            chunk["usage"] = usage.unwrap_or_default();
        }
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        event(json!([choice]), None)
    };
    let mut events = vec![choice(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    for delta in reply.text_deltas() {
        events.push(choice(json!({"content": delta}), Value::Null));
    }
    for (index, made) in reply.calls.iter().enumerate() {
        let mut begun = tool_call_json(made);
        begun["index"] = index.into();
        // The first chunk of a call has its name, and arguments follow in pieces.
        begun["function"]["arguments"] = "".into();
        events.push(choice(json!({"tool_calls": [begun]}), Value::Null));
        for part in made.arguments.split_inclusive(':') {
            let delta = json!({"index": index, "function": {"arguments": part}});
            events.push(choice(json!({"tool_calls": [delta]}), Value::Null));
        }
    }
    // The reason stands in a chunk of its own with an empty delta.
    events.push(choice(json!({}), finish_reason(reply).into()));
    if with_usage {
        events.push(event(json!([]), Some(usage_json(reply))));
    }
    events.push("data: [DONE]\n\n".to_owned());
    UpstreamResponse::event_stream(events)
}

fn tool_call_json(call: &ScriptedToolCall) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    json!({"id": format!("call_{}", call.id), "type": "function", "function": function})
}

fn finish_reason(reply: &ScriptedReply) -> &'static str {
    if reply.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

fn usage_json(reply: &ScriptedReply) -> Value {
    let usage = reply.usage;
    json!({
        "prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0
        }
    })
}
