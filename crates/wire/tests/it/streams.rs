//! Streams, recorded and made, become the answers they would have been unstreamed.

use contexture_ir::{FinishReason, FunctionCall, Item, Reasoning, Status, Transcript};
use contexture_testdata as data;
use contexture_wire::{Accumulator, Format, PieceKind, StreamError, StreamEvent, lift};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bedrock::event_jsons;
use crate::recorded::{difference, value};

/// A recorded stream: its name, format and events.
struct Recorded {
    name: String,
    format: Format,
    events: Vec<String>,
}

/// What is recorded beside generation: other endpoints' streams.
const OTHERS: [&str; 5] = [
    "interaction.created",
    "session.created",
    "text_completion",
    "setupComplete",
    "method=POST",
];

fn recorded() -> Vec<Recorded> {
    let mut all = Vec::new();
    let mut add = |name: &str, format: Format, events: Vec<String>| {
        let other = events.first().is_none_or(|first| {
            OTHERS.iter().any(|word| first.contains(word)) && !first.contains("candidates")
        });
        if !other {
            let name = name.to_owned();
            all.push(Recorded {
                name,
                format,
                events,
            });
        }
    };
    for format in Format::PROVIDERS {
        for exchange in data::exchanges(format.as_str()) {
            let lines = exchange.stream.iter().flat_map(|stream| stream.lines());
            let events = lines.filter_map(|line| line.strip_prefix("data:"));
            let mut events: Vec<String> = events.map(|data| data.trim().to_owned()).collect();
            if let Some(bytes) = &exchange.event_stream {
                events = event_jsons(bytes);
            }
            add(&exchange.file, format, events);
        }
    }
    for provider in ["anthropic", "google", "openai", "open-responses"] {
        for one in data::ai_sdk(provider) {
            let events = one.chunks.unwrap_or_default();
            let first = events.first().cloned().unwrap_or_default();
            let format = match provider {
                "anthropic" => Format::Anthropic,
                "google" => Format::Gemini,
                _ if first.contains("\"choices\"") => Format::OpenAiChat,
                _ => Format::OpenAiResponses,
            };
            add(&one.file, format, events);
        }
    }
    all
}

/// All events in; what they said.
fn fill(answer: &mut Accumulator, events: &[String]) -> Vec<StreamEvent> {
    let mut said = Vec::new();
    for event in events {
        match answer.push(event) {
            Ok(more) => said.extend(more),
            Err(StreamError::Malformed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    said
}

fn accumulated(format: Format, events: &[String]) -> (Accumulator, Vec<StreamEvent>) {
    let mut answer = Accumulator::new(format).unwrap();
    let said = fill(&mut answer, events);
    (answer, said)
}

fn transcript(format: Format, body: &str) -> Transcript {
    lift(format, body)
        .unwrap_or_else(|error| panic!("{error}: {body}"))
        .transcript
}

/// What was said, thought and given to tools.
fn words(items: &[Item]) -> [String; 3] {
    let mut words = [String::new(), String::new(), String::new()];
    for item in items {
        match item {
            Item::Message(message) => {
                let parts = message.content.iter();
                words[0].extend(parts.filter_map(|part| part.as_text()));
            }
            Item::Reasoning(Reasoning { content, .. }) => {
                let parts = content.iter().flatten();
                words[1].extend(parts.filter_map(|part| part.as_text()));
            }
            Item::FunctionCall(FunctionCall { arguments, .. }) => words[2] += arguments,
            _ => {}
        }
    }
    words
}

#[test]
fn every_recorded_stream_becomes_an_answer() {
    let mut counts = [0; Format::PROVIDERS.len()];
    for one in recorded() {
        let (answer, said) = accumulated(one.format, &one.events);
        // One recording is of a failure; of one the first and the last event are no JSON.
        let failed = one.name.starts_with("openai-error");
        let broken = one.name.starts_with("parallel-tool-call-wrapper");
        assert_eq!(answer.is_complete(), !failed && !broken, "{}", one.name);
        let items = transcript(one.format, &answer.finish_incomplete()).items;
        let ends = said
            .iter()
            .filter(|event| event.name() == "response.completed");
        let incomplete = said
            .iter()
            .filter(|event| event.name() == "response.incomplete");
        if !failed && !broken {
            let begins = said
                .iter()
                .filter(|event| event.name() == "response.created");
            let spliced = usize::from(one.name.starts_with("spliced"));
            let ends = ends.count() + incomplete.count();
            assert_eq!(ends + spliced, begins.count(), "{}", one.name);
            assert!(
                said.iter()
                    .any(|event| matches!(event, StreamEvent::Usage(_)))
            );
            assert_eq!(answer.finish().unwrap(), answer.finish_incomplete());
        }
        // Deltas and the finished items say the same; a second start voids what came before it.
        let begin = said
            .iter()
            .rposition(|e| matches!(e, StreamEvent::Started { .. }));
        let mut text = String::new();
        let mut calls = 0;
        for event in &said[begin.unwrap_or(0)..] {
            match event {
                StreamEvent::TextDelta { delta, .. } => text += delta,
                StreamEvent::ItemAdded {
                    kind: PieceKind::Call { .. },
                    ..
                } => calls += 1,
                _ => {}
            }
        }
        // One recording's last event says more than its deltas did.
        if one.name != "openai-shell-container.1.chunks.txt" {
            assert_eq!(text, words(&items)[0], "{}", one.name);
        }
        let called = |item: &&Item| {
            matches!(item, Item::FunctionCall(_)) || item.kind() == "custom_tool_call"
        };
        assert_eq!(calls, items.iter().filter(called).count(), "{}", one.name);
        let added = said
            .iter()
            .filter(|e| matches!(e, StreamEvent::ItemAdded { .. }));
        let done = said
            .iter()
            .filter(|e| matches!(e, StreamEvent::ItemDone { .. }));
        let spliced = usize::from(one.name.starts_with("spliced"));
        assert_eq!(added.count(), done.count() + spliced, "{}", one.name);
        counts[Format::PROVIDERS
            .iter()
            .position(|f| *f == one.format)
            .unwrap()] += 1;
    }
    println!("streams by format: {counts:?}");
    assert!(counts.iter().all(|count| *count > 1));
}

#[test]
fn what_grew_is_what_the_last_event_shows() {
    let mut count = 0;
    for one in recorded() {
        let broken = one.name.starts_with("parallel-tool-call-wrapper");
        if one.format != Format::OpenAiResponses || broken {
            continue;
        }
        let last = |event: &String| event.contains("\"type\":\"response.completed\"");
        let Some(end) = one.events.iter().position(last) else {
            continue;
        };
        let shown = value(&one.events[end])["response"].to_string();
        let shown = transcript(one.format, &shown).items;
        let (grown, _) = accumulated(one.format, &one.events[..end]);
        let grown = transcript(one.format, &grown.finish_incomplete()).items;
        if one.name.contains("id-rotation") {
            // There every event names items anew.
            assert_eq!(words(&grown), words(&shown));
        } else {
            let values = |items: &[Item]| {
                let mut items = serde_json::to_value(items).unwrap();
                for item in items.as_array_mut().unwrap() {
                    // Encrypted anew for each event.
                    let item = item.as_object_mut().unwrap();
                    item.remove("encrypted_content");
                    item.remove("fingerprint");
                }
                items
            };
            let (grown, shown) = (values(&grown), values(&shown));
            assert!(
                grown == shown,
                "{}: {}",
                one.name,
                difference(&shown, &grown, "$")
            );
        }
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[test]
fn recorded_stream_equals_unstreamed_response_recorded_with_it() {
    // Most pairs are of two runs, whose words differ; a refusal says nothing, so it is the same.
    let all = data::ai_sdk("anthropic");
    let find = |name: &str| all.iter().find(|one| one.file == name).unwrap();
    let events = find("anthropic-refusal.chunks.txt")
        .chunks
        .as_ref()
        .unwrap();
    let (answer, _) = accumulated(Format::Anthropic, events);
    let streamed = transcript(Format::Anthropic, &answer.finish().unwrap());
    let whole = find("anthropic-refusal.json").response.as_ref().unwrap();
    let whole = transcript(Format::Anthropic, whole.get());
    assert_eq!(streamed.items, whole.items);
    let finish = |one: &Transcript| one.response.as_ref().unwrap().finish.clone();
    assert_eq!(finish(&streamed), finish(&whole));
    // Elsewhere the members of items are the same, whatever they hold.
    let mut pairs = 0;
    for (provider, format) in [
        ("anthropic", Format::Anthropic),
        ("google", Format::Gemini),
        ("openai", Format::OpenAiChat),
    ] {
        let all = data::ai_sdk(provider);
        for one in recorded().iter().filter(|one| one.format == format) {
            let twin = one.name.replace(".chunks.txt", ".json");
            let twin = all.iter().find(|other| other.file == twin);
            let Some(whole) = twin.and_then(|twin| twin.response.as_ref()) else {
                continue;
            };
            let (answer, _) = accumulated(format, &one.events);
            let streamed = transcript(format, &answer.finish().unwrap()).items;
            let whole = transcript(format, whole.get()).items;
            let kinds = |items: &[Item]| items.iter().map(|i| i.kind().to_owned()).collect();
            let (a, b): (Vec<String>, Vec<String>) = (kinds(&streamed), kinds(&whole));
            if a == b {
                pairs += 1;
                let keys = |items: &[Item]| -> Vec<Vec<String>> {
                    let json = serde_json::to_value(items).unwrap();
                    let keys = |item: &Value| item.as_object().unwrap().keys().cloned().collect();
                    json.as_array().unwrap().iter().map(keys).collect()
                };
                assert_eq!(keys(&streamed), keys(&whole), "{}", one.name);
            }
        }
    }
    assert!(pairs > 20, "{pairs}");
}

/// A text in pieces of a few characters.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(7)
        .map(|piece| piece.iter().collect())
        .collect()
}

/// An unstreamed answer as its provider streams it.
fn streamed(format: Format, answer: &Value) -> Vec<String> {
    let events = match format {
        Format::Anthropic => anthropic(answer),
        Format::OpenAiChat => chat(answer),
        Format::Gemini => gemini(answer),
        Format::Bedrock => bedrock(answer),
        _ => responses(answer),
    };
    events.iter().map(Value::to_string).collect()
}

fn anthropic(answer: &Value) -> Vec<Value> {
    let mut start = answer.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": start})];
    for (index, block) in answer["content"].as_array().unwrap().iter().enumerate() {
        let mut begin = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str().unwrap() {
            kind @ ("text" | "thinking") => {
                begin[kind] = json!("");
                let text = pieces(block[kind].as_str().unwrap());
                deltas.extend(
                    text.iter()
                        .map(|piece| json!({"type": format!("{kind}_delta"), kind: piece})),
                );
                if let Some(signature) = block.get("signature") {
                    begin["signature"] = json!("");
                    deltas.push(json!({"type": "signature_delta", "signature": signature}));
                }
                if let Some(all) = block.get("citations").and_then(Value::as_array) {
                    begin["citations"] = json!([]);
                    deltas.extend(
                        all.iter()
                            .map(|one| json!({"type": "citations_delta", "citation": one})),
                    );
                }
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                begin["input"] = json!({});
                let input = pieces(&block["input"].to_string());
                deltas.extend(
                    input
                        .iter()
                        .map(|piece| json!({"type": "input_json_delta", "partial_json": piece})),
                );
            }
            _ => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begin}));
        events.push(json!({"type": "ping"}));
        events.extend(
            deltas.iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = json!({"stop_reason": answer["stop_reason"]});
    events.push(json!({"type": "message_delta", "delta": reason, "usage": answer["usage"]}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn chat(answer: &Value) -> Vec<Value> {
    let mut chunk = answer.clone();
    chunk["object"] = json!("chat.completion.chunk");
    chunk["usage"] = Value::Null;
    let mut events = Vec::new();
    for choice in answer["choices"].as_array().unwrap() {
        let mut deltas = Vec::new();
        for (key, value) in choice["message"].as_object().unwrap() {
            match (key.as_str(), value) {
                ("tool_calls", Value::Array(calls)) => {
                    for (index, call) in calls.iter().enumerate() {
                        let mut begin = call.clone();
                        begin["index"] = json!(index);
                        let text = match call.get("function") {
                            Some(function) => function["arguments"].as_str().unwrap(),
                            None => "",
                        };
                        if call.get("function").is_some() {
                            begin["function"]["arguments"] = json!("");
                        }
                        deltas.push(json!({"tool_calls": [begin]}));
                        deltas.extend(pieces(text).iter().map(|piece| {
                            json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                        }));
                    }
                }
                ("content" | "reasoning_content" | "refusal", Value::String(text)) => {
                    deltas.push(json!({key: ""}));
                    deltas.extend(pieces(text).iter().map(|piece| json!({key: piece})));
                }
                _ => deltas.push(json!({key: value})),
            }
        }
        for delta in deltas {
            let mut event = chunk.clone();
            event["choices"] =
                json!([{"index": choice["index"], "delta": delta, "finish_reason": null}]);
            events.push(event);
        }
        let mut end = choice.clone();
        end.as_object_mut().unwrap().remove("message");
        end["delta"] = json!({});
        let mut event = chunk.clone();
        event["choices"] = json!([end]);
        events.push(event);
    }
    let mut end = chunk.clone();
    end["choices"] = json!([]);
    end["usage"] = answer["usage"].clone();
    events.push(end);
    events
}

fn gemini(answer: &Value) -> Vec<Value> {
    let mut events = Vec::new();
    let candidate = &answer["candidates"][0];
    for part in candidate["content"]["parts"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let mut parts = vec![part.clone()];
        if let Some(text) = part["text"].as_str().filter(|text| !text.is_empty()) {
            let mut bare = part.clone();
            let signature = bare.as_object_mut().unwrap().remove("thoughtSignature");
            parts = pieces(text)
                .iter()
                .map(|piece| {
                    bare["text"] = json!(piece);
                    bare.clone()
                })
                .collect();
            if let Some(signature) = signature {
                bare["text"] = json!("");
                bare["thoughtSignature"] = signature;
                parts.push(bare);
            }
        }
        for part in parts {
            let role = &candidate["content"]["role"];
            let mut event = answer.clone();
            event["candidates"] = json!([{"content": {"role": role, "parts": [part]}}]);
            events.push(event);
        }
    }
    let mut end = answer.clone();
    // Some answers have no candidates.
    let content = end.pointer_mut("/candidates/0/content");
    if let Some(content) = content.and_then(Value::as_object_mut) {
        content.remove("parts");
    }
    events.push(end);
    events
}

fn bedrock(answer: &Value) -> Vec<Value> {
    let mut events = vec![json!({"messageStart": {"role": "assistant", "p": "ab"}})];
    let message = &answer["output"]["message"];
    for (index, block) in message["content"].as_array().unwrap().iter().enumerate() {
        let mut start = None;
        let mut deltas = Vec::new();
        if let Some(text) = block["text"].as_str() {
            deltas.extend(pieces(text).iter().map(|piece| json!({"text": piece})));
        } else if let Some(call) = block.get("toolUse") {
            let mut begin = call.clone();
            begin.as_object_mut().unwrap().remove("input");
            start = Some(json!({"toolUse": begin}));
            let input = pieces(&call["input"].to_string());
            deltas.extend(
                input
                    .iter()
                    .map(|piece| json!({"toolUse": {"input": piece}})),
            );
        } else if let Some(result) = block.get("toolResult") {
            let mut begin = result.clone();
            let content = begin.as_object_mut().unwrap().remove("content");
            start = Some(json!({"toolResult": begin}));
            deltas.push(json!({"toolResult": content}));
        } else {
            let thought = &block["reasoningContent"];
            let text = thought["reasoningText"]["text"].as_str().unwrap_or("");
            let mut all: Vec<Value> = pieces(text)
                .iter()
                .map(|piece| json!({"text": piece}))
                .collect();
            if let Some(signature) = thought["reasoningText"].get("signature") {
                all.push(json!({"signature": signature}));
            }
            if let Some(data) = thought.get("redactedContent") {
                all.push(json!({"redactedContent": data}));
            }
            deltas.extend(all.iter().map(|one| json!({"reasoningContent": one})));
        }
        if let Some(start) = start {
            events.push(
                json!({"contentBlockStart": {"contentBlockIndex": index, "start": start, "p": "a"}}),
            );
        }
        events.extend(deltas.iter().map(
            |delta| json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta, "p": "abc"}}),
        ));
        events.push(json!({"contentBlockStop": {"contentBlockIndex": index, "p": "a"}}));
    }
    events.push(json!({"messageStop": {"stopReason": answer["stopReason"], "p": "a"}}));
    let mut end = answer.clone();
    for key in ["output", "stopReason"] {
        end.as_object_mut().unwrap().remove(key);
    }
    events.push(json!({"metadata": end}));
    events
}

fn responses(answer: &Value) -> Vec<Value> {
    let mut begin = answer.clone();
    begin["output"] = json!([]);
    begin["status"] = json!("in_progress");
    let mut events = vec![json!({"type": "response.created", "response": begin})];
    for (at, item) in answer["output"].as_array().unwrap().iter().enumerate() {
        events.push(json!({"type": "response.output_item.added", "output_index": at, "item": {"type": item["type"], "id": item["id"]}}));
        events.push(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    let status = match answer["status"].as_str() {
        Some("incomplete") => "response.incomplete",
        _ => "response.completed",
    };
    // Some relays leave the output out of the last event.
    let mut end = answer.clone();
    end["output"] = json!([]);
    events.push(json!({"type": status, "response": end}));
    events
}

/// Recorded answers that were not streamed.
fn unstreamed(format: Format) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for exchange in data::exchanges(format.as_str()) {
        if let (200, Some(body)) = (exchange.status, &exchange.response) {
            let mut body = value(body.get());
            // Some hosts number calls in whole answers too.
            if format == Format::OpenAiChat {
                let calls = body["choices"][0]["message"].get_mut("tool_calls");
                for call in calls.and_then(Value::as_array_mut).into_iter().flatten() {
                    call.as_object_mut().unwrap().remove("index");
                }
            }
            all.push((exchange.file.clone(), body));
        }
    }
    all
}

#[test]
fn an_answer_cut_into_a_stream_is_the_same_answer() {
    for format in Format::PROVIDERS {
        let answers = unstreamed(format);
        assert!(answers.len() > 30);
        for (name, whole) in answers {
            let empty = format == Format::Gemini && whole["candidates"][0].get("content").is_none();
            let running = matches!(whole["status"].as_str(), Some("queued" | "in_progress"));
            if running || whole["output"].is_null() && format == Format::OpenAiResponses || empty {
                continue;
            }
            let (answer, _) = accumulated(format, &streamed(format, &whole));
            let body = answer
                .finish()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let (again, whole) = (
                transcript(format, &body),
                transcript(format, &whole.to_string()),
            );
            let values = |items: &[Item]| serde_json::to_value(items).unwrap();
            let (a, b) = (values(&whole.items), values(&again.items));
            assert!(a == b, "{format} {name}: {}", difference(&a, &b, "$"));
            assert_eq!(again.response, whole.response, "{name}");
        }
    }
}

/// What was cut off is a beginning of the whole, nothing in it is made up, and it says so.
fn check_prefix(format: Format, name: &str, events: &[String], cut: usize) {
    let (whole, _) = accumulated(format, events);
    let whole = transcript(format, &whole.finish_incomplete());
    let (part, _) = accumulated(format, &events[..cut]);
    let body = part.finish_incomplete();
    let some = transcript(format, &body);
    let begins = |event: &&String| event.contains("\"message_start\"");
    if events.iter().filter(begins).count() > 1 {
        // A new beginning voids what came before.
        return;
    }
    for (some, whole) in words(&some.items).iter().zip(words(&whole.items)) {
        // Arguments that came one by one are told by their pieces.
        let told = some.contains("jsonPath") || whole.starts_with(some.trim_end_matches("{}"));
        assert!(told, "{name} at {cut}: {some:?} of {whole:?}");
    }
    assert!(
        some.items.len() <= whole.items.len().max(1),
        "{name} at {cut}"
    );
    if !part.is_complete() && !name.starts_with("openai-error") {
        let finish = some.response.unwrap().finish;
        assert_eq!(
            finish,
            Some(FinishReason::Other("incomplete".into())),
            "{name} at {cut}"
        );
        assert!(matches!(part.finish(), Err(StreamError::Cut { .. })));
    }
    for (at, item) in some.items.iter().enumerate() {
        if let Item::FunctionCall(call) = item
            && call.status != Some(Status::Incomplete)
            && !part.is_complete()
        {
            let twin = whole.items.get(at);
            assert!(
                matches!(twin, Some(Item::FunctionCall(twin)) if twin.arguments == call.arguments),
                "{name} at {cut}: {call:?} is called whole"
            );
        }
    }
}

#[test]
fn a_stream_cut_anywhere_is_a_beginning_of_the_answer() {
    for one in recorded() {
        let step = (one.events.len() / 8).max(1);
        for cut in (0..one.events.len()).step_by(step) {
            check_prefix(one.format, &one.name, &one.events, cut);
        }
    }
}

fn cases() -> impl Strategy<Value = (usize, prop::sample::Index, prop::sample::Index)> {
    (
        0..1000_usize,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn made_streams_cut_anywhere((pick, cut, _) in cases()) {
        let format = Format::PROVIDERS[pick % Format::PROVIDERS.len()];
        static ALL: std::sync::OnceLock<Vec<Vec<(String, Value)>>> = std::sync::OnceLock::new();
        let all = ALL.get_or_init(|| Format::PROVIDERS.map(unstreamed).to_vec());
        let answers = &all[pick % Format::PROVIDERS.len()];
        let (name, whole) = &answers[(pick / Format::PROVIDERS.len()) % answers.len()];
        if format == Format::OpenAiResponses && whole["output"].is_null() {
            return Ok(());
        }
        let events = streamed(format, whole);
        check_prefix(format, name, &events, cut.index(events.len() + 1));
    }

    #[test]
    fn disorder_never_panics((pick, a, b) in cases(), text in "\\PC{0,40}", drop in any::<u64>()) {
        static ALL: std::sync::OnceLock<Vec<Recorded>> = std::sync::OnceLock::new();
        let all = ALL.get_or_init(recorded);
        let one = &all[pick % all.len()];
        let mut events: Vec<String> = one.events.iter().take(120).cloned().collect();
        let (a, b) = (a.index(events.len()), b.index(events.len()));
        events.swap(a, b);
        let repeated = events[a].clone();
        events.insert(b, repeated);
        let mut cut = events[b].clone();
        while !cut.is_char_boundary(cut.len() / 2) { cut.pop(); }
        cut.truncate(cut.len() / 2);
        events.insert(a, cut);
        events.insert(a, text);
        let mut kept = 0..64_u64;
        events.retain(|_| kept.next().is_none_or(|bit| drop >> bit & 3 != 0));
        for format in Format::PROVIDERS {
            let (answer, _) = accumulated(format, &events);
            let _ = answer.finish();
            transcript(format, &answer.finish_incomplete());
        }
    }
}
