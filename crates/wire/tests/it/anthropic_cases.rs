//! Anthropic's rules, case by case.

use contexture_ir::{Item, Part};
use contexture_wire::{Dialect, DocumentKind, Format, LossKind, lift, lower};
use serde_json::{Value, json};

use crate::recorded::{findings, validators, value};

const FORMAT: Format = Format::Anthropic;

/// Items that a message array lifts to.
fn lifted(messages: &Value) -> Vec<Value> {
    let lifted = lift(FORMAT, &messages.to_string()).unwrap();
    lifted
        .transcript
        .items
        .iter()
        .map(|item| value(&item.to_json()))
        .collect()
}

/// Items in, messages and losses out.
fn lowered_with(items: &Value, dialect: &Dialect) -> (Value, Vec<(String, LossKind)>) {
    let items = Item::parse_all(&items.to_string()).unwrap();
    let transcript = contexture_ir::Transcript {
        items,
        ..Default::default()
    };
    let lowered = lower(dialect, DocumentKind::Messages, &transcript);
    let losses = lowered
        .losses
        .into_iter()
        .map(|loss| (loss.path, loss.what))
        .collect();
    (value(&lowered.json), losses)
}

fn lowered(items: &Value) -> (Value, Vec<(String, LossKind)>) {
    lowered_with(items, &Dialect::of(FORMAT))
}

fn check(items: Value, messages: Value, losses: &[(&str, LossKind)]) {
    let (found, told) = lowered(&items);
    assert_eq!(found, messages, "from {items}");
    let told: Vec<(&str, LossKind)> = told.iter().map(|(p, k)| (p.as_str(), *k)).collect();
    assert_eq!(told, losses, "from {items}");
    let request = json!({"model": "m", "max_tokens": 1, "messages": found});
    if found.as_array().is_some_and(|list| !list.is_empty()) {
        let found = findings(validators(FORMAT), &request.to_string());
        assert_eq!(found, Vec::<String>::new());
    }
}

fn exact(messages: Value) {
    let lifted = lift(FORMAT, &messages.to_string()).unwrap();
    let dialect = Dialect {
        mid_system: true,
        ..Dialect::of(FORMAT)
    };
    let lowered = lower(&dialect, DocumentKind::Messages, &lifted.transcript);
    assert_eq!(value(&lowered.json), messages);
    assert_eq!(lowered.losses, Vec::new(), "{messages}");
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

#[test]
fn messages_of_every_shape_come_back() {
    for messages in [
        json!([{"role": "user", "content": "hi"}]),
        json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]),
        json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]),
        json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "pre"}]),
        json!([{"role": "user", "content": "a", "~odd": 1, "clear_at": "never"}]),
        json!([{"role": "user", "content": [{"type": "text", "text": "a", "~text": 1,
            "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}]),
        json!([{"role": "user", "content": "a"}, {"role": "system", "content": "s"},
            {"role": "system", "content": [{"type": "text", "text": "t"}]}]),
        json!([{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}, "transformations": {}},
            {"type": "image", "source": {"type": "url", "url": "gs://x", "new": [1]}}]}]),
        json!([{"role": "user", "content": [
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
                "title": "t.pdf", "context": "c", "citations": {"enabled": true}},
            {"type": "document", "source": {"type": "url", "url": "https://example.org/a"}},
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "é"}},
            {"type": "document", "source": {"type": "file", "file_id": "file_2"}},
            {"type": "document", "source": {"type": "content", "content": "plain"}},
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
            {"type": "search_result", "source": "s", "title": "t", "content": []},
            {"type": "container_upload", "file_id": "file_3"}]}]),
        json!([{"role": "assistant", "content": [
            {"type": "thinking", "thinking": "one", "signature": "s1"},
            {"type": "redacted_thinking", "data": "enc"},
            {"type": "thinking", "thinking": "", "signature": "s2"},
            {"type": "text", "text": "a", "citations": [{"type": "char_location"}]},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": 12345678901234567890u64},
                "caller": {"type": "direct"}},
            {"type": "text", "text": "b"},
            {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "srv", "content": []},
            {"type": "mcp_tool_use", "id": "m", "name": "n", "server_name": "s", "input": {}},
            {"type": "container_upload", "file_id": "file_3"},
            {"type": "new_output", "x": 1},
            {"type": "image", "source": {"type": "url", "url": "https://example.org"}},
            {"type": "tool_use", "id": "t2", "name": "g", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "plain", "is_error": false},
                {"type": "tool_result", "tool_use_id": "t2", "is_error": true, "content": [
                    {"type": "text", "text": "x"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AA=="}},
                    {"type": "tool_reference", "tool_name": "g"}],
                    "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "and"}]},
            {"role": "assistant", "content": [{"type": "server_tool_use", "id": "z", "name": "n", "input": {}}]},
            {"role": "assistant", "content": [{"type": "server_tool_use", "id": "y", "name": "n", "input": {}}]}]),
        json!([{"role": "user", "content": [
            {"type": "text", "text": "before"},
            {"type": "tool_result", "tool_use_id": "t1"},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "x"}]},
            {"type": "tool_result", "tool_use_id": "t3", "content": []},
            {"type": "tool_result", "tool_use_id": "t4", "content": ""},
            {"type": "tool_use", "id": "odd", "name": "n", "input": {}}]}]),
        json!([{"role": "assistant", "content": [
            {"type": "compaction", "content": "what was", "encrypted_content": "e", "signature": "s"},
            {"type": "compaction", "content": null}, {"type": "text", "text": "a"}]}]),
    ] {
        exact(messages);
    }
}

#[test]
fn blocks_become_items_in_order() {
    let items = lifted(&json!([{"role": "assistant", "content": [
        {"type": "text", "text": "a"}, {"type": "text", "text": "b"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"z": 1,  "a": 2}},
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "web_fetch_tool_result", "tool_use_id": "x", "content": {}},
        {"type": "compaction", "content": "sum"}]}]));
    let kinds: Vec<&str> = items
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "function_call",
            "reasoning",
            "anthropic:web_fetch_tool_result",
            "compaction"
        ]
    );
    assert_eq!(
        items[0]["content"][1],
        json!({"type": "output_text", "text": "b"})
    );
    assert_eq!(items[1]["arguments"], json!("{\"z\":1,\"a\":2}"));
    assert_eq!(items[2]["format"], json!("anthropic-claude-v1"));
    assert_eq!(items[4]["summary"][0]["text"], json!("sum"));
}

#[test]
fn arguments_are_the_slice_as_it_was_written() {
    let text = r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a" : 1e2, "a":2, "n":12345678901234567890123}}]}]"#;
    let lifted = lift(FORMAT, text).unwrap();
    let Some(Item::FunctionCall(call)) = lifted.transcript.items.first() else {
        panic!("{:?}", lifted.transcript.items);
    };
    assert_eq!(
        call.arguments,
        r#"{"a" : 1e2, "a":2, "n":12345678901234567890123}"#
    );
    let lowered = lower(
        &Dialect::of(FORMAT),
        DocumentKind::Messages,
        &lifted.transcript,
    );
    assert!(lowered.json.contains(&call.arguments), "{}", lowered.json);
}

#[test]
fn runs_merge_and_results_lead() {
    check(
        json!([user("a"), user("b"), {"type": "message", "role": "assistant", "content": "c"},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": ""},
            {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{\"x\":1}"},
            {"type": "function_call_output", "call_id": "1", "output": "r1"},
            user("wait"),
            {"type": "function_call_output", "call_id": "2", "output": "r2", "is_error": true}]),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "c"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {}},
                {"type": "tool_use", "id": "2", "name": "f", "input": {"x": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "content": "r1"},
                {"type": "tool_result", "tool_use_id": "2", "content": "r2", "is_error": true},
                {"type": "text", "text": "wait"}]}]),
        &[("items[7]", LossKind::Order)],
    );
}

#[test]
fn what_the_provider_refuses_is_mended_or_told() {
    check(
        json!([user(" "), user("")]),
        json!([]),
        &[
            ("items[0].content[0]", LossKind::Part),
            ("items[1].content[0]", LossKind::Part),
        ],
    );
    check(
        json!([{"type": "function_call", "call_id": "a|b", "name": "f", "arguments": "{nope"},
            {"type": "function_call_output", "call_id": "a|b", "output": "", "is_error": true}]),
        json!([
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a_b_7e94276b", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a_b_7e94276b",
                "content": "(no output)", "is_error": true}]}]),
        &[
            ("items[0].call_id", LossKind::Value),
            ("items[0].arguments", LossKind::Value),
            ("items[1].call_id", LossKind::Value),
            ("items[1].output", LossKind::Value),
        ],
    );
}

#[test]
fn reasoning_goes_back_to_its_maker_only() {
    check(
        json!([{"type": "reasoning", "summary": [], "encrypted_content": "x", "format": "openai-responses-v1"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}],
                "signature": "s", "format": "google-gemini-v1"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}],
                "format": "anthropic-claude-v1"},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}],
                "signature": "s", "format": "anthropic-claude-v1"},
            {"type": "compaction", "format": "openai-responses-v1", "encrypted_content": "x",
                "summary": [{"type": "summary_text", "text": "so far"}]},
            {"type": "ctx:message", "id": "m"}, {"type": "item_reference", "id": "r"}]),
        json!([{"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}]},
            {"role": "user", "content": [{"type": "text", "text": "so far"}]}]),
        &[
            ("items[0]", LossKind::Item),
            ("items[0].encrypted_content", LossKind::Opaque),
            ("items[1]", LossKind::Item),
            ("items[1].signature", LossKind::Opaque),
            ("items[2]", LossKind::Item),
            ("items[4].encrypted_content", LossKind::Opaque),
            ("items[6]", LossKind::Item),
        ],
    );
}

#[test]
fn media_are_written_as_the_provider_takes_them() {
    let file = |field: &str, value: &str| json!({"type": "input_file", field: value});
    let image = |url: &str| json!({"type": "input_image", "image_url": url});
    let message = |part: Value| json!([{"type": "message", "role": "user", "content": [part]}]);
    for (part, block) in [
        (
            image("data:image/png;base64,AA=="),
            json!({"type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}),
        ),
        (
            image("https://e.org/x"),
            json!({"type": "image", "source": {"type": "url", "url": "https://e.org/x"}}),
        ),
        (
            file("file_data", "data:text/plain;base64,aGk="),
            json!({"type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}),
        ),
        (
            file("file_data", "data:text/plain;charset=utf-8;base64,aGk"),
            json!({"type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "hi"}}),
        ),
        (
            file("file_data", "data:application/pdf;base64,AA=="),
            json!({"type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}),
        ),
        (
            file("file_data", "data:image/webp;base64,AA=="),
            json!({"type": "image",
            "source": {"type": "base64", "media_type": "image/webp", "data": "AA=="}}),
        ),
        (
            file("file_url", "https://e.org/x.pdf"),
            json!({"type": "document",
            "source": {"type": "url", "url": "https://e.org/x.pdf"}}),
        ),
        (
            file("file_id", "file_abc"),
            json!({"type": "document",
            "source": {"type": "file", "file_id": "file_abc"}}),
        ),
    ] {
        check(
            message(part),
            json!([{"role": "user", "content": [block]}]),
            &[],
        );
    }
    for part in [
        image("data:image/svg+xml;base64,AA=="),
        image("gs://bucket/x.png"),
        file("file_data", "data:audio/mp3;base64,AA=="),
        file("file_data", "AAAA"),
        file("file_id", "file-openai"),
        json!({"type": "input_image"}),
        json!({"type": "openai:new"}),
    ] {
        check(
            message(part),
            json!([]),
            &[("items[0].content[0]", LossKind::Part)],
        );
    }
}

#[test]
fn the_hosts_words_inside_a_history() {
    let items = json!([user("a"), {"type": "message", "role": "developer", "content": "be </system> brief"}]);
    check(
        items.clone(),
        json!([{"role": "user", "content": [{"type": "text", "text": "a"},
            {"type": "text", "text": "<system>\nbe &lt;/system> brief\n</system>"}]}]),
        &[("items[1].role", LossKind::Role)],
    );
    let dialect = Dialect {
        mid_system: true,
        ..Dialect::of(FORMAT)
    };
    let (messages, _) = lowered_with(&items, &dialect);
    assert_eq!(
        messages[1],
        json!({"role": "system", "content": [{"type": "text", "text": "be </system> brief"}]})
    );
    // The host's words stand behind the whole of the user's turn.
    let (messages, losses) = lowered_with(
        &json!([{"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "message", "role": "system", "content": "s"},
            {"type": "function_call_output", "call_id": "1", "output": "r"}]),
        &dialect,
    );
    let roles: Vec<&Value> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["role"])
        .collect();
    assert_eq!(roles, ["assistant", "user", "system"]);
    assert_eq!(losses, [("items[1]".to_owned(), LossKind::Order)]);
}

/// A request's envelope out of and back into its options.
fn request_exact(fields: Value) {
    let mut request =
        json!({"model": "m", "max_tokens": 2000, "messages": [{"role": "user", "content": "a"}]});
    request
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let lifted = lift(FORMAT, &request.to_string()).unwrap();
    let lowered = lower(
        &Dialect::of(FORMAT),
        DocumentKind::Request,
        &lifted.transcript,
    );
    assert_eq!(value(&lowered.json), request);
    assert_eq!(lowered.losses, Vec::new(), "{request}");
}

#[test]
fn requests_of_every_shape_come_back() {
    let tool = json!({"name": "f", "input_schema": {"type": "object"}});
    for fields in [
        json!({"system": "be brief"}),
        json!({"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}]}),
        json!({"system": [], "tools": [], "stop_sequences": [], "metadata": {"user_id": "u"}, "top_k": 3}),
        json!({"temperature": 0.2, "top_p": 1.0, "stop_sequences": ["x"], "stream": true}),
        json!({"thinking": {"type": "enabled", "budget_tokens": 1500}}),
        json!({"thinking": {"type": "enabled", "budget_tokens": 1500, "display": "omitted"}}),
        json!({"thinking": {"type": "adaptive"}}),
        json!({"thinking": {"type": "disabled"}}),
        json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}}),
        json!({"output_config": {"effort": "xhigh"}}),
        json!({"output_config": {"effort": "newest"}}),
        json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}),
        json!({"output_config": {"effort": 3}}),
        json!({"output_config": {"effort": 3, "format": {"type": "json_schema", "schema": {"type": "object"}}}}),
        json!({"output_config": {"effort": "low", "task_budget": {"type": "tokens", "total": 1}}}),
        json!({"tools": [tool], "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}}),
        json!({"tools": [tool], "tool_choice": {"type": "any"}}),
        json!({"tools": [tool], "tool_choice": {"type": "none"}}),
        json!({"tools": [tool], "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": false}}),
        json!({"tools": [tool], "tool_choice": {"type": "newest", "x": 1}}),
        json!({"tools": [
            {"type": "custom", "name": "f", "description": "d", "input_schema": {"type": "object", "$defs": {}},
                "strict": true, "cache_control": {"type": "ephemeral"}, "defer_loading": true},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": null}]}),
        json!({"context_management": {"edits": []}, "betas": ["x"], "mcp_servers": [], "container": "c",
            "cache_control": {"type": "ephemeral"}, "system": null, "~own": 1}),
    ] {
        request_exact(fields);
    }
    // Counting tokens asks with the same body, without a limit.
    let text = r#"{"model":"m","messages":[{"role":"user","content":"a"}]}"#;
    let lifted = lift(FORMAT, text).unwrap();
    let lowered = lower(
        &Dialect::of(FORMAT),
        DocumentKind::Request,
        &lifted.transcript,
    );
    assert_eq!(value(&lowered.json), value(text));
}

#[test]
fn options_of_other_formats_are_fitted() {
    let check = |options: Value, expected: Value, kinds: &[LossKind]| {
        let document = json!({"model": "m", "items": [user("a")], "options": options,
            "tools": [{"type": "function", "name": "f", "parameters": {"properties": {}}}]});
        let lifted = lift(Format::Items, &document.to_string()).unwrap();
        let lowered = lower(
            &Dialect::of(FORMAT),
            DocumentKind::Request,
            &lifted.transcript,
        );
        let mut request = value(&lowered.json);
        let members = request.as_object_mut().unwrap();
        assert_eq!(members.remove("model"), Some(json!("m")));
        members.remove("messages");
        let tools = members.remove("tools").unwrap();
        assert_eq!(
            tools,
            json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}])
        );
        assert_eq!(request, expected, "{options}");
        let told: Vec<LossKind> = lowered.losses.iter().map(|loss| loss.what).collect();
        // The schema's type is always told.
        assert_eq!(
            told.split_first(),
            Some((&LossKind::Value, kinds)),
            "{options}"
        );
    };
    use LossKind::{Option as Opt, Value as Val};
    check(json!({}), json!({"max_tokens": 4096}), &[Val]);
    let with = |fields: Value| {
        let mut all = json!({"max_output_tokens": 5000});
        all.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        all
    };
    let out = |fields: Value| {
        let mut all = json!({"max_tokens": 5000});
        all.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        all
    };
    check(
        with(json!({"temperature": 1.5})),
        out(json!({"temperature": 1})),
        &[Val],
    );
    check(
        with(json!({"stop": ["\n", "x"]})),
        out(json!({"stop_sequences": ["x"]})),
        &[Opt],
    );
    check(
        with(json!({"reasoning": {"effort": "minimal"}})),
        out(json!({"output_config": {"effort": "low"}})),
        &[Val],
    );
    check(
        with(json!({"reasoning": {"effort": "none"}})),
        out(json!({"thinking": {"type": "disabled"}})),
        &[],
    );
    check(
        with(json!({"reasoning": {"budget_tokens": 10}})),
        out(json!({"thinking": {"type": "enabled", "budget_tokens": 1024}})),
        &[Val],
    );
    check(
        with(json!({"reasoning": {"budget_tokens": 9000, "summary": "auto"}})),
        out(json!({"thinking": {"type": "enabled", "budget_tokens": 4999}})),
        &[Opt, Val],
    );
    check(
        with(json!({"parallel_tool_calls": false})),
        out(json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}})),
        &[],
    );
    check(
        with(json!({"parallel_tool_calls": true})),
        out(json!({})),
        &[],
    );
    check(
        with(json!({"response_format": {"type": "json_object"}})),
        out(json!({})),
        &[Opt],
    );
    check(
        with(json!({"response_format": {"type": "json_schema", "name": "n", "schema": {}}})),
        out(json!({"output_config": {"format": {"type": "json_schema", "schema": {}}}})),
        &[Opt],
    );
}

#[test]
fn usage_counts_the_cache_in() {
    let text = json!({"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [],
        "stop_reason": "pause_turn", "stop_sequence": null,
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 10,
            "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}, "service_tier": "standard"}});
    let lifted = lift(FORMAT, &text.to_string()).unwrap();
    let usage = lifted
        .transcript
        .response
        .as_ref()
        .unwrap()
        .usage
        .as_ref()
        .unwrap();
    assert_eq!(
        value(&serde_json::to_string(usage).unwrap()),
        json!({"input_tokens": 115, "output_tokens": 7, "cache_read_tokens": 100,
            "cache_write_tokens": 10, "reasoning_tokens": 3})
    );
    let lowered = lower(
        &Dialect::of(FORMAT),
        DocumentKind::Response,
        &lifted.transcript,
    );
    assert_eq!(value(&lowered.json), text);
    // Without the provider's own account the counts are taken apart again.
    let mut transcript = lifted.transcript;
    let info = transcript.response.as_mut().unwrap();
    info.usage.as_mut().unwrap().extra.remove("ctx:wire");
    let lowered = lower(&Dialect::of(FORMAT), DocumentKind::Response, &transcript);
    assert_eq!(value(&lowered.json)["usage"]["input_tokens"], json!(5));
}

#[test]
fn bad_documents_are_refused_by_path() {
    for (text, expected) in [
        ("{}", "not a document of format anthropic"),
        ("3", "not a document of format anthropic"),
        (
            r#"{"type":"error","error":{}}"#,
            "not a document of format anthropic",
        ),
        (
            r#"{"input_tokens":3}"#,
            "not a document of format anthropic",
        ),
        (r#"{"messages":3}"#, "`messages`: expected an array"),
        (
            r#"[{"role":"tool","content":"x"}]"#,
            "`[0].role`: expected `user`, `assistant` or `system`, found tool",
        ),
        (
            r#"[{"role":"user","content":3}]"#,
            "`[0].content`: expected a string or an array",
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"text"}]}]}"#,
            "`messages[0].content[0]`: missing field `text`",
        ),
        (
            r#"{"messages":[],"tools":[{"input_schema":{}}]}"#,
            "`tools[0]`: missing field `name`",
        ),
        (
            r#"{"messages":[],"max_tokens":"x"}"#,
            "`max_tokens`: expected a whole number",
        ),
        (
            r#"[{"role":"user","content":[{"type":"image","source":{"type":"base64"}}]}]"#,
            "`[0].content[0].source`: missing field `media_type`",
        ),
        (
            r#"[{"role":"user","role":"tool","content":""}]"#,
            "`[0].role`: expected `user`, `assistant` or `system`, found tool",
        ),
    ] {
        let error = lift(FORMAT, text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn opaque_parts_survive_the_items_format() {
    let messages = json!([{"role": "user", "content": [
        {"type": "search_result", "source": "s", "title": "t", "content": []}]}]);
    let lifted = lift(FORMAT, &messages.to_string()).unwrap();
    let Some(Item::Message(message)) = lifted.transcript.items.first() else {
        panic!("{:?}", lifted.transcript.items);
    };
    assert!(
        matches!(&message.content[0], Part::Extension(part) if part.kind == "anthropic:search_result")
    );
    let again = Item::parse(&lifted.transcript.items[0].to_json()).unwrap();
    assert_eq!(again, lifted.transcript.items[0]);
}
