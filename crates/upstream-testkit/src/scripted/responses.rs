//! OpenAI's responses.

use serde_json::{Value, json};

use crate::answer::UpstreamResponse;
use crate::scripted::reply::{CREATED, ScriptedReply, ScriptedToolCall};

pub(crate) fn completion_json(reply: &ScriptedReply) -> Value {
    let calls = reply
        .calls
        .iter()
        .map(|made| tool_call_json(made, "completed", &made.arguments));
    let output: Vec<Value> = [message_json(
        reply,
        "completed",
        &[text_part_json(&reply.text)],
    )]
    .into_iter()
    .chain(calls)
    .collect();
    response_json(reply, "completed", &output, &usage_json(reply))
}

pub(crate) fn completion_stream(reply: &ScriptedReply) -> UpstreamResponse {
    let mut events = SseEvents::default();
    for kind in ["response.created", "response.in_progress"] {
        let response = response_json(reply, "in_progress", &[], &Value::Null);
        events.push_event(kind, json!({"response": response}));
    }
    let id = message_id(reply);
    let mine = |fields: Value| {
        let mut event = json!({"item_id": id, "output_index": 0, "content_index": 0});
        // Every event of a part names the part; the fields that differ are merged in.
        for (name, value) in fields.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        event
    };
    let item = message_json(reply, "in_progress", &[]);
    events.push_event(
        "response.output_item.added",
        json!({"output_index": 0, "item": item}),
    );
    events.push_event(
        "response.content_part.added",
        mine(json!({"part": text_part_json("")})),
    );
    for delta in reply.text_deltas() {
        events.push_event(
            "response.output_text.delta",
            mine(json!({"delta": delta, "logprobs": []})),
        );
    }
    events.push_event(
        "response.output_text.done",
        mine(json!({"text": reply.text, "logprobs": []})),
    );
    events.push_event(
        "response.content_part.done",
        mine(json!({"part": text_part_json(&reply.text)})),
    );
    let item = message_json(reply, "completed", &[text_part_json(&reply.text)]);
    events.push_event(
        "response.output_item.done",
        json!({"output_index": 0, "item": item}),
    );
    for (number, made) in reply.calls.iter().enumerate() {
        events.push_call_events(made, number + 1);
    }
    events.push_event(
        "response.completed",
        json!({"response": completion_json(reply)}),
    );
    UpstreamResponse::event_stream(events.0)
}

/// Events, numbered as they are made.
#[derive(Default)]
struct SseEvents(Vec<String>);

impl SseEvents {
    fn push_event(&mut self, kind: &str, mut event: Value) {
        event["type"] = kind.into();
        event["sequence_number"] = self.0.len().into();
        self.0.push(format!("event: {kind}\ndata: {event}\n\n"));
    }

    fn push_call_events(&mut self, made: &ScriptedToolCall, index: usize) {
        let item = tool_call_json(made, "in_progress", "");
        let id = item["id"].clone();
        self.push_event(
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        );
        for delta in made.arguments.split_inclusive(':') {
            let event = json!({"item_id": id, "output_index": index, "delta": delta});
            self.push_event("response.function_call_arguments.delta", event);
        }
        let event = json!({
            "item_id": id, "output_index": index, "name": made.name, "arguments": made.arguments
        });
        self.push_event("response.function_call_arguments.done", event);
        let item = tool_call_json(made, "completed", &made.arguments);
        self.push_event(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }
}

fn response_json(reply: &ScriptedReply, status: &str, output: &[Value], usage: &Value) -> Value {
    json!({
        "id": format!("resp_{}", reply.id), "object": "response", "created_at": CREATED, "status": status,
        "background": false, "error": null, "incomplete_details": null, "instructions": null,
        "max_output_tokens": null, "metadata": {}, "model": reply.model, "output": output,
        "parallel_tool_calls": true, "previous_response_id": null, "reasoning": {"effort": null, "summary": null},
        "store": true, "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "truncation": "disabled", "usage": usage
    })
}

fn message_id(reply: &ScriptedReply) -> String {
    format!("msg_{}", reply.id)
}

fn message_json(reply: &ScriptedReply, status: &str, content: &[Value]) -> Value {
    json!({
        "id": message_id(reply), "type": "message", "role": "assistant", "status": status, "content": content
    })
}

fn text_part_json(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn tool_call_json(call: &ScriptedToolCall, status: &str, arguments: &str) -> Value {
    json!({
        "id": format!("fc_{}", call.id), "type": "function_call", "call_id": format!("call_{}", call.id),
        "name": call.name, "arguments": arguments, "status": status
    })
}

fn usage_json(reply: &ScriptedReply) -> Value {
    let usage = reply.usage;
    json!({
        "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total()
    })
}
