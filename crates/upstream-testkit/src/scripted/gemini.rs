//! Gemini's contents.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::scripted::reply::{Call, Reply};

pub(crate) fn whole(reply: &Reply) -> Value {
    let parts: Vec<Value> = [json!({"text": reply.text})]
        .into_iter()
        .chain(reply.calls.iter().map(call))
        .collect();
    response(reply, &parts, Some("STOP"))
}

/// With `alt=sse`.
pub(crate) fn stream(reply: &Reply) -> Answer {
    Answer::events(
        chunks(reply)
            .iter()
            .map(|chunk| format!("data: {chunk}\r\n\r\n")),
    )
}

/// Without: one array, element by element.
pub(crate) fn array(reply: &Reply) -> Answer {
    let chunks = chunks(reply);
    let text: Vec<String> = chunks.iter().map(Value::to_string).collect();
    Answer::whole(
        200,
        "application/json; charset=UTF-8",
        format!("[{}\n]\n", text.join("\n,\r\n")),
    )
}

fn chunks(reply: &Reply) -> Vec<Value> {
    let text = reply.deltas().map(|delta| json!({"text": delta}));
    let parts: Vec<Value> = text.chain(reply.calls.iter().map(call)).collect();
    let last = parts.len().saturating_sub(1);
    let finish = |number| (number == last).then_some("STOP");
    let parts = parts.iter().enumerate();
    parts
        .map(|(number, part)| response(reply, std::slice::from_ref(part), finish(number)))
        .collect()
}

fn response(reply: &Reply, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(reply), "modelVersion": reply.model, "responseId": reply.id
    })
}

/// The arguments come whole, also in a stream.
fn call(call: &Call) -> Value {
    json!({"functionCall": {"id": call.id, "name": call.name, "args": call.input()}})
}

fn usage(reply: &Reply) -> Value {
    let usage = reply.usage;
    json!({
        "promptTokenCount": usage.input, "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output, "totalTokenCount": usage.total()
    })
}
