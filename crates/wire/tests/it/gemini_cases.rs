//! Gemini's rules, case by case.

use contexture_ir::Item;
use contexture_wire::{Dialect, DocumentKind, Format, LossKind, lift, lower};
use serde_json::{Value, json};

use crate::recorded::{findings, validators, value};

const FORMAT: Format = Format::Gemini;

fn check(items: Value, contents: Value, losses: &[(&str, LossKind)]) {
    let parsed = Item::parse_all(&items.to_string()).unwrap();
    let transcript = contexture_ir::Transcript {
        items: parsed,
        ..Default::default()
    };
    let lowered = lower(&Dialect::of(FORMAT), DocumentKind::Messages, &transcript);
    assert_eq!(value(&lowered.json), contents, "from {items}");
    let told: Vec<(&str, LossKind)> = lowered
        .losses
        .iter()
        .map(|loss| (loss.path.as_str(), loss.what))
        .collect();
    assert_eq!(told, losses, "from {items}");
    if contents.as_array().is_some_and(|list| !list.is_empty()) {
        let request = json!({"contents": contents}).to_string();
        assert_eq!(findings(validators(FORMAT), &request), Vec::<String>::new());
    }
}

fn exact(contents: Value) -> Vec<Value> {
    let lifted = lift(FORMAT, &contents.to_string()).unwrap();
    let lowered = lower(
        &Dialect::of(FORMAT),
        DocumentKind::Messages,
        &lifted.transcript,
    );
    assert_eq!(value(&lowered.json), contents);
    assert_eq!(lowered.losses, Vec::new(), "{contents}");
    lifted
        .transcript
        .items
        .iter()
        .map(|item| value(&item.to_json()))
        .collect()
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

#[test]
fn contents_of_every_shape_come_back() {
    for contents in [
        json!([{"role": "user", "parts": [{"text": "hi"}]}]),
        json!([{"parts": [{"text": "hi"}]}]),
        json!([{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}, {"text": ""}]}]),
        json!([{"role": "user", "parts": [{"text": "a", "~odd": 1, "partMetadata": {"x": 1}}], "~more": 2}]),
        json!([{"role": "model", "parts": [
            {"text": "hm", "thought": true, "thoughtSignature": "AA"},
            {"text": "hm", "thought": true, "thought_signature": "AA"},
            {"text": "so", "thought": false},
            {"text": "", "thoughtSignature": "BB"},
            {"functionCall": {"name": "f", "args": {"b": 1, "a": [2]}}, "thoughtSignature": "CC"},
            {"function_call": {"id": "x1", "name": "f"}, "thought_signature": "DD"},
            {"functionCall": {"id": "x2", "name": "g", "args": {}, "willContinue": true}},
            {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "EE"},
            {"code_execution_result": {"outcome": "OUTCOME_OK"}},
            {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
            {"toolResponse": {"id": "t", "response": {}}},
            {"thoughtSignature": "FF"},
            {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thought": true},
            {"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thoughtSignature": "GG"},
            {"text": "a", "functionCall": {"name": "both"}}]}]),
        json!([{"role": "model", "parts": [{"functionCall": {"name": "f"}}, {"functionCall": {"name": "f"}}]},
            {"role": "function", "parts": [
                {"functionResponse": {"name": "f", "response": {"result": "a"}}},
                {"functionResponse": {"name": "f", "response": {"output": "b"}}}]}]),
        json!([{"role": "user", "parts": [
            {"functionResponse": {"id": "1", "name": "f", "response": {"result": "{\"a\":1}"}}},
            {"functionResponse": {"id": "2", "name": "f", "response": {"result": 1, "x": null}}},
            {"functionResponse": {"id": "3", "name": "f", "response": {"error": "bad"}}},
            {"functionResponse": {"id": "4", "name": "f", "response": {"error": {"code": 1}}}},
            {"functionResponse": {"id": "5", "name": "f", "response": {}}},
            {"functionResponse": {"id": "6", "name": "f"}},
            {"functionResponse": {"id": "7", "name": "f", "response": {"a": 12345678901234567890u64}, "scheduling": "SILENT"}},
            {"function_response": {"id": "8", "name": "f", "response": {"output": "x"}, "parts": [
                {"inline_data": {"mime_type": "image/png", "data": "-_8"}},
                {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/v"}},
                {"newData": {}}]}},
            {"text": "and"}]}]),
        json!([{"role": "user", "parts": [{"text": "first"},
            {"functionResponse": {"id": "1", "name": "f", "response": {"result": "a"}}}]}]),
        json!([{"role": "user", "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "-_8="}},
            {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "p"}},
            {"inline_data": {"mime_type": "audio/L16;codec=pcm;rate=24000", "data": "AA=="}},
            {"inlineData": {"data": "AA=="}},
            {"fileData": {"mimeType": "image/png", "fileUri": "gs://b/p.png"}},
            {"fileData": {"mimeType": "application/pdf", "fileUri": "https://e.org/p", "displayName": "p"},
                "videoMetadata": {"fps": 1}},
            {"file_data": {"file_uri": "https://e.org/p"}},
            {"functionCall": {"name": "odd"}}]}]),
    ] {
        exact(contents);
    }
}

#[test]
fn thoughts_are_never_said() {
    let items = exact(json!([{"role": "model", "parts": [
        {"text": "hidden", "thought": true, "thoughtSignature": "AA"}, {"text": "said"}]}]));
    assert_eq!(items[0]["type"], json!("reasoning"));
    assert_eq!(items[0]["signature"], json!("AA"));
    assert_eq!(items[0]["format"], json!("google-gemini-v1"));
    assert_eq!(
        items[1]["content"],
        json!([{"type": "output_text", "text": "said"}])
    );
    assert_eq!(items.len(), 2);
}

#[test]
fn calls_without_ids_pair_by_name_and_order() {
    let items = exact(json!([
        {"role": "model", "parts": [
            {"functionCall": {"name": "f", "args": {}}},
            {"functionCall": {"name": "g", "args": {}, "id": "own"}},
            {"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "g", "id": "own", "response": {"result": "g"}}},
            {"functionResponse": {"name": "f", "response": {"result": "1"}}},
            {"functionResponse": {"name": "f", "response": {"result": "2"}}},
            {"functionResponse": {"name": "g", "response": {"result": "none"}}}]}]));
    let ids: Vec<&str> = items
        .iter()
        .map(|item| item["call_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [
            "gemini-call-0",
            "own",
            "gemini-call-1",
            "own",
            "gemini-call-0",
            "gemini-call-1",
            "gemini-call-2"
        ]
    );
}

#[test]
fn ids_of_responses_differ_between_responses() {
    for (id, expected) in [
        (json!("r1"), "gemini-call-r1-0"),
        (json!(null), "gemini-call-0"),
    ] {
        let text = json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}],
            "role": "model"}, "finishReason": "STOP"}], "responseId": id})
        .to_string();
        let transcript = lift(FORMAT, &text).unwrap().transcript;
        assert!(
            transcript.items[0].to_json().contains(expected),
            "{transcript:?}"
        );
        let lowered = lower(&Dialect::of(FORMAT), DocumentKind::Response, &transcript);
        assert_eq!(value(&lowered.json), value(&text));
    }
}

#[test]
fn functions_answer_with_objects_right_behind_their_calls() {
    let call = |id: &str, name: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": "{}"});
    let output = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let mut failed = output("4", json!("{\"a\":1}"));
    failed["is_error"] = json!(true);
    let response = |id: &str, name: &str, response: Value| json!({"functionResponse": {"id": id, "name": name, "response": response}});
    check(
        json!([
            call("1", "f"),
            call("2", "g"),
            call("3", "h"),
            call("4", "i"),
            call("5", "j"),
            output("1", json!("text")),
            output("2", json!("{\"a\": 1}")),
            user("wait"),
            output("3", json!("[1]")),
            failed,
            output(
                "5",
                json!([{"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="}])
            ),
            output("9", json!("42"))
        ]),
        json!([
            {"role": "model", "parts": [
                {"functionCall": {"id": "1", "name": "f", "args": {}}},
                {"functionCall": {"id": "2", "name": "g", "args": {}}},
                {"functionCall": {"id": "3", "name": "h", "args": {}}},
                {"functionCall": {"id": "4", "name": "i", "args": {}}},
                {"functionCall": {"id": "5", "name": "j", "args": {}}}]},
            {"role": "user", "parts": [
                response("1", "f", json!({"result": "text"})),
                response("2", "g", json!({"a": 1})),
                response("3", "h", json!({"result": "[1]"})),
                response("4", "i", json!({"error": "{\"a\":1}"})),
                {"functionResponse": {"id": "5", "name": "j", "response": {"result": "see"},
                    "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}},
                response("9", "unknown", json!({"result": "42"}))]},
            {"role": "user", "parts": [{"text": "wait"}]}]),
        &[
            ("items[8]", LossKind::Order),
            ("items[9]", LossKind::Order),
            ("items[10]", LossKind::Order),
            ("items[11].name", LossKind::Value),
            ("items[11]", LossKind::Order),
        ],
    );
}

#[test]
fn media_get_a_concrete_type() {
    let message = |part: Value| json!([{"type": "message", "role": "user", "content": [part]}]);
    let told = [("items[0].content[0].media_type", LossKind::Value)];
    let by = |uri: &str, kind: &str| json!({"fileData": {"mimeType": kind, "fileUri": uri}});
    let image = |url: &str| json!({"type": "input_image", "image_url": url});
    let file = |url: &str| json!({"type": "input_file", "file_url": url, "filename": "n"});
    for (part, expected, losses) in [
        (
            image("https://e.org/a.PNG?x#y"),
            by("https://e.org/a.PNG?x#y", "image/png"),
            &told[..0],
        ),
        (
            image("https://e.org/a"),
            by("https://e.org/a", "image/jpeg"),
            &told,
        ),
        (
            image("data:image/webp;base64,AA=="),
            json!({"inlineData": {"mimeType": "image/webp", "data": "AA=="}}),
            &told[..0],
        ),
        (
            json!({"type": "input_file", "file_data": "data:;base64,AA=="}),
            json!({"inlineData": {"mimeType": "application/octet-stream", "data": "AA=="}}),
            &told,
        ),
    ] {
        check(
            message(part),
            json!([{"role": "user", "parts": [expected]}]),
            losses,
        );
    }
    let mut named = by("https://e.org/a.pdf", "application/pdf");
    named["fileData"]["displayName"] = json!("n");
    check(
        message(file("https://e.org/a.pdf")),
        json!([{"role": "user", "parts": [named]}]),
        &[],
    );
    for part in [
        json!({"type": "input_image", "file_id": "file-1"}),
        json!({"type": "input_file", "file_data": "AAAA"}),
        json!({"type": "input_image"}),
        json!({"type": "anthropic:search_result", "block": {}}),
    ] {
        check(
            message(part),
            json!([]),
            &[("items[0].content[0]", LossKind::Part)],
        );
    }
}

#[test]
fn what_others_say_is_fitted_or_told() {
    check(
        json!([user(""),
            {"type": "message", "role": "developer", "content": "<system>be brief"},
            {"type": "reasoning", "summary": [], "content": [], "signature": "s", "format": "anthropic-claude-v1"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "[1]"},
            {"type": "openai:web_search_call", "id": "w"}, {"type": "ctx:state"},
            {"type": "compaction", "summary": [{"type": "summary_text", "text": "so far"}], "encrypted_content": "x"}]),
        json!([
            {"role": "user", "parts": [{"text": "<system>\n&lt;system>be brief\n</system>"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"text": "so far"}]}]),
        &[
            ("items[0].content[0]", LossKind::Part),
            ("items[1].role", LossKind::Role),
            ("items[2]", LossKind::Item),
            ("items[2].signature", LossKind::Opaque),
            ("items[3].arguments", LossKind::Value),
            ("items[4]", LossKind::Item),
            ("items[6].encrypted_content", LossKind::Opaque),
        ],
    );
}

#[test]
fn requests_of_every_shape_come_back() {
    for fields in [
        json!({"model": "models/gemini"}),
        json!({"systemInstruction": {"parts": [{"text": "s"}]}}),
        json!({"system_instruction": {"role": "user", "parts": [{"text": "s"}, {"text": "t"}]}}),
        json!({"systemInstruction": "short"}),
        json!({"systemInstruction": {"parts": []}}),
        json!({"generationConfig": {}, "toolConfig": {}, "tools": []}),
        json!({"tools": {"functionDeclarations": [{"name": "f"}, {"name": "g"}]}}),
        json!({"tools": {"googleSearch": {}}}),
        json!({"generationConfig": {"temperature": 0.5, "topP": 1, "topK": 3, "maxOutputTokens": 10,
            "stopSequences": ["x"], "responseModalities": ["TEXT"]}}),
        json!({"generation_config": {"max_output_tokens": 10, "stop_sequences": [], "top_p": null}}),
        json!({"generationConfig": {"responseMimeType": "application/json"}}),
        json!({"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}}),
        json!({"generationConfig": {"responseMimeType": "application/json",
            "responseSchema": {"type": "OBJECT", "properties": {"type": {"type": "STRING", "nullable": true}}}}}),
        json!({"generationConfig": {"responseSchema": {"type": "object"}}}),
        json!({"generationConfig": {"responseMimeType": "text/x.enum", "responseSchema": {"enum": ["a"]}}}),
        json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
        json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": -1, "includeThoughts": true}}}),
        json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}}}),
        json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": true}}}),
        json!({"tools": [{"functionDeclarations": [
                {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}},
                {"name": "g", "parameters": {"type": "OBJECT", "properties": {"x": {"type": "INTEGER"}}}, "behavior": "BLOCKING"},
                {"name": "h"}]},
            {"function_declarations": [{"name": "i", "parameters_json_schema": {"type": "object"}}]},
            {"googleSearch": {}}, {"functionDeclarations": [{"name": "j"}], "codeExecution": {}},
            {"functionDeclarations": []}],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]},
                "retrievalConfig": {"languageCode": "de"}}}),
        json!({"tools": [{"functionDeclarations": [{"name": "f"}]}],
            "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}}}),
        json!({"tools": [{"functionDeclarations": [{"name": "f"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f", "g"]}}}),
        json!({"cachedContent": "cachedContents/x", "safetySettings": [{"category": "c"}], "labels": {"a": "b"}, "~x": 1}),
    ] {
        let mut request = json!({"contents": [{"role": "user", "parts": [{"text": "a"}]}]});
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
}

#[test]
fn schemas_are_json_schema_for_everyone_else() {
    let request = json!({"contents": [], "tools": [{"functionDeclarations": [{"name": "f", "parameters":
        {"type": "OBJECT", "properties": {"type": {"type": "STRING", "nullable": true, "enum": ["a"]},
            "list": {"type": "ARRAY", "min_items": "2", "items": {"anyOf": [{"type": "NUMBER"}]}}}}}]}]});
    let transcript = lift(FORMAT, &request.to_string()).unwrap().transcript;
    let contexture_ir::ToolDefinition::Function(tool) = &transcript.tools[0] else {
        panic!("{:?}", transcript.tools);
    };
    assert_eq!(
        value(tool.parameters.as_ref().unwrap().get()),
        json!({"type": "object", "properties": {
            "type": {"type": ["string", "null"], "enum": ["a", null]},
            "list": {"type": "array", "minItems": 2, "items": {"anyOf": [{"type": "number"}]}}}})
    );
}

#[test]
fn options_of_other_formats_are_fitted() {
    let check = |mut options: Value, expected: Value, kinds: &[LossKind]| {
        let model = options.as_object_mut().unwrap().remove("model");
        let document = json!({"model": model.unwrap_or_else(|| json!("m")), "items": [user("a")], "options": options,
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]});
        let lifted = lift(Format::Items, &document.to_string()).unwrap();
        let lowered = lower(
            &Dialect::of(FORMAT),
            DocumentKind::Request,
            &lifted.transcript,
        );
        assert_eq!(
            findings(validators(FORMAT), &lowered.json),
            Vec::<String>::new()
        );
        let mut request = value(&lowered.json);
        let members = request.as_object_mut().unwrap();
        members.remove("contents");
        assert_eq!(
            members.remove("tools"),
            Some(json!([{"functionDeclarations": [
            {"name": "f", "parametersJsonSchema": {"type": "object"}}]}]))
        );
        assert_eq!(request, expected, "{options}");
        let told: Vec<LossKind> = lowered.losses.iter().map(|loss| loss.what).collect();
        assert_eq!(told, kinds, "{options}");
    };
    use LossKind::{Option as Opt, Value as Val};
    let config = |fields: Value| json!({"generationConfig": fields});
    let thinking = |fields: Value| config(json!({"thinkingConfig": fields}));
    check(json!({}), json!({}), &[]);
    check(
        json!({"max_output_tokens": 5, "stop": ["x"], "temperature": 1.5}),
        config(json!({"maxOutputTokens": 5, "stopSequences": ["x"], "temperature": 1.5})),
        &[],
    );
    check(
        json!({"reasoning": {"effort": "none"}}),
        thinking(json!({"thinkingBudget": 0})),
        &[],
    );
    check(
        json!({"reasoning": {"effort": "xhigh"}}),
        thinking(json!({"thinkingLevel": "HIGH"})),
        &[Val],
    );
    // Models before Gemini 3 refuse a level.
    check(
        json!({"model": "gemini-2.5-flash", "reasoning": {"effort": "high"}}),
        thinking(json!({"thinkingBudget": 24_576})),
        &[Val],
    );
    check(
        json!({"reasoning": {"effort": "default"}}),
        json!({}),
        &[Opt],
    );
    check(
        json!({"reasoning": {"effort": "low", "budget_tokens": 9}}),
        thinking(json!({"thinkingBudget": 9})),
        &[Opt],
    );
    check(
        json!({"tool_choice": "required", "parallel_tool_calls": false}),
        json!({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}),
        &[Opt],
    );
    check(
        json!({"response_format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}),
        config(
            json!({"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}),
        ),
        &[Opt],
    );
}

#[test]
fn usage_and_reasons_are_read() {
    let text = json!({"candidates": [
            {"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0, "safetyRatings": []},
            {"content": {"role": "model", "parts": [{"text": "b"}]}, "index": 1}],
        "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 40, "toolUsePromptTokenCount": 7,
            "candidatesTokenCount": 5, "thoughtsTokenCount": 20, "totalTokenCount": 132},
        "modelVersion": "g", "responseId": "r"});
    let lifted = lift(FORMAT, &text.to_string()).unwrap();
    let info = lifted.transcript.response.as_ref().unwrap();
    assert_eq!(
        value(&serde_json::to_string(info.usage.as_ref().unwrap()).unwrap()),
        json!({"input_tokens": 107, "output_tokens": 25, "total_tokens": 132, "cache_read_tokens": 40, "reasoning_tokens": 20})
    );
    let lowered = lower(
        &Dialect::of(FORMAT),
        DocumentKind::Response,
        &lifted.transcript,
    );
    assert_eq!(value(&lowered.json), text);

    for text in [
        json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}),
        json!({"candidates": [], "promptFeedback": {"blockReason": "OTHER"}}),
        json!({"candidates": [{"finishReason": "RECITATION"}]}),
    ] {
        let lifted = lift(FORMAT, &text.to_string()).unwrap();
        let finish = lifted.transcript.response.as_ref().unwrap().finish.clone();
        assert_eq!(
            finish,
            Some(contexture_ir::FinishReason::ContentFilter),
            "{text}"
        );
        let lowered = lower(
            &Dialect::of(FORMAT),
            DocumentKind::Response,
            &lifted.transcript,
        );
        assert_eq!(value(&lowered.json), text);
    }
}

#[test]
fn bad_documents_are_refused_by_path() {
    for (text, expected) in [
        ("{}", "not a document of format gemini"),
        (
            r#"{"error":{"code":400}}"#,
            "not a document of format gemini",
        ),
        (r#"{"contents":{}}"#, "`contents`: expected an array"),
        (
            r#"[{"role":"assistant","parts":[]}]"#,
            "`[0].role`: expected `user` or `model`, found assistant",
        ),
        (
            r#"[{"parts":3}]"#,
            "`[0].parts`: expected an array of parts",
        ),
        (
            r#"[{"parts":[{"text":3}]}]"#,
            "`[0].parts[0].text`: expected a string",
        ),
        (
            r#"[{"role":"model","parts":[{"functionCall":{}}]}]"#,
            "missing field `name`",
        ),
        (
            r#"{"contents":[],"generationConfig":{"topP":"x"}}"#,
            "`generationConfig.topP`: expected a number",
        ),
        (
            r#"{"contents":[],"tools":[{"functionDeclarations":[{}]}]}"#,
            "`tools[0].functionDeclarations[0]`: missing field `name`",
        ),
        (
            r#"[{"parts":[{"inlineData":{"mimeType":"a"},"inline_data":{}}]}]"#,
            "stands twice",
        ),
    ] {
        let error = lift(FORMAT, text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn signed_calls_put_sentinel_on_first_unsigned_call_of_step() {
    let call = |id: &str| {
        let (kind, name) = ("function_call", "f");
        Item::parse(
            &json!({"type": kind, "call_id": id, "name": name, "arguments": "{}"}).to_string(),
        )
    };
    let items = vec![Item::parse(&user("go").to_string()), call("a"), call("b")];
    let transcript = contexture_ir::Transcript {
        items: items.into_iter().collect::<Result<_, _>>().unwrap(),
        ..Default::default()
    };
    let dialect = Dialect {
        signed_calls: true,
        ..Dialect::of(FORMAT)
    };
    let lowered = value(&lower(&dialect, DocumentKind::Messages, &transcript).json);
    let parts = &lowered[1]["parts"];
    assert_eq!(
        parts[0]["thoughtSignature"],
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
    );
    assert_eq!(parts[1].get("thoughtSignature"), None);

    // A call the model signed itself is left as it is.
    let signed = json!([{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": [
        {"functionCall": {"name": "f", "args": {}}, "thought_signature": "CC"},
        {"functionCall": {"name": "f", "args": {}}}]}]);
    let lifted = lift(FORMAT, &signed.to_string()).unwrap();
    let again = lower(&dialect, DocumentKind::Messages, &lifted.transcript);
    assert_eq!(value(&again.json), signed);
}
