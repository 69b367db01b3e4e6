//! OpenAI Responses.

use contexture_ir::{FinishReason, Item, Role, Transcript};
use contexture_testdata as data;
use contexture_wire::{Dialect, DocumentKind, Format, WireError, lift, lower};
use serde_json::{Value, json};

use crate::recorded::{Tally, check_exact, check_translations, name};

const RESPONSES: Format = Format::OpenAiResponses;

#[test]
fn recorded_exchanges_come_back_exactly() {
    let mut tally = Tally::new();
    let (mut requests, mut responses, mut errors, mut streams) = (0, 0, 0, 0);
    for exchange in data::exchanges(RESPONSES.as_str()) {
        let label = name(&exchange);
        check_exact(
            RESPONSES,
            DocumentKind::Request,
            &label,
            exchange.request.get(),
            &mut tally,
        );
        requests += 1;
        match &exchange.response {
            Some(response) if exchange.status == 200 => {
                check_exact(
                    RESPONSES,
                    DocumentKind::Response,
                    &label,
                    response.get(),
                    &mut tally,
                );
                responses += 1;
            }
            Some(response) => {
                assert!(lift(RESPONSES, response.get()).is_err(), "{label}");
                errors += 1;
            }
            None => streams += 1,
        }
    }
    println!(
        "responses: {requests} requests, {responses} responses exact; {errors} error bodies, {streams} streams; losses {tally:?}"
    );
    assert_eq!((requests, responses, errors, streams), (86, 74, 2, 10));
}

#[test]
fn recorded_requests_are_valid_elsewhere() {
    for target in Format::PROVIDERS {
        if target != RESPONSES {
            check_translations(RESPONSES, target);
        }
    }
}

/// Bodies among the AI SDK's files that are no generation's.
const NOT_APPLICABLE: [&str; 10] = [
    "gpt-image-response-format-error.json",
    "openai-completion-text.json",
    "openai-embedding.json",
    "openai-error.1.json",
    "openai-image-edit.json",
    "openai-image.json",
    "openai-skill-create.json",
    "openai-transcription.json",
    "reasoning-model-legacy-parameter-error.json",
    "reasoning-model-temperature-error.json",
];

#[test]
fn ai_sdk_answers_come_back_exactly() {
    let mut tally = Tally::new();
    let (mut exact, mut refused) = (0, Vec::new());
    for recording in data::ai_sdk("openai")
        .into_iter()
        .chain(data::ai_sdk("open-responses"))
    {
        let Some(response) = &recording.response else {
            continue;
        };
        let body: Value = serde_json::from_str(response.get()).unwrap();
        match body["object"].as_str() {
            Some("chat.completion") => {}
            Some("response") => {
                check_exact(
                    RESPONSES,
                    DocumentKind::Response,
                    &recording.file,
                    response.get(),
                    &mut tally,
                );
                exact += 1;
            }
            _ => {
                assert!(
                    lift(RESPONSES, response.get()).is_err(),
                    "{}",
                    recording.file
                );
                refused.push(recording.file);
            }
        }
    }
    println!("ai sdk: {exact} responses exact, not applicable {refused:?}; losses {tally:?}");
    assert_eq!(refused, NOT_APPLICABLE);
    assert_eq!(exact, 31);
}

/// Arrays of items whose shape is not the usual one; each comes back as it was.
#[test]
fn unusual_shapes_come_back_exactly() {
    for items in [
        json!([]),
        json!([{"role": "system", "content": "s"}, {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]}, {"role": "user", "content": "u"}]),
        json!([{"role": "user", "content": null}, {"type": "message", "id": "msg_1", "role": "assistant", "content": null}, {"role": "user"}]),
        json!([{"role": "user", "content": ""}, {"role": "user", "content": []}, {"role": "user", "content": [{"type": "input_text", "text": ""}]}]),
        json!([{"role": "user", "content": [{"type": "input_text", "text": "one"}]}, {"type": "message", "role": "user", "content": "x", "status": "completed"}]),
        json!([{"role": "user", "content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}}]}]),
        json!([{"role": "user", "content": [{"type": "input_image", "image_url": "u"}, {"type": "input_image", "file_id": "f", "detail": "high", "image_url": null},
                {"type": "input_file", "file_data": "data:application/pdf;base64,A"}, {"type": "input_file", "file_url": "u"},
                {"type": "input_file", "file_data": "data:audio/mpeg;base64,A", "filename": "a.mp3"}, {"type": "input_newer", "x": 1.0}]}]),
        json!([{"role": "assistant", "content": "x"}, {"role": "assistant", "content": [{"type": "output_text", "text": "x"}], "status": "completed"}]),
        json!([{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
                "content": [{"type": "output_text", "text": "x", "annotations": [{"type": "url_citation"}], "logprobs": []}, {"type": "refusal", "refusal": "no"}]}]),
        json!([{"id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}, {"type": "message", "id": "odd", "role": "assistant", "content": "x", "status": null}]),
        json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{bad", "status": null, "namespace": "n"},
               {"type": "function_call", "id": "odd", "call_id": "c", "name": "f", "arguments": "", "status": "incomplete"},
               {"type": "function_call_output", "call_id": "c", "output": ""}, {"type": "function_call_output", "id": "fc_1", "call_id": "c", "output": [
                {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "u"}], "status": "completed"},
               {"type": "function_call_output", "call_id": "c", "output": []}]),
        json!([{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s", "x": 1}], "encrypted_content": "E", "status": "completed"},
               {"type": "reasoning", "summary": [], "content": null, "encrypted_content": null},
               {"type": "reasoning", "summary": null, "content": null, "encrypted_content": "E"},
               {"type": "reasoning", "id": "odd", "content": [{"type": "reasoning_text", "text": "t"}]},
               {"type": "reasoning", "id": "rs_2", "summary": [], "format": "anthropic-claude-v1", "signature": "S"}]),
        json!([{"type": "compaction", "id": "cmp_1", "encrypted_content": "E", "x": 1}, {"type": "compaction", "encrypted_content": "E"}]),
        json!([{"type": "item_reference", "id": "msg_1"}, {"id": "msg_2"}, {"id": "msg_3", "type": null}]),
        json!([{"type": "web_search_call", "id": "ws", "status": "searching", "action": {"a": 9007199254740993u64}}, {"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "x"},
               {"type": "custom_tool_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]}, {"type": "openrouter:datetime", "id": "x", "status": "completed"}]),
        json!([{"type": "tool_call", "id": "x", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "tool_call_output", "call_id": "c", "output": "x"},
               {"type": "ghost_snapshot", "ghost_commit": {}}]),
    ] {
        let text = items.to_string();
        check_exact(
            RESPONSES,
            DocumentKind::Messages,
            &text,
            &text,
            &mut Tally::new(),
        );
        let request = json!({"model": "m", "input": items}).to_string();
        check_exact(
            RESPONSES,
            DocumentKind::Request,
            &request,
            &request,
            &mut Tally::new(),
        );
        let response = json!({"id": "resp_1", "output": items}).to_string();
        check_exact(
            RESPONSES,
            DocumentKind::Response,
            &response,
            &response,
            &mut Tally::new(),
        );
    }
}

#[test]
fn unusual_requests_come_back_exactly() {
    for request in [
        json!({"model": "m", "input": "hello"}),
        json!({"input": ""}),
        json!({"model": "m", "instructions": "i", "input": "hello", "stream": true}),
        json!({"prompt": {"id": "p"}, "conversation": "c"}),
        json!({"prompt": {"id": "p"}}),
        json!({"model": "m", "instructions": null, "previous_response_id": "r", "tools": [], "tool_choice": null, "reasoning": {}, "text": {}}),
        json!({"model": null, "instructions": "", "input": null}),
        json!({"model": "m", "instructions": "i", "input": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}),
        json!({"model": "m", "input": [{"role": "developer", "content": "d"}], "max_output_tokens": 5, "temperature": 0.1, "top_p": 1, "store": false, "include": ["x"]}),
        json!({"model": "m", "input": [], "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "g", "parameters": null, "strict": null, "defer_loading": true},
                {"name": "h"}, {"type": null, "name": "i"}, {"type": "web_search", "x": 1}], "tool_choice": {"type": "web_search"}, "parallel_tool_calls": true}),
        json!({"model": "m", "input": [], "tools": [{"type": "function", "name": "f", "parameters": {"b": 1, "a": 2}, "strict": true}], "tool_choice": {"type": "function", "name": "f"}}),
        json!({"model": "m", "input": [], "tool_choice": "auto", "text": {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": true}, "verbosity": "low"},
                "reasoning": {"effort": "high", "summary": "auto", "context": "x", "generate_summary": null}}),
        json!({"model": "m", "input": [], "text": {"verbosity": "low"}, "reasoning": {"effort": null, "context": "x"}, "~odd": 1}),
        json!({"model": "m", "input": [], "text": {"format": {"type": "newer"}}, "reasoning": {"effort": "host's", "summary": null}}),
    ] {
        let text = request.to_string();
        check_exact(
            RESPONSES,
            DocumentKind::Request,
            &text,
            &text,
            &mut Tally::new(),
        );
    }
}

#[test]
fn instructions_are_lifted_from_both_places() {
    let lifted = lift(
        RESPONSES,
        r#"{"instructions":"a","input":[{"role":"developer","content":"b"},{"role":"user","content":"c"},{"role":"system","content":"d"}]}"#,
    )
    .unwrap();
    let shown: Vec<(Role, String)> = lifted
        .transcript
        .instructions
        .iter()
        .map(|message| {
            (
                message.role,
                message.content[0].as_text().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (Role::System, "a".to_owned()),
            (Role::Developer, "b".to_owned())
        ]
    );
    assert_eq!(lifted.transcript.items.len(), 2);
    // In a bare array every instruction is an item.
    let lowered = lower(
        &Dialect::of(RESPONSES),
        DocumentKind::Messages,
        &lifted.transcript,
    );
    let roles: Vec<Value> = serde_json::from_str::<Vec<Value>>(&lowered.json)
        .unwrap()
        .iter()
        .map(|item| item["role"].clone())
        .collect();
    assert_eq!(roles, ["system", "developer", "user", "system"]);
}

/// Items of no format in particular, lowered; losses as `path kind`.
#[track_caller]
fn check_lower(items: Value, written: Value, losses: &[&str]) {
    let transcript = Transcript {
        items: Item::parse_all(&items.to_string()).unwrap(),
        ..Transcript::default()
    };
    let lowered = lower(&Dialect::of(RESPONSES), DocumentKind::Messages, &transcript);
    assert_eq!(
        serde_json::from_str::<Value>(&lowered.json).unwrap(),
        written,
        "{items}"
    );
    let told: Vec<String> = lowered
        .losses
        .iter()
        .map(|loss| format!("{} {}", loss.path, loss.what.as_str()))
        .collect();
    assert_eq!(told, losses, "{items}");
}

#[test]
fn items_lower_to_items() {
    // Fields that are ours alone stay at home.
    check_lower(
        json!([
            {"type": "message", "role": "user", "ctx:x": 1, "content": [{"type": "input_image", "image_url": "u", "media_type": "image/png"}]},
            {"type": "function_call", "id": "call-7", "call_id": "c", "name": "f", "arguments": "{}", "status": "failed"},
            {"type": "function_call_output", "call_id": "c", "output": "x", "is_error": true},
            {"type": "ctx:message"},
            {"type": "acme:note"}]),
        json!([
            {"role": "user", "content": [{"type": "input_image", "image_url": "u", "detail": "auto"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "status": "incomplete"},
            {"type": "function_call_output", "call_id": "c", "output": "x"}]),
        &[
            "items[0].content[0].media_type field",
            "items[1].status value",
            "items[2].is_error field",
            "items[4] item",
        ],
    );
    // A model's message needs an id for the long form.
    check_lower(
        json!([
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}]},
            {"type": "message", "id": "other", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]),
        json!([
            {"role": "assistant", "content": "ab"},
            {"role": "assistant", "content": "no"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "annotations": [], "text": "a"}]}]),
        &["items[1].content[0] value"],
    );
    // Thoughts and compactions of others.
    check_lower(
        json!([
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}], "signature": "S", "format": "anthropic-claude-v1"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E", "format": "openai-responses-v1"},
            {"type": "compaction", "summary": [{"type": "summary_text", "text": "before"}], "encrypted_content": "E", "format": "anthropic-claude-v1"},
            {"type": "compaction", "summary": [{"type": "summary_text", "text": "before"}], "encrypted_content": "E", "format": "openai-responses-v1"},
            {"type": "message", "role": "user", "content": [{"type": "input_file", "file_data": "data:audio/mpeg;base64,A"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ""}]}]),
        json!([
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"},
            {"role": "user", "content": "before"},
            {"type": "compaction", "encrypted_content": "E"},
            {"role": "user", "content": "[Content that cannot be shown.]"}]),
        &[
            "items[0] opaque",
            "items[2].encrypted_content opaque",
            "items[2] role",
            "items[4].content[0] part",
        ],
    );
}

#[test]
fn why_it_ended_is_one_word() {
    for (body, expected) in [
        (
            json!({"status": "completed", "output": []}),
            Some(FinishReason::Stop),
        ),
        (
            json!({"status": "completed", "output": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}]}),
            Some(FinishReason::ToolCalls),
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}),
            Some(FinishReason::Length),
        ),
        (
            json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []}),
            Some(FinishReason::ContentFilter),
        ),
        (
            json!({"status": "failed", "output": []}),
            Some(FinishReason::Other("failed".into())),
        ),
        (json!({"status": "queued", "output": []}), None),
        (json!({"output": []}), None),
    ] {
        let lifted = lift(RESPONSES, &body.to_string()).unwrap();
        assert_eq!(
            lifted.transcript.response.unwrap().finish,
            expected,
            "{body}"
        );
    }
}

#[test]
fn broken_documents_are_named() {
    for (text, expected) in [
        (
            "[{\"role\":\"robot\",\"content\":\"x\"}]",
            "openai-responses: `[0].role`: expected `user`, `assistant`, `system` or `developer`, found robot",
        ),
        (
            "{\"input\":[{\"type\":\"function_call\"}]}",
            "openai-responses: `input[0]`: missing field `call_id`",
        ),
        (
            "{\"input\":5}",
            "openai-responses: `input`: expected an array of items, found 5",
        ),
        (
            "{\"output\":[{}]}",
            "openai-responses: `output[0]`: missing field `type`",
        ),
        (
            "{\"input\":[],\"max_output_tokens\":-1}",
            "openai-responses: `max_output_tokens`: expected a whole number, found -1",
        ),
    ] {
        let error = lift(RESPONSES, text).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
    for text in ["{}", "{\"error\":{}}", "5", "null", "{\"messages\":[]}"] {
        let error = lift(RESPONSES, text).unwrap_err();
        assert!(
            matches!(error, WireError::WrongShape { .. }),
            "{text}: {error}"
        );
    }
}

/// Every recorded answer of every format, written as an answer of the two OpenAI formats.
#[test]
fn answers_of_all_are_valid_answers_here() {
    for (target, schema) in [
        (Format::OpenAiChat, "openai.chat.response"),
        (RESPONSES, "openai.responses.response"),
    ] {
        let validator = data::Validator::new(&data::schema(schema));
        for format in Format::PROVIDERS {
            if format == target {
                continue;
            }
            let mut tally = Tally::new();
            let mut count = 0;
            for exchange in data::exchanges(format.as_str()) {
                let Some(response) = exchange
                    .response
                    .as_ref()
                    .filter(|_| exchange.status == 200)
                else {
                    continue;
                };
                let lifted = lift(format, response.get()).unwrap();
                let lowered = lower(
                    &Dialect::of(target),
                    DocumentKind::Response,
                    &lifted.transcript,
                );
                let again = lower(
                    &Dialect::of(target),
                    DocumentKind::Response,
                    &lifted.transcript,
                );
                assert_eq!(lowered, again);
                crate::recorded::tally(&lowered.losses, &mut tally);
                let body: Value = serde_json::from_str(&lowered.json).unwrap();
                let findings = validator.validation_errors(&body);
                assert!(
                    findings.is_empty(),
                    "{} to {target}: {findings:#?}\n{body}",
                    name(&exchange)
                );
                count += 1;
            }
            println!("{format} to {target}: {count} responses, losses {tally:?}");
        }
    }
}

/// A reference may go without a type. What is stored of it must be an item.
#[test]
fn a_reference_without_a_type_is_an_item() {
    for reference in [
        r#"{"id":"msg_1"}"#,
        r#"{"type":null,"role":null,"id":"msg_1"}"#,
    ] {
        let text = format!(r#"{{"model":"m","input":[{reference}]}}"#);
        let lifted = contexture_wire::lift(Format::OpenAiResponses, &text).unwrap();
        let item = &lifted.transcript.items[0];
        assert_eq!(item.to_json(), reference);
        assert_eq!(&contexture_ir::Item::parse(reference).unwrap(), item);
    }
}
