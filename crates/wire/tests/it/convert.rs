//! Cases of one format to another, and the losses they must name.

use contexture_wire::{Dialect, Format, lift, lower};
use serde_json::Value;

/// The document written, and `path: kind` of each loss.
fn convert(from: Format, to: Format, text: &str) -> (Value, Vec<String>) {
    let lifted = lift(from, text).unwrap();
    let lowered = lower(&Dialect::of(to), lifted.kind, &lifted.transcript);
    let losses = lifted.losses.into_iter().chain(lowered.losses);
    let losses = losses.map(|loss| format!("{}: {}", loss.path, loss.what.as_str()));
    (
        serde_json::from_str(&lowered.json).unwrap(),
        losses.collect(),
    )
}

/// What stands at a JSON pointer, and the losses.
fn check(from: Format, to: Format, text: &str, expected: &[(&str, &str)], losses: &[&str]) {
    let (json, found) = convert(from, to, text);
    for (pointer, expected) in expected {
        let value = json
            .pointer(pointer)
            .map_or("nothing".to_owned(), Value::to_string);
        assert_eq!(&value, expected, "{pointer} of {json} from {text}");
    }
    assert_eq!(found, losses, "{text}");
}

fn check_same(format: Format, text: &str) {
    let (json, losses) = convert(format, format, text);
    assert_eq!(json, serde_json::from_str::<Value>(text).unwrap());
    assert_eq!(losses, Vec::<String>::new(), "{text}");
}

const CHAT: Format = Format::OpenAiChat;
const RESPONSES: Format = Format::OpenAiResponses;
const ANTHROPIC: Format = Format::Anthropic;
const GEMINI: Format = Format::Gemini;

#[test]
fn a_missing_model_is_told_of_by_every_format_that_demands_one() {
    let text = r#"{"contents":[{"role":"user","parts":[{"text":"x"}]}]}"#;
    for to in [CHAT, RESPONSES] {
        check(GEMINI, to, text, &[("/model", "\"\"")], &["model: value"]);
    }
    let losses = ["model: value", "options.max_output_tokens: value"];
    check(GEMINI, ANTHROPIC, text, &[("/model", "\"\"")], &losses);
    check_same(CHAT, r#"{"messages":[{"role":"user","content":"x"}]}"#);
    check_same(RESPONSES, r#"{"input":"x"}"#);
}

#[test]
fn options_of_both_openai_formats_are_translated() {
    let shared = r#""metadata":{"a":"b"},"user":"u","store":false,"service_tier":"flex","prompt_cache_key":"k","safety_identifier":"s","top_logprobs":2"#;
    let values = [
        ("/metadata", r#"{"a":"b"}"#),
        ("/user", "\"u\""),
        ("/store", "false"),
        ("/service_tier", "\"flex\""),
        ("/prompt_cache_key", "\"k\""),
        ("/safety_identifier", "\"s\""),
        ("/top_logprobs", "2"),
    ];
    let text = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"verbosity":"low","seed":1,{shared}}}"#
    );
    let expected = [&values[..], &[("/text/verbosity", "\"low\"")]].concat();
    check(CHAT, RESPONSES, &text, &expected, &["seed: option"]);
    check_same(CHAT, &text);
    let text = format!(
        r#"{{"model":"m","input":"x","text":{{"format":{{"type":"text"}},"verbosity":"low"}},"truncation":"auto",{shared}}}"#
    );
    let more = [("/verbosity", "\"low\""), ("/logprobs", "true")];
    let expected = [&values[..], &more[..]].concat();
    check(RESPONSES, CHAT, &text, &expected, &["truncation: option"]);
    check_same(RESPONSES, &text);
    let text = r#"{"model":"m","messages":[],"service_tier":"on_demand","user":1}"#;
    let losses = ["service_tier: option", "user: option"];
    check(CHAT, RESPONSES, text, &[("/user", "nothing")], &losses);
}

#[test]
fn custom_tools_of_both_openai_formats_are_translated() {
    let grammar = r#"{"type":"grammar","grammar":{"syntax":"lark","definition":"start: A"}}"#;
    let flat = r#"{"type":"grammar","syntax":"lark","definition":"start: A"}"#;
    let chat = format!(
        r#"{{"model":"m","tools":[{{"type":"custom","custom":{{"name":"sh","description":"d","format":{grammar}}}}},
        {{"type":"custom","custom":{{"name":"b","format":{{"type":"text"}}}}}}],
        "messages":[{{"role":"user","content":"x"}},
        {{"role":"assistant","content":null,"tool_calls":[{{"id":"c1","type":"custom","custom":{{"name":"sh","input":"ls"}}}}]}},
        {{"role":"tool","tool_call_id":"c1","content":"out"}}],
        "tool_choice":{{"type":"custom","custom":{{"name":"sh"}}}}}}"#
    );
    let responses = format!(
        r#"{{"model":"m","tools":[{{"type":"custom","name":"sh","description":"d","format":{flat}}},{{"type":"custom","name":"b","format":{{"type":"text"}}}}],
        "input":[{{"role":"user","content":"x"}},{{"type":"custom_tool_call","call_id":"c1","name":"sh","input":"ls"}},
        {{"type":"custom_tool_call_output","call_id":"c1","output":"out"}}],"tool_choice":{{"type":"custom","name":"sh"}}}}"#
    );
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(convert(CHAT, RESPONSES, &chat), (value(&responses), vec![]));
    assert_eq!(convert(RESPONSES, CHAT, &responses), (value(&chat), vec![]));
    for (format, text) in [(CHAT, &chat), (RESPONSES, &responses)] {
        check_same(format, text);
        let findings =
            contexture_testdata::request_validator(format.as_str()).validation_errors(&value(text));
        assert!(findings.is_empty(), "{findings:#?}");
    }
    // What only one of them has is told; so is what is not text.
    let text = r#"{"model":"m","tools":[{"type":"custom","name":"sh","defer_loading":true}],
        "input":[{"role":"user","content":"x"},{"type":"custom_tool_call","id":"ctc_1","call_id":"c1","namespace":"n","name":"sh","input":"ls"},
        {"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"https://e.org/a.png"}]}]}"#;
    check(
        RESPONSES,
        CHAT,
        text,
        &[
            ("/tools/0", r#"{"type":"custom","custom":{"name":"sh"}}"#),
            ("/messages/1/tool_calls/0/id", "\"c1\""),
            (
                "/messages/2",
                r#"{"role":"tool","tool_call_id":"c1","content":"[Content that cannot be shown.]"}"#,
            ),
        ],
        &[
            "tools[0].defer_loading: field",
            "items[1].namespace: field",
            "items[2].output: part",
        ],
    );
    // A call without an id could not be answered.
    let text = r#"{"model":"m","input":[{"type":"custom_tool_call","name":"sh","input":"ls"}]}"#;
    check(
        RESPONSES,
        CHAT,
        text,
        &[("/messages", "[]")],
        &["items[0]: item"],
    );
}

/// Codex edits files by a custom tool. Formats that know functions only have its calls as a function's, and the turns of both
/// sides alternate.
#[test]
fn custom_calls_are_functions_where_only_those_are_known() {
    let text = r#"{"model":"m","max_output_tokens":9,"input":[{"role":"user","content":"q"},{"role":"assistant","content":"first"},
        {"type":"custom_tool_call","id":"ctc_1","status":"completed","call_id":"c1","name":"apply_patch","input":"*** \"x\"\n"},
        {"type":"custom_tool_call_output","call_id":"c1","output":"Done"},
        {"role":"assistant","content":"second"},
        {"type":"function_call","call_id":"c2","name":"ls","arguments":"{}"},
        {"type":"function_call_output","call_id":"c2","output":"a"}]}"#;
    let arguments = r#"{"input":"*** \"x\"\n"}"#;
    let cases = [
        (ANTHROPIC, "/messages", "role"),
        (GEMINI, "/contents", "role"),
        (Format::Bedrock, "/messages", "role"),
    ];
    for (target, history, role) in cases {
        let (json, losses) = convert(RESPONSES, target, text);
        assert_eq!(losses, ["items[2]: value"], "{target}");
        let messages = json.pointer(history).unwrap().as_array().unwrap();
        let roles: Vec<&Value> = messages.iter().map(|message| &message[role]).collect();
        assert!(roles.windows(2).all(|two| two[0] != two[1]), "{roles:?}");
        let written = json.to_string();
        assert!(written.contains(arguments), "{written}");
        assert!(written.contains("apply_patch") && written.contains("Done"));
        let findings = crate::recorded::findings(crate::recorded::validators(target), &written);
        assert!(findings.is_empty(), "{target}: {findings:#?}");
        // It is read again as the function's call it is now.
        let again = lift(target, &written).unwrap().transcript;
        let call = again.items.iter().find_map(|item| match item {
            contexture_ir::Item::FunctionCall(call) => Some((&*call.name, &*call.arguments)),
            _ => None,
        });
        assert_eq!(call, Some(("apply_patch", arguments)));
    }
    // Answers with such calls, too.
    let answer = r#"{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[
        {"type":"custom_tool_call","id":"ctc_1","status":"completed","call_id":"c1","name":"apply_patch","input":"x"}]}"#;
    for (target, ..) in cases {
        let (json, _) = convert(RESPONSES, target, answer);
        assert!(json.to_string().contains(r#"{"input":"x"}"#), "{json}");
    }
}

#[test]
fn citations_of_both_openai_formats_are_translated() {
    let inner = r#""start_index":0,"end_index":3,"url":"https://e.org","title":"E""#;
    let nested = format!(r#"[{{"type":"url_citation","url_citation":{{{inner}}}}}]"#);
    let flat = format!(r#"[{{"type":"url_citation",{inner}}}]"#);
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap().to_string();
    let chat = format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"finish_reason":"stop",
        "message":{{"role":"assistant","content":"see","refusal":null,"annotations":{nested}}}}}]}}"#
    );
    let responses = format!(
        r#"{{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"completed","output":[{{"type":"message","id":"msg_1","role":"assistant","status":"completed",
        "content":[{{"type":"output_text","text":"see","annotations":{flat}}},{{"type":"output_text","text":"more","annotations":[]}}]}}]}}"#
    );
    check_same(CHAT, &chat);
    check_same(RESPONSES, &responses);
    let place = "/choices/0/message/annotations";
    check(
        RESPONSES,
        CHAT,
        &responses,
        &[(place, &value(&nested))],
        &["created_at: field"],
    );
    let place = "/output/0/content/0/annotations";
    check(
        CHAT,
        RESPONSES,
        &chat,
        &[(place, &value(&flat))],
        &["created: field"],
    );
    // A request to Chat has no place for them, unless they came in one.
    let input = format!(
        r#"{{"model":"m","input":[{{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{{"type":"output_text","text":"see","annotations":{flat}}}]}}]}}"#
    );
    let losses = ["items[0].content[0].annotations: field"];
    check(
        RESPONSES,
        CHAT,
        &input,
        &[("/messages/0/content", "\"see\"")],
        &losses,
    );
    let messages = format!(r#"[{{"role":"assistant","content":"see","annotations":{nested}}}]"#);
    check_same(CHAT, &messages);
    // Of others than pages, and of a text that does not come first, Chat knows nothing.
    for annotations in [
        r#"[{"type":"file_citation","file_id":"f"}]"#,
        r#"[{"type":"url_citation","url_citation":1}]"#,
    ] {
        let output = format!(
            r#"{{"output":[{{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{{"type":"output_text","text":"see","annotations":{annotations}}}]}}]}}"#
        );
        check(
            RESPONSES,
            CHAT,
            &output,
            &[("/choices/0/message/content", "\"see\"")],
            &losses,
        );
    }
}

#[test]
fn a_compaction_of_the_models_own_turn_is_said_to_other_models() {
    let text = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},
        {"role":"assistant","content":[{"type":"compaction","content":"before","encrypted_content":"E"},{"type":"text","text":"a"}]}]}"#;
    check_same(ANTHROPIC, text);
    let losses = ["items[1].encrypted_content: opaque", "items[1]: role"];
    for (to, place, said) in [
        (
            CHAT,
            "/messages",
            r#"[{"role":"user","content":"x"},{"role":"user","content":"before"},{"role":"assistant","content":"a"}]"#,
        ),
        (
            RESPONSES,
            "/input",
            r#"[{"role":"user","content":"x"},{"role":"user","content":"before"},{"role":"assistant","content":"a"}]"#,
        ),
        (
            GEMINI,
            "/contents",
            r#"[{"role":"user","parts":[{"text":"x"},{"text":"before"}]},{"role":"model","parts":[{"text":"a"}]}]"#,
        ),
    ] {
        check(ANTHROPIC, to, text, &[(place, said)], &losses);
    }
}

#[test]
fn a_search_that_is_asked_for_by_an_empty_object_is_told_of() {
    let text =
        r#"{"model":"m","messages":[{"role":"user","content":"x"}],"web_search_options":{}}"#;
    check_same(CHAT, text);
    for to in [RESPONSES, ANTHROPIC, GEMINI] {
        let (_, losses) = convert(CHAT, to, text);
        assert!(
            losses.contains(&"web_search_options: option".to_owned()),
            "{to} {losses:?}"
        );
    }
}

#[test]
fn each_dropped_option_of_gemini_is_named() {
    let text = r#"{"model":"m","contents":[{"role":"user","parts":[{"text":"x"}]}],"generationConfig":{"temperature":1,"seed":3,"topK":4}}"#;
    let losses = [
        "generationConfig.seed: option",
        "generationConfig.topK: option",
    ];
    check(GEMINI, CHAT, text, &[("/temperature", "1")], &losses);
}

#[test]
fn a_response_of_a_function_that_is_no_object_stays() {
    let call = r#"{"role":"model","parts":[{"functionCall":{"id":"c","name":"f","args":{}}}]}"#;
    for (value, text) in [("\"x\"", "\"x\""), ("[1]", "\"[1]\""), ("7", "\"7\"")] {
        let answer = format!(
            r#"{{"role":"user","parts":[{{"functionResponse":{{"id":"c","name":"f","response":{value}}}}}]}}"#
        );
        let text_in = format!("[{call},{answer}]");
        check_same(GEMINI, &text_in);
        check(GEMINI, CHAT, &text_in, &[("/1/content", text)], &[]);
    }
}

#[test]
fn a_name_that_a_target_refuses_is_written_alike_everywhere() {
    let text = r#"{"model":"m","tools":[{"functionDeclarations":[{"name":"ns:f.g","parametersJsonSchema":{"type":"object"}}]}],
        "toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["ns:f.g"]}},"generationConfig":{"maxOutputTokens":9},
        "contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"id":"c","name":"ns:f.g","args":{}}}]},
        {"role":"user","parts":[{"functionResponse":{"id":"c","name":"ns:f.g","response":{"result":"r"}}}]}]}"#;
    check_same(GEMINI, text);
    for (to, places) in [
        (
            CHAT,
            [
                "/tools/0/function/name",
                "/tool_choice/function/name",
                "/messages/1/tool_calls/0/function/name",
            ],
        ),
        (
            RESPONSES,
            ["/tools/0/name", "/tool_choice/name", "/input/1/name"],
        ),
        (
            ANTHROPIC,
            [
                "/tools/0/name",
                "/tool_choice/name",
                "/messages/1/content/0/name",
            ],
        ),
    ] {
        let (json, losses) = convert(GEMINI, to, text);
        let names: Vec<&str> = places
            .iter()
            .map(|place| json.pointer(place).unwrap().as_str().unwrap())
            .collect();
        assert!(
            names
                .iter()
                .all(|name| *name == names[0] && name.starts_with("ns_f_g_")),
            "{names:?}"
        );
        let mut told = losses
            .iter()
            .filter(|loss| loss.ends_with("name: value"))
            .collect::<Vec<_>>();
        told.sort_unstable();
        assert_eq!(
            told,
            [
                "items[1].name: value",
                "options.tool_choice.name: value",
                "tools[0].name: value"
            ]
        );
    }
}

#[test]
fn names_that_were_replaced_find_their_way_back() {
    use contexture_ir::{FunctionCall, FunctionTool, Item, ToolDefinition};
    use contexture_wire::ToolNameMap;

    let tool = |name: &str| {
        ToolDefinition::Function(FunctionTool {
            name: name.to_owned(),
            ..FunctionTool::default()
        })
    };
    let tools = [tool("ns:f.g"), tool("plain"), tool("ä")];
    for (format, count) in [
        (CHAT, 2),
        (RESPONSES, 2),
        (ANTHROPIC, 2),
        (GEMINI, 1),
        (Format::Items, 0),
    ] {
        let renames = ToolNameMap::for_tools(format, &tools);
        assert_eq!(renames.iter().count(), count, "{format}");
        // What a request says is what the map knows.
        let request = contexture_ir::Transcript {
            tools: tools.to_vec(),
            ..Default::default()
        };
        let written = lower(
            &Dialect::of(format),
            contexture_wire::DocumentKind::Request,
            &request,
        )
        .json;
        for (sent, given) in renames.iter() {
            assert!(written.contains(&format!("{sent:?}")), "{format} {sent}");
            let mut items = [FunctionCall::new("c", sent, "{}").into()];
            renames.restore_names(&mut items);
            assert_eq!(items, [Item::from(FunctionCall::new("c", given, "{}"))]);
        }
        assert_eq!(renames.original_name("plain"), "plain");
    }
    // A function that has the name in truth keeps it.
    let renames = ToolNameMap::for_tools(CHAT, &tools[..1]);
    let sent = renames.iter().next().unwrap().0;
    let tools = [tool("ns:f.g"), tool(sent)];
    assert!(ToolNameMap::for_tools(CHAT, &tools).is_empty());
}

#[test]
fn nothing_and_repeated_fields_stay_as_they_came() {
    check_same(CHAT, r#"{"choices":null}"#);
    check_same(RESPONSES, r#"{"output":null}"#);
    let text = r#"{"choices":[{"message":{"a":1,"a":2}}]}"#;
    let lifted = lift(CHAT, text).unwrap();
    let lowered = lower(&Dialect::of(CHAT), lifted.kind, &lifted.transcript);
    assert!(lowered.json.contains(r#""a":1,"a":2"#), "{}", lowered.json);
}

#[test]
fn a_compaction_of_openai_survives_the_ui() {
    let custom = r#"{"type":"custom","kind":"openai.compaction","providerMetadata":{"openai":{"type":"compaction","itemId":"cmp_1","encryptedContent":"E"}}}"#;
    let message = |part: &str| {
        format!(
            r#"[{{"id":"m","role":"user","parts":[{{"type":"text","text":"hi"}}]}},
            {{"id":"a","role":"assistant","parts":[{{"type":"step-start"}},{part},{{"type":"text","text":"yo"}}]}}]"#
        )
    };
    check_same(Format::Ui, &message(custom));
    let compaction = r#"{"type":"compaction","id":"cmp_1","encrypted_content":"E"}"#;
    check(
        Format::Ui,
        RESPONSES,
        &message(custom),
        &[("/1", compaction)],
        &[],
    );
    check(
        Format::Ui,
        CHAT,
        &message(custom),
        &[("/1", r#"{"role":"assistant","content":"yo"}"#)],
        &["items[4].encrypted_content: opaque"],
    );
    // What only looks so is data.
    for other in [
        r#"{"type":"data-compaction","data":{"type":"compaction","encrypted_content":"E"}}"#,
        r#"{"type":"custom","kind":"acme.compaction","providerMetadata":{"openai":{"type":"compaction","encryptedContent":"E"}}}"#,
        r#"{"type":"custom","kind":"openai.compaction","providerMetadata":{"openai":{"type":"compaction"}}}"#,
        r#"{"type":"custom","kind":"openai.compaction"}"#,
    ] {
        check_same(Format::Ui, &message(other));
        let (json, _) = convert(Format::Ui, RESPONSES, &message(other));
        assert_eq!(json.as_array().unwrap().len(), 2, "{json}");
    }
}
