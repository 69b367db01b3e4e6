//! OpenAI's responses.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::scripted::reply::{CREATED, Call, Reply};

pub(crate) fn whole(reply: &Reply) -> Value {
    let calls = reply
        .calls
        .iter()
        .map(|made| call(made, "completed", &made.arguments));
    let output: Vec<Value> = [message(reply, "completed", &[part(&reply.text)])]
        .into_iter()
        .chain(calls)
        .collect();
    response(reply, "completed", &output, &usage(reply))
}

pub(crate) fn stream(reply: &Reply) -> Answer {
    let mut events = Events::default();
    for kind in ["response.created", "response.in_progress"] {
        let response = response(reply, "in_progress", &[], &Value::Null);
        events.push(kind, json!({"response": response}));
    }
    let id = message_id(reply);
    let mine = |fields: Value| {
        let mut event = json!({"item_id": id, "output_index": 0, "content_index": 0});
        for (name, value) in fields.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        event
    };
    let item = message(reply, "in_progress", &[]);
    events.push(
        "response.output_item.added",
        json!({"output_index": 0, "item": item}),
    );
    events.push(
        "response.content_part.added",
        mine(json!({"part": part("")})),
    );
    for delta in reply.deltas() {
        events.push(
            "response.output_text.delta",
            mine(json!({"delta": delta, "logprobs": []})),
        );
    }
    events.push(
        "response.output_text.done",
        mine(json!({"text": reply.text, "logprobs": []})),
    );
    events.push(
        "response.content_part.done",
        mine(json!({"part": part(&reply.text)})),
    );
    let item = message(reply, "completed", &[part(&reply.text)]);
    events.push(
        "response.output_item.done",
        json!({"output_index": 0, "item": item}),
    );
    for (number, made) in reply.calls.iter().enumerate() {
        events.call(made, number + 1);
    }
    events.push("response.completed", json!({"response": whole(reply)}));
    Answer::events(events.0)
}

/// Events, numbered as they are made.
#[derive(Default)]
struct Events(Vec<String>);

impl Events {
    fn push(&mut self, kind: &str, mut event: Value) {
        event["type"] = kind.into();
        event["sequence_number"] = self.0.len().into();
        self.0.push(format!("event: {kind}\ndata: {event}\n\n"));
    }

    fn call(&mut self, made: &Call, index: usize) {
        let item = call(made, "in_progress", "");
        let id = item["id"].clone();
        self.push(
            "response.output_item.added",
            json!({"output_index": index, "item": item}),
        );
        for delta in made.arguments.split_inclusive(':') {
            let event = json!({"item_id": id, "output_index": index, "delta": delta});
            self.push("response.function_call_arguments.delta", event);
        }
        let event = json!({
            "item_id": id, "output_index": index, "name": made.name, "arguments": made.arguments
        });
        self.push("response.function_call_arguments.done", event);
        let item = call(made, "completed", &made.arguments);
        self.push(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }
}

fn response(reply: &Reply, status: &str, output: &[Value], usage: &Value) -> Value {
    json!({
        "id": format!("resp_{}", reply.id), "object": "response", "created_at": CREATED, "status": status,
        "background": false, "error": null, "incomplete_details": null, "instructions": null,
        "max_output_tokens": null, "metadata": {}, "model": reply.model, "output": output,
        "parallel_tool_calls": true, "previous_response_id": null, "reasoning": {"effort": null, "summary": null},
        "store": true, "temperature": 1.0, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "truncation": "disabled", "usage": usage
    })
}

fn message_id(reply: &Reply) -> String {
    format!("msg_{}", reply.id)
}

fn message(reply: &Reply, status: &str, content: &[Value]) -> Value {
    json!({
        "id": message_id(reply), "type": "message", "role": "assistant", "status": status, "content": content
    })
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn call(call: &Call, status: &str, arguments: &str) -> Value {
    json!({
        "id": format!("fc_{}", call.id), "type": "function_call", "call_id": format!("call_{}", call.id),
        "name": call.name, "arguments": arguments, "status": status
    })
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "input_tokens": usage.input, "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total()
    })
}
