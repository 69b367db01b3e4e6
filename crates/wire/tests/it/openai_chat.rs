//! OpenAI Chat Completions.

use contexture_ir::{Item, Transcript};
use contexture_testdata as data;
use contexture_wire::{Dialect, DocumentKind, Format, WireError, lift, lower};
use serde_json::{Value, json};

use crate::recorded::{Tally, check_exact, check_translations, name};

const CHAT: Format = Format::OpenAiChat;

#[test]
fn recorded_exchanges_come_back_exactly() {
    let mut tally = Tally::new();
    let (mut requests, mut responses, mut errors, mut streams) = (0, 0, 0, 0);
    for exchange in data::exchanges(CHAT.as_str()) {
        let label = name(&exchange);
        check_exact(
            CHAT,
            DocumentKind::Request,
            &label,
            exchange.request.get(),
            &mut tally,
        );
        requests += 1;
        match &exchange.response {
            Some(response) if exchange.status == 200 => {
                check_exact(
                    CHAT,
                    DocumentKind::Response,
                    &label,
                    response.get(),
                    &mut tally,
                );
                responses += 1;
            }
            Some(response) => {
                assert!(lift(CHAT, response.get()).is_err(), "{label}");
                errors += 1;
            }
            None => streams += 1,
        }
    }
    println!(
        "chat: {requests} requests, {responses} responses exact; {errors} error bodies, {streams} streams; losses {tally:?}"
    );
    assert_eq!((requests, responses, errors, streams), (45, 41, 2, 2));
}

#[test]
fn recorded_requests_are_valid_elsewhere() {
    for target in Format::PROVIDERS {
        if target != CHAT {
            check_translations(CHAT, target);
        }
    }
}

#[test]
fn ai_sdk_answers_come_back_exactly() {
    let mut tally = Tally::new();
    let mut exact = 0;
    for recording in data::ai_sdk("openai") {
        let Some(response) = &recording.response else {
            continue;
        };
        let body: Value = serde_json::from_str(response.get()).unwrap();
        if body["object"] == "chat.completion" {
            check_exact(
                CHAT,
                DocumentKind::Response,
                &recording.file,
                response.get(),
                &mut tally,
            );
            exact += 1;
        }
    }
    assert_eq!(exact, 1);
}

/// What a bare array of messages lifts to, as items.
fn items_of(messages: Value) -> Value {
    let lifted = lift(CHAT, &messages.to_string()).unwrap();
    let items: Vec<Value> = lifted
        .transcript
        .items
        .iter()
        .map(|item| plain(&item.to_json()))
        .collect();
    Value::Array(items)
}

/// An item without what only its own format understands.
fn plain(json: &str) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.remove("ctx:wire");
                members.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_str(json).unwrap();
    strip(&mut value);
    value
}

#[test]
fn messages_lift_to_items() {
    let check = |message: Value, expected: Value| assert_eq!(items_of(json!([message])), expected);
    check(
        json!({"role": "user", "content": "hi"}),
        json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]),
    );
    check(
        json!({"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}}]}),
        json!([{"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
            {"type": "input_file", "file_data": "data:audio/mpeg;base64,AA=="},
            {"type": "input_file", "file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}]}]),
    );
    check(
        json!({"role": "assistant", "reasoning_content": "hm", "content": "so", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]}),
        json!([
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}], "format": "openai-chat-v1"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\": 1}"}]),
    );
    check(
        json!({"role": "assistant", "content": null, "refusal": "no"}),
        json!([{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]),
    );
    check(
        json!({"role": "assistant", "content": null, "audio": {"id": "a", "data": "AA==", "expires_at": 1, "transcript": "said"}}),
        json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "said"}]}]),
    );
    check(
        json!({"role": "tool", "tool_call_id": "c1", "content": "42"}),
        json!([{"type": "function_call_output", "call_id": "c1", "output": "42"}]),
    );
    check(
        json!({"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        json!([{"type": "function_call_output", "call_id": "c1", "output": [
            {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}]),
    );
    check(
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]}),
        json!([{"type": "custom_tool_call", "call_id": "c1", "name": "sh", "input": "ls"}]),
    );
}

#[test]
fn the_older_function_shape_pairs() {
    let items = items_of(json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ]));
    assert_eq!(items[1]["call_id"], items[2]["call_id"]);
    assert_eq!(items[2]["output"], "1");
}

/// Some hosts send the older shape empty beside calls, or repeat a call in it: there is one call, whatever it says.
#[test]
fn the_older_function_shape_beside_calls_is_no_call() {
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let olders = [
        json!({"name": "", "arguments": ""}),
        json!({"name": "f", "arguments": "{}"}),
        json!({"name": null}),
        json!({}),
        json!(null),
    ];
    for older in olders {
        for calls in [json!([call]), json!([]), json!(null)] {
            let count = calls.as_array().map_or(0, Vec::len);
            if count == 0 && older["arguments"] == "{}" {
                continue;
            }
            let message = json!({"role": "assistant", "content": null, "function_call": older, "tool_calls": calls});
            let answer = json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
            let answer = answer.to_string();
            check_exact(
                CHAT,
                DocumentKind::Response,
                &answer,
                &answer,
                &mut Tally::new(),
            );
            let messages = json!([{"role": "user", "content": "hi"}, message]);
            let items = items_of(messages.clone());
            let calls = items.as_array().unwrap().iter();
            let calls = calls.filter(|item| item["type"] == "function_call");
            assert_eq!(calls.count(), count, "{items}");
            let text = messages.to_string();
            check_exact_messages(&text);
        }
    }
}

fn check_exact_messages(text: &str) {
    check_exact(CHAT, DocumentKind::Messages, text, text, &mut Tally::new());
}

/// Documents whose shape is not the usual one; each comes back as it was.
#[test]
fn unusual_shapes_come_back_exactly() {
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let messages = [
        json!([]),
        json!([{"role": "system", "content": "s", "name": "n"}, {"role": "developer", "content": [{"type": "text", "text": "d"}]},
               {"role": "user", "content": "u"}, {"role": "system", "content": "late"}]),
        json!([{"role": "user", "content": ""}, {"role": "assistant", "content": ""}, {"role": "user", "content": []}]),
        json!([{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}]),
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": "https://example.org/a.png"}], "name": "bob"}]),
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "x": 1}, "y": 2}]}]),
        json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "A", "format": "flac"}}]}]),
        json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "A", "format": "mpeg"}}]}]),
        json!([{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}, {"type": "file", "file": {"file_data": "data:image/png;base64,A"}}]}]),
        json!([{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "v"}}]}]),
        json!([{"role": "assistant", "content": "a"}, {"role": "assistant", "tool_calls": [call], "content": null},
               {"role": "assistant", "content": "b"}, {"role": "assistant", "content": "", "tool_calls": [call]}]),
        json!([{"role": "assistant", "tool_calls": [call], "name": "n", "x": [1]}, {"role": "tool", "tool_call_id": "c1", "content": "r", "name": "f"}]),
        json!([{"role": "assistant", "tool_calls": [call], "content": null}, {"role": "tool", "tool_call_id": "c1", "content": "", "name": "other"}]),
        json!([{"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 12345678901234567890u64}, "z": 1}, "index": 0}]}]),
        json!([{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, {"role": "assistant", "content": "x", "refusal": "no"}]),
        json!([{"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "no"}], "refusal": null}]),
        json!([{"role": "assistant", "content": null, "audio": {"id": "a"}}, {"role": "assistant", "content": null}]),
        json!([{"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "x"}]}]),
        json!([{"role": "assistant", "content": "x", "reasoning": "r", "reasoning_details": [{"type": "reasoning.encrypted", "data": "D"}]},
               {"role": "assistant", "content": null, "reasoning_content": "r", "tool_calls": [call]},
               {"role": "assistant", "content": null, "reasoning_details": [{}], "reasoning": null}]),
        json!([{"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": ""}}, {"role": "function", "name": "f", "content": null}]),
        json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
               {"role": "tool", "tool_call_id": "c1", "content": "out"}]),
        json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "x", "type": "newer", "newer": {}}]}]),
        json!([{"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "one"}]}, {"role": "tool", "tool_call_id": "c", "content": null}]),
    ];
    for messages in messages {
        let text = messages.to_string();
        check_exact_messages(&text);
        let request = json!({"model": "m", "messages": messages}).to_string();
        check_exact(
            CHAT,
            DocumentKind::Request,
            &request,
            &request,
            &mut Tally::new(),
        );
    }
}

#[test]
fn unusual_requests_come_back_exactly() {
    let messages = json!([{"role": "user", "content": "u"}]);
    for members in [
        json!({}),
        json!({"model": null, "tools": [], "tool_choice": null, "stop": null, "response_format": null, "stream_options": null}),
        json!({"model": "m", "max_tokens": 5, "stop": "x", "temperature": 0.1, "top_p": 1, "tool_choice": "auto"}),
        json!({"model": "m", "max_tokens": 5, "max_completion_tokens": 6, "stop": ["x"], "n": 2, "seed": 9007199254740993u64}),
        json!({"model": "m", "tools": [{"type": "function", "function": {"name": "f", "strict": null, "parameters": {"b": 1, "a": 2}}, "cache_control": {}},
                                       {"type": "custom", "custom": {"name": "c"}}],
               "tool_choice": {"type": "allowed_tools", "allowed_tools": {}}, "parallel_tool_calls": false}),
        json!({"model": "m", "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": {"type": "function", "function": {"name": "f"}}}),
        json!({"model": "m", "functions": [{"name": "f", "parameters": {}}], "function_call": "auto"}),
        json!({"model": "m", "tools": [{"function": {"name": "f", "parameters": {}}}, {"type": null, "function": {"name": "g"}}, {"x": 1}]}),
        json!({"model": "m", "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": true}}, "reasoning_effort": "default"}),
        json!({"model": "m", "response_format": {"type": "json_schema", "json_schema": {"schema_definition": {}}}, "reasoning_effort": "high"}),
        json!({"model": "m", "response_format": {"type": "json_object"}, "~odd": 1}),
    ] {
        let mut request = members;
        request["messages"] = messages.clone();
        let text = request.to_string();
        check_exact(CHAT, DocumentKind::Request, &text, &text, &mut Tally::new());
    }
}

#[test]
fn unusual_responses_come_back_exactly() {
    let message = json!({"role": "assistant", "content": "a", "annotations": [{"type": "url_citation"}], "refusal": null});
    for response in [
        json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": []}},
            {"index": 1, "message": message, "finish_reason": "length"}], "usage": {"prompt_tokens": 1, "x": {"y": 1.50}}}),
        json!({"choices": []}),
        json!({"choices": [{"message": {"content": "a"}}]}),
        json!({"object": "other", "choices": [{"index": 3, "message": {"role": "assistant", "content": null}, "finish_reason": null}], "usage": null}),
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}, "finish_reason": "function_call"}]}),
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "a", "tool_calls": []}, "finish_reason": "error", "native_finish_reason": "X"}]}),
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}], "usage": {}}),
        json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": null, "audio": {"id": "a", "data": "D", "transcript": "t"}}, "finish_reason": "stop"}]}),
    ] {
        let text = response.to_string();
        check_exact(
            CHAT,
            DocumentKind::Response,
            &text,
            &text,
            &mut Tally::new(),
        );
    }
}

/// Items lowered to messages; losses as `path kind`.
#[track_caller]
fn check_lower(dialect: &Dialect, items: Value, messages: Value, losses: &[&str]) {
    let transcript = Transcript {
        items: Item::parse_all(&items.to_string()).unwrap(),
        ..Transcript::default()
    };
    let lowered = lower(dialect, DocumentKind::Messages, &transcript);
    let written: Value = serde_json::from_str(&lowered.json).unwrap();
    assert_eq!(written, messages, "{items}");
    let told: Vec<String> = lowered
        .losses
        .iter()
        .map(|loss| format!("{} {}", loss.path, loss.what.as_str()))
        .collect();
    assert_eq!(told, losses, "{items}");
}

#[test]
fn items_lower_to_messages() {
    let chat = Dialect::of(CHAT);
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let native = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let said = |text: &str| json!({"type": "message", "role": "assistant", "content": text});
    // Parallel calls are one message; text behind a call goes before it.
    check_lower(
        &chat,
        json!([call("1"), call("2"), said("late")]),
        json!([{"role": "assistant", "content": "late", "tool_calls": [native("1"), native("2")]}]),
        &["items[2] order"],
    );
    // Messages stay apart unless calls bind them.
    check_lower(
        &chat,
        json!([said("a"), said("b"), call("1")]),
        json!([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": [native("1")]}]),
        &[],
    );
    // A picture in an output stands in a user message after the outputs.
    check_lower(
        &chat,
        json!([
            {"type": "function_call_output", "call_id": "1", "is_error": true, "output": [
                {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]},
            {"type": "function_call_output", "call_id": "2", "output": [{"type": "input_image", "image_url": "https://example.org/a.png"}]},
            {"type": "message", "role": "user", "content": "u"}]),
        json!([
            {"role": "tool", "tool_call_id": "1", "content": "see"},
            {"role": "tool", "tool_call_id": "2", "content": "[The output is attached to the next user message.]"},
            {"role": "user", "content": [
                {"type": "text", "text": "Output of tool call 1:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                {"type": "text", "text": "Output of tool call 2:"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]},
            {"role": "user", "content": "u"}]),
        &[
            "items[0].is_error field",
            "items[0].output[1] order",
            "items[1].output[0] order",
        ],
    );
    // Thoughts of others, bookkeeping, unknown items, opaque compactions.
    check_lower(
        &chat,
        json!([
            {"type": "reasoning", "summary": [], "encrypted_content": "E", "format": "openai-responses-v1"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]},
            {"type": "ctx:message", "x": 1},
            {"type": "anthropic:server_tool_use", "block": {}},
            {"type": "compaction", "summary": [{"type": "summary_text", "text": "before"}], "encrypted_content": "E"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ""}]}]),
        json!([{"role": "user", "content": "before"}]),
        &[
            "items[0] opaque",
            "items[1] item",
            "items[3] item",
            "items[4].encrypted_content opaque",
        ],
    );
    // What Chat cannot show leaves a sign, never an empty message.
    check_lower(
        &chat,
        json!([{"type": "message", "role": "user", "content": [{"type": "input_file", "file_data": "data:video/mp4;base64,AA=="}]},
               {"type": "message", "role": "user", "content": [{"type": "input_file", "file_data": "data:audio/wav;base64,AA=="},
                   {"type": "input_file", "file_data": "data:application/pdf;base64,AA=="}]}]),
        json!([{"role": "user", "content": "[Content that cannot be shown.]"},
               {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                   {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "file.pdf"}}]}]),
        &["items[0].content[0] part"],
    );
    // The host's words, where the model knows fewer roles.
    let older = Dialect {
        mid_system: false,
        developer_role: false,
        ..chat
    };
    check_lower(
        &older,
        json!([{"type": "message", "role": "user", "content": "u"}, {"type": "message", "role": "developer", "content": "d"}]),
        json!([{"role": "user", "content": "u"}, {"role": "user", "content": "<system>\nd\n</system>"}]),
        &["items[1] role"],
    );
}

#[test]
fn broken_documents_are_named() {
    for (text, expected) in [
        (
            "[{\"role\":\"robot\",\"content\":\"x\"}]",
            "openai-chat: `messages[0].role`: expected one of system, developer, user, assistant, tool, function, found robot",
        ),
        (
            "[{\"content\":\"x\"}]",
            "openai-chat: `messages[0]`: missing field `role`",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":5}]}",
            "openai-chat: `messages[0].content`: expected a string, null or an array of parts, found 5",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]}",
            "openai-chat: `messages[0].content[0]`: missing field `text`",
        ),
        (
            "{\"messages\":[{\"role\":\"tool\",\"content\":\"x\"}]}",
            "openai-chat: `messages[0]`: missing field `tool_call_id`",
        ),
        (
            "{\"messages\":[],\"temperature\":\"hot\"}",
            "openai-chat: `temperature`: expected a number, found \"hot\"",
        ),
        (
            "{\"messages\":[],\"tools\":[{\"type\":\"function\",\"function\":{}}]}",
            "openai-chat: `tools[0].function`: missing field `name`",
        ),
        (
            "{\"choices\":[{\"delta\":{}}]}",
            "openai-chat: `choices[0]`: missing field `message`",
        ),
    ] {
        let error = lift(CHAT, text).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
    for text in [
        "{}",
        "{\"error\":{}}",
        "5",
        "\"x\"",
        "null",
        "{\"input\":[]}",
    ] {
        let error = lift(CHAT, text).unwrap_err();
        assert!(
            matches!(error, WireError::WrongShape { .. }),
            "{text}: {error}"
        );
    }
}
