//! Cases of Amazon Bedrock Converse: every block, every option, and the losses that are named.

use contexture_ir::{Item, Part, ToolDefinition};
use contexture_wire::{
    Accumulator, Dialect, DocumentKind, Format, StreamError, StreamEvent, lift, lower, repair,
};
use serde_json::{Value, json};

use crate::recorded::{findings, validators, value};

const FORMAT: Format = Format::Bedrock;

fn messages(content: Value) -> Value {
    json!([{"role": "user", "content": content}])
}

/// Converts a document; returns it, and `path: kind` of each loss.
fn convert(from: Format, to: Format, document: &Value) -> (Value, Vec<String>) {
    let lifted = lift(from, &document.to_string()).unwrap();
    let lowered = lower(&Dialect::of(to), lifted.kind, &lifted.transcript);
    let losses = lowered.losses.iter();
    let losses = losses.map(|loss| format!("{}: {}", loss.path, loss.what.as_str()));
    (value(&lowered.json), losses.collect())
}

#[track_caller]
fn check_same(document: &Value) {
    let (again, losses) = convert(FORMAT, FORMAT, document);
    assert_eq!(again, *document);
    assert_eq!(losses, Vec::<String>::new());
}

#[test]
fn every_block_comes_back() {
    let user = [
        json!([{"text": "a"}, {"image": {"format": "png", "source": {"bytes": "AAAA"}}}]),
        json!([{"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://bucket/a.jpg", "bucketOwner": "123456789012"}}}}]),
        json!([{"document": {"format": "pdf", "name": "Report 1", "source": {"bytes": "AAAA"}, "context": "c", "citations": {"enabled": true}}}]),
        json!([{"document": {"name": "notes.txt", "source": {"text": "é"}}}]),
        json!([{"document": {"format": "txt", "name": "n", "source": {"content": [{"text": "a"}]}}}]),
        json!([{"document": {"format": "docx", "name": "n", "source": {"s3Location": {"uri": "s3://bucket/a"}}}}]),
        json!([{"video": {"format": "three_gp", "source": {"bytes": "AAAA"}}}]),
        json!([{"video": {"format": "mpg", "source": {"s3Location": {"uri": "s3://bucket/a"}}}}]),
        json!([{"audio": {"format": "m4a", "source": {"bytes": "AAAA"}, "error": {"message": "m"}}}]),
        json!([{"guardContent": {"text": {"text": "a", "qualifiers": ["query"]}}}, {"guardContent": {"text": {"text": "b"}}}]),
        json!([{"guardContent": {"image": {"format": "png", "source": {"bytes": "AAAA"}}}}]),
        json!([{"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}], "citations": {"enabled": true}}}]),
        json!([{"toolAddition": {"tool": {"type": "tool", "name": "f"}}}]),
        json!([{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}, {"cachePoint": {"type": "default", "ttl": "1h"}}]),
        json!([{"cachePoint": {"type": "default"}}, {"text": "a"}]),
        json!([{"searchResult": {"source": "s", "title": "t", "content": []}}, {"cachePoint": {"type": "default"}}, {"cachePoint": {"type": "default"}}]),
        json!([{"newBlock": {"x": 1}}]),
    ];
    for content in user {
        check_same(&messages(content));
    }
    let model = [
        json!([{"reasoningContent": {"reasoningText": {"text": "t", "signature": "S"}}}, {"text": "a"}]),
        json!([{"reasoningContent": {"reasoningText": {"text": ""}}}]),
        json!([{"reasoningContent": {"redactedContent": "UkVE"}}, {"cachePoint": {"type": "default"}}]),
        json!([{"reasoningContent": {"redactedContent": null}}]),
        json!([{"toolUse": {"toolUseId": "a.b:c", "name": "f", "input": {"x": 1}, "type": "tool_use"}}, {"cachePoint": {"type": "default"}}]),
        json!([{"toolUse": {"toolUseId": "c", "name": "f", "input": [1]}}]),
        json!([{"toolUse": {"toolUseId": "c", "name": "web", "input": {}, "type": "server_tool_use"}},
            {"toolResult": {"toolUseId": "c", "content": [{"json": {}}], "status": "success", "type": "web_result"}}, {"cachePoint": {"type": "default"}}]),
        json!([{"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": [{"title": "t", "location": {"web": {"url": "u"}}}]}}]),
        json!([{"image": {"format": "png", "source": {"bytes": "AAAA"}}}]),
    ];
    for content in model {
        check_same(&json!([
            {"role": "user", "content": [{"text": "x"}]},
            {"role": "assistant", "content": content},
        ]));
    }
}

#[test]
fn every_result_comes_back() {
    let call = json!({"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}]});
    for result in [
        json!({"toolUseId": "c", "content": [{"text": "a"}], "status": "error"}),
        json!({"toolUseId": "c", "content": [{"json": {"a": [1, 2.50]}}]}),
        json!({"toolUseId": "c", "content": [{"json": 1}, {"text": "a"}, {"cachePoint": {"type": "default"}}]}),
        json!({"toolUseId": "c", "content": []}),
        json!({"toolUseId": "c", "content": [{"image": {"format": "webp", "source": {"bytes": "AAAA"}}}], "type": "t"}),
        json!({"toolUseId": "c", "content": [{"document": {"format": "csv", "name": "n", "source": {"bytes": "AAAA"}}}, {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}}]}),
        json!({"toolUseId": "c", "content": [{"searchResult": {"source": "s", "title": "t", "content": [{"text": "x"}]}}]}),
    ] {
        let block = json!({"toolResult": result});
        let point = json!({"cachePoint": {"type": "default"}});
        for content in [
            json!([block.clone()]),
            json!([block.clone(), point.clone(), {"text": "and"}]),
            json!([{"text": "and"}, block.clone(), point.clone()]),
        ] {
            check_same(&json!([call.clone(), {"role": "user", "content": content}]));
        }
    }
}

#[test]
fn every_option_comes_back() {
    let schema = json!({"type": "json_schema", "structure": {"jsonSchema": {"schema": "{\"type\": \"object\"}", "name": "n", "description": "d"}}});
    for options in [
        json!({"inferenceConfig": {"maxTokens": 5, "temperature": 0.5, "topP": 0.9, "stopSequences": ["x"]}}),
        json!({"inferenceConfig": {}, "system": []}),
        json!({"inferenceConfig": {"stopSequences": [], "newOption": 1}}),
        json!({"system": [{"text": "a"}, {"cachePoint": {"type": "default"}}, {"guardContent": {"text": {"text": "b"}}}]}),
        json!({"toolConfig": {"tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}, "strict": true}}, {"cachePoint": {"type": "default"}}], "toolChoice": {"tool": {"name": "f"}}}}),
        json!({"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}, {"cachePoint": {"type": "default"}}], "toolChoice": {"any": {}}}}),
        json!({"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"properties": {}}}}}], "toolChoice": {"auto": {}}, "more": 1}}),
        json!({"toolConfig": {"tools": []}}),
        json!({"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_k": 3}}),
        json!({"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}),
        json!({"additionalModelRequestFields": {"thinking": {"type": "adaptive"}, "reasoning_effort": "low"}}),
        json!({"additionalModelRequestFields": {"reasoning_effort": "high"}, "outputConfig": {"effort": "low"}}),
        json!({"additionalModelRequestFields": {"reasoning_effort": "high"}}),
        json!({"additionalModelRequestFields": {"reasoning_effort": 3}}),
        json!({"additionalModelRequestFields": {}}),
        json!({"outputConfig": {"textFormat": schema, "effort": "medium"}}),
        json!({"outputConfig": {"textFormat": {"type": "other", "structure": {}}}}),
        json!({"outputConfig": {"effort": 3}}),
        json!({"outputConfig": {}}),
        json!({"guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1", "trace": "enabled"}, "performanceConfig": {"latency": "optimized"},
            "promptVariables": {"a": {"text": "b"}}, "additionalModelResponseFieldPaths": ["/stop_sequence"], "requestMetadata": {"k": "v"}, "serviceTier": {"type": "flex"}}),
        json!({"modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}),
    ] {
        let mut request = options;
        request["messages"] = messages(json!([{"text": "x"}]));
        check_same(&request);
    }
}

#[test]
fn every_answer_comes_back() {
    let message = json!({"role": "assistant", "content": [{"text": "a"}]});
    let usage = json!({"inputTokens": 1, "outputTokens": 2, "totalTokens": 9, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 2, "cacheDetails": [{"ttl": "1h", "inputTokens": 2}]});
    for word in [
        "end_turn",
        "tool_use",
        "max_tokens",
        "stop_sequence",
        "guardrail_intervened",
        "content_filtered",
        "malformed_model_output",
        "malformed_tool_use",
        "model_context_window_exceeded",
        "new_reason",
    ] {
        check_same(
            &json!({"output": {"message": message}, "stopReason": word, "usage": usage, "metrics": {"latencyMs": 3},
            "additionalModelResponseFields": {"stop_sequence": "x"}, "trace": {"guardrail": {}}, "performanceConfig": {"latency": "standard"}, "serviceTier": {"type": "default"}}),
        );
    }
    check_same(
        &json!({"output": {"message": {"role": "assistant", "content": [], "more": 1}, "more": 2}}),
    );
    let document = json!({"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 3}});
    let response = lift(FORMAT, &document.to_string()).unwrap().transcript;
    let usage = response.response.unwrap().usage.unwrap();
    assert_eq!(
        (
            usage.input_tokens,
            usage.total_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens
        ),
        (Some(7), Some(9), Some(4), Some(2))
    );
}

#[test]
fn cache_points_leave_the_items_as_they_are() {
    let with = json!([{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}]);
    let without = json!([{"text": "a"}, {"text": "b"}]);
    let hash = |content: Value| {
        let items = lift(FORMAT, &messages(content).to_string()).unwrap();
        let [item] = items.transcript.items.as_slice() else {
            panic!("one message")
        };
        contexture_ir::meaning_hash(item)
    };
    assert_eq!(hash(with.clone()), hash(without));
    let (_, losses) = convert(FORMAT, Format::Anthropic, &messages(with));
    assert_eq!(losses, ["items[0].content[0].(cachePoint): field"]);
}

#[test]
fn what_bedrock_cannot_say_is_named() {
    let request = json!({"model": "m", "max_tokens": 9, "temperature": 1, "tool_choice": {"type": "none"},
    "tools": [{"name": "ns.f", "input_schema": {}}, {"type": "web_search_20250305", "name": "web_search"}],
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": " "}, {"type": "image", "source": {"type": "url", "url": "https://e.org/a.png"}}, {"type": "text", "text": "x"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "S"}, {"type": "tool_use", "id": "c", "name": "ns.f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": ""},
            {"type": "document", "title": "a/b.json", "source": {"type": "base64", "media_type": "application/json", "data": "e30="}}]},
    ]});
    let (written, losses) = convert(Format::Anthropic, FORMAT, &request);
    assert_eq!(
        losses,
        [
            "tools[0].name: value",
            "tools[0].parameters: value",
            "tools[1]: tool",
            "options.tool_choice: tool",
            "instructions[0].content[0].cache_control: field",
            "items[0].content[0]: part",
            "items[0].content[1]: part",
            "items[1]: item",
            "items[1].signature: opaque",
            "items[2].name: value",
            "items[3].output: value",
            "items[4].content[0].media_type: value",
            "items[4].content[0].filename: value",
        ]
    );
    assert_eq!(
        findings(validators(FORMAT), &written.to_string()),
        Vec::<String>::new()
    );
    assert_eq!(
        written["inferenceConfig"],
        json!({"maxTokens": 9, "temperature": 1})
    );
    assert_eq!(
        written["messages"][2]["content"],
        json!([{"toolResult": {"toolUseId": "c", "content": [{"text": "(no output)"}]}},
            {"document": {"format": "txt", "name": "a-b-json", "source": {"bytes": "e30="}}}])
    );
}

#[test]
fn thinking_is_written_where_the_model_takes_it() {
    let request = |model: &str| json!({"model": model, "max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 2048}, "messages": [{"role": "user", "content": "x"}]});
    let claude = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
    let (written, losses) = convert(Format::Anthropic, FORMAT, &request(claude));
    assert_eq!(
        written["additionalModelRequestFields"],
        json!({"thinking": {"type": "enabled", "budget_tokens": 2048}})
    );
    assert_eq!(losses, Vec::<String>::new());
    let (_, losses) = convert(Format::Anthropic, FORMAT, &request("amazon.nova-pro-v1:0"));
    assert_eq!(losses, ["options.reasoning.budget_tokens: option"]);
    let chat = |model: &str| json!({"model": model, "reasoning_effort": "low", "messages": [{"role": "user", "content": "x"}]});
    let (written, _) = convert(Format::OpenAiChat, FORMAT, &chat("openai.gpt-oss-120b-1:0"));
    assert_eq!(
        written["additionalModelRequestFields"],
        json!({"reasoning_effort": "low"})
    );
    let (written, _) = convert(Format::OpenAiChat, FORMAT, &chat(claude));
    assert_eq!(written["outputConfig"], json!({"effort": "low"}));
}

#[test]
fn a_request_becomes_one_of_anthropic_and_back() {
    let request = json!({
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}}}], "toolChoice": {"tool": {"name": "f"}}},
        "system": [{"text": "s"}],
        "messages": [
            {"role": "user", "content": [{"text": "x"}, {"image": {"format": "png", "source": {"bytes": "AAAA"}}}]},
            {"role": "assistant", "content": [{"text": "a"}, {"toolUse": {"toolUseId": "c", "name": "f", "input": {"q": 1}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "r"}], "status": "error"}}, {"text": "go on"}]},
        ],
        "inferenceConfig": {"maxTokens": 5, "temperature": 0.5, "topP": 0.9, "stopSequences": ["x"]},
    });
    let (there, losses) = convert(FORMAT, Format::Anthropic, &request);
    assert_eq!(losses, ["model: value"]);
    assert_eq!(there["messages"][2]["content"][0]["is_error"], json!(true));
    let (back, losses) = convert(Format::Anthropic, FORMAT, &there);
    assert_eq!((back, losses), (request, vec![]));
}

#[test]
fn histories_are_repaired_for_the_provider() {
    let items = r#"[{"type":"function_call","call_id":"a b","name":"f","arguments":"{}"},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":" "}]}]"#;
    let transcript = lift(Format::Items, items).unwrap().transcript;
    let refs: Vec<&Item> = transcript.items.iter().collect();
    let rules = contexture_wire::RepairRules::for_format(FORMAT);
    let repaired = repair(&refs, &rules).into_items();
    let transcript = contexture_ir::Transcript {
        items: repaired,
        ..Default::default()
    };
    let lowered = lower(&Dialect::of(FORMAT), DocumentKind::Request, &transcript);
    let written = value(&lowered.json);
    let roles: Vec<&str> = written["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let call = &written["messages"][1]["content"][0]["toolUse"];
    let result = &written["messages"][2]["content"][0]["toolResult"];
    assert_eq!(call["toolUseId"], result["toolUseId"]);
    assert!(
        call["toolUseId"]
            .as_str()
            .unwrap()
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    );
    assert_eq!(
        findings(validators(FORMAT), &lowered.json),
        Vec::<String>::new()
    );
}

#[test]
fn what_other_formats_can_read_is_read() {
    let content = json!([
        {"document": {"format": "md", "name": "n", "source": {"text": "é"}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://bucket/a"}}}},
        {"guardContent": {"text": {"text": "guarded"}}},
    ]);
    let lifted = lift(FORMAT, &messages(content.clone()).to_string()).unwrap();
    let [Item::Message(message)] = lifted.transcript.items.as_slice() else {
        panic!("one message")
    };
    let Part::InputFile(file) = &message.content[0] else {
        panic!("a file")
    };
    assert_eq!(
        file.file_data.as_deref(),
        Some("data:text/markdown;base64,w6k=")
    );
    let Part::InputImage(image) = &message.content[1] else {
        panic!("a picture")
    };
    assert_eq!(image.image_url.as_deref(), Some("s3://bucket/a"));
    let (written, losses) = convert(FORMAT, Format::Anthropic, &messages(content));
    assert_eq!(
        losses,
        [
            "items[0].content[0].media_type: value",
            "items[0].content[1]: part",
            "items[0].content[2].guardContent: field",
        ]
    );
    assert_eq!(written[0]["content"][1]["text"], json!("guarded"));
    let tools = json!({"messages": [], "toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}});
    let lifted = lift(FORMAT, &tools.to_string()).unwrap().transcript;
    assert!(
        matches!(&lifted.tools[..], [ToolDefinition::Provider(tool)] if tool.kind == "nova_grounding")
    );
}

fn stream(events: &[Value]) -> (Accumulator, Vec<StreamEvent>) {
    let mut answer = Accumulator::new(FORMAT).unwrap();
    let said = events.iter();
    let said = said.flat_map(|event| answer.push(&event.to_string()).unwrap());
    let said = said.collect();
    (answer, said)
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta, "p": "abc"}})
}

#[test]
fn citations_redactions_and_pictures_are_streamed() {
    let stop = |index: u64| json!({"contentBlockStop": {"contentBlockIndex": index}});
    let (answer, _) = stream(&[
        json!({"messageStart": {"role": "assistant"}}),
        delta(0, json!({"reasoningContent": {"redactedContent": "QQ=="}})),
        delta(0, json!({"reasoningContent": {"redactedContent": "Qg=="}})),
        stop(0),
        delta(1, json!({"text": "See "})),
        delta(1, json!({"citation": {"title": "t"}})),
        delta(1, json!({"text": "there"})),
        stop(1),
        json!({"contentBlockStart": {"contentBlockIndex": 2, "start": {"image": {"format": "png"}}}}),
        delta(2, json!({"image": {"source": {"bytes": "AAAA"}}})),
        stop(2),
        delta(3, json!({"text": ""})),
        stop(3),
        json!({"messageStop": {"stopReason": "end_turn", "additionalModelResponseFields": {"a": 1}}}),
        json!({"metadata": {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}}}),
    ]);
    assert_eq!(
        value(&answer.finish().unwrap()),
        json!({"output": {"message": {"role": "assistant", "content": [
                {"reasoningContent": {"redactedContent": "QUI="}},
                {"citationsContent": {"content": [{"text": "See there"}], "citations": [{"title": "t"}]}},
                {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
            ]}},
            "stopReason": "end_turn", "additionalModelResponseFields": {"a": 1},
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}})
    );
}

#[test]
fn input_of_a_call_without_its_start_is_kept() {
    let (answer, _) = stream(&[
        json!({"messageStart": {"role": "assistant"}}),
        delta(0, json!({"toolUse": {"input": "{\"a\":1}"}})),
    ]);
    let body = answer.finish_incomplete();
    let lifted = lift(FORMAT, &body).unwrap().transcript;
    assert!(
        matches!(&lifted.items[..], [Item::FunctionCall(call)] if call.arguments == "{\"a\":1}"),
        "{body}"
    );
}

#[test]
fn exceptions_and_errors_are_failures() {
    let start = json!({"messageStart": {"role": "assistant"}});
    for (event, kind) in [
        (
            json!({"throttlingException": {"message": "slow"}}),
            "throttlingException",
        ),
        (
            json!({"modelStreamErrorException": {"message": "slow", "originalStatusCode": 500}}),
            "modelStreamErrorException",
        ),
        (
            json!({"error": {"type": "InternalFailure", "message": "slow"}}),
            "InternalFailure",
        ),
    ] {
        let (answer, said) = stream(&[start.clone(), delta(0, json!({"text": "a"})), event]);
        let Some(StreamEvent::Failed(failure)) = said.last() else {
            panic!("{said:?}")
        };
        assert_eq!(
            (failure.kind.as_str(), failure.message.as_str()),
            (kind, "slow")
        );
        assert!(matches!(answer.finish(), Err(StreamError::Failed(_))));
        let body = answer.finish_incomplete();
        assert_eq!(lift(FORMAT, &body).unwrap().transcript.items[0].text(), "a");
    }
}

#[test]
fn a_cut_call_keeps_the_text_that_came() {
    let call = |kind: &str| json!({"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": {"toolUseId": "c", "name": "f", "type": kind}}}});
    let input = delta(0, json!({"toolUse": {"input": "{\"a\":"}}));
    let (answer, _) = stream(&[call("tool_use"), input.clone()]);
    let items = lift(FORMAT, &answer.finish_incomplete())
        .unwrap()
        .transcript
        .items;
    let [Item::FunctionCall(call_item)] = items.as_slice() else {
        panic!("{items:?}")
    };
    assert_eq!(call_item.arguments, "{\"a\":");
    assert_eq!(call_item.status, Some(contexture_ir::Status::Incomplete));
    // A tool of the provider's own that was cut off is sent to nobody.
    let (answer, _) = stream(&[call("server_tool_use"), input]);
    let lifted = lift(FORMAT, &answer.finish_incomplete()).unwrap();
    assert_eq!(lifted.transcript.items[0].kind(), "ctx:unfinished");
    let again = lower(
        &Dialect::of(FORMAT),
        DocumentKind::Response,
        &lifted.transcript,
    );
    assert!(!again.json.contains("ctx:unfinished"), "{}", again.json);
}
