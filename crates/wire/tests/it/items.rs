//! Our own documents: nothing is lost, whatever a transcript holds.

use contexture_ir::{
    Extra, FinishReason, FunctionTool, Item, Message, ProviderTool, Raw, ReasoningOptions,
    RequestOptions, ResponseFormat, ResponseInfo, Role, ToolChoice, ToolDefinition, Transcript,
    Usage,
};
use contexture_wire::{Dialect, DocumentKind, Format, LossKind, lift, lower};
use proptest::prelude::*;
use serde_json::json;

fn written(kind: DocumentKind, transcript: &Transcript) -> String {
    let lowered = lower(&Dialect::of(Format::Items), kind, transcript);
    assert_eq!(lowered.losses, []);
    lowered.json
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,6}", ".{0,8}"]
}

fn raw() -> impl Strategy<Value = Raw> {
    prop_oneof![
        Just("null"),
        Just("12345678901234567890123"),
        Just("1.10"),
        Just("{ \"a\": 1, \"a\" : [2 ] }"),
        Just("\"\\u00e9\""),
    ]
    .prop_map(|text| Raw::parse(text).unwrap())
}

fn extra() -> impl Strategy<Value = Extra> {
    let keys = prop_oneof![Just("x"), Just("weird key"), Just("ctx:wire")];
    proptest::collection::vec((keys, raw()), 0..3).prop_map(|members| {
        let mut extra = Extra::new();
        for (key, value) in members {
            extra.set(key, value);
        }
        extra
    })
}

fn item() -> impl Strategy<Value = Item> {
    let known = prop_oneof![
        text().prop_map(|t| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": t, "y": 1}]})),
        text().prop_map(|t| json!({"type": "message", "role": "system", "content": [{"type": "input_text", "text": t}]})),
        text().prop_map(|t| json!({"type": "function_call", "call_id": t, "name": "f", "arguments": t, "status": "odd"})),
        text().prop_map(|t| json!({"type": "function_call_output", "call_id": t, "output": t, "is_error": true})),
        text().prop_map(|t| json!({"type": "reasoning", "summary": [], "signature": t})),
        text().prop_map(|t| json!({"type": "compaction", "encrypted_content": t})),
    ];
    prop_oneof![
        known.prop_map(|value| Item::parse(&value.to_string()).unwrap()),
        // Byte for byte, repeated keys and spaces included.
        raw().prop_map(|raw| {
            Item::parse(&format!(
                "{{ \"type\":\"acme:x\", \"v\" : {} , \"v\":2}}",
                raw.get()
            ))
            .unwrap()
        }),
    ]
}

fn tool() -> impl Strategy<Value = ToolDefinition> {
    prop_oneof![
        (
            text(),
            proptest::option::of(text()),
            raw(),
            proptest::option::of(any::<bool>())
        )
            .prop_map(|(name, description, parameters, strict)| {
                let parameters = (parameters.get() != "null").then_some(parameters);
                ToolDefinition::Function(FunctionTool {
                    name,
                    description,
                    parameters,
                    strict,
                    extra: Extra::new(),
                })
            }),
        (text(), text(), raw()).prop_map(|(format, kind, raw)| ToolDefinition::Provider(
            ProviderTool { format, kind, raw }
        )),
    ]
}

fn choice() -> impl Strategy<Value = ToolChoice> {
    prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::None),
        Just(ToolChoice::Required),
        text().prop_map(|name| ToolChoice::Function { name }),
        (text(), raw()).prop_map(|(format, raw)| ToolChoice::Other { format, raw }),
    ]
}

fn form() -> impl Strategy<Value = ResponseFormat> {
    prop_oneof![
        Just(ResponseFormat::Text),
        Just(ResponseFormat::JsonObject),
        (proptest::option::of(text()), raw()).prop_map(|(name, schema)| {
            ResponseFormat::JsonSchema {
                name,
                description: None,
                schema,
                strict: Some(true),
            }
        }),
    ]
}

fn options() -> impl Strategy<Value = RequestOptions> {
    let opt = proptest::option::of::<BoxedStrategy<u64>>;
    (
        opt(any::<u64>().boxed()),
        proptest::option::of(any::<i32>()),
        proptest::collection::vec(text(), 0..3),
        proptest::option::of(choice()),
        proptest::option::of(form()),
        proptest::option::of((proptest::option::of(text()), opt(any::<u64>().boxed()))),
        proptest::option::of(any::<bool>()),
    )
        .prop_map(
            |(max, temperature, stop, tool_choice, response_format, reasoning, flag)| {
                RequestOptions {
                    max_output_tokens: max,
                    temperature: temperature.map(Into::into),
                    top_p: temperature
                        .and_then(|t| serde_json::Number::from_f64(f64::from(t) / 3.0)),
                    stop,
                    tool_choice,
                    parallel_tool_calls: flag,
                    response_format,
                    reasoning: reasoning.map(|(effort, budget_tokens)| ReasoningOptions {
                        effort,
                        budget_tokens,
                        summary: None,
                    }),
                    stream: flag,
                }
            },
        )
}

fn response() -> impl Strategy<Value = ResponseInfo> {
    let finish = prop_oneof![
        Just(FinishReason::Stop),
        Just(FinishReason::ToolCalls),
        Just(FinishReason::Length),
        Just(FinishReason::ContentFilter),
        Just(FinishReason::Other("stop".into())),
    ];
    let usage = (any::<u64>(), extra()).prop_map(|(tokens, extra)| Usage {
        input_tokens: Some(tokens),
        reasoning_tokens: Some(tokens / 2),
        extra,
        ..Usage::default()
    });
    (
        proptest::option::of(text()),
        proptest::option::of(finish),
        proptest::option::of(usage),
    )
        .prop_map(|(id, finish, usage)| ResponseInfo { id, finish, usage })
}

fn transcript() -> impl Strategy<Value = Transcript> {
    (
        proptest::option::of(text()),
        proptest::collection::vec(text(), 0..3),
        proptest::collection::vec(item(), 0..6),
        proptest::collection::vec(tool(), 0..3),
        options(),
        proptest::option::of(response()),
        extra(),
    )
        .prop_map(
            |(model, instructions, items, tools, options, response, extra)| Transcript {
                model,
                instructions: instructions
                    .into_iter()
                    .map(|t| Message::text(Role::Developer, t))
                    .collect(),
                items,
                tools,
                options,
                response,
                extra,
            },
        )
}

proptest! {
    #[test]
    fn any_transcript_comes_back(transcript in transcript()) {
        let kind = if transcript.response.is_some() { DocumentKind::Response } else { DocumentKind::Request };
        let text = written(kind, &transcript);
        let lifted = lift(Format::Items, &text).unwrap();
        prop_assert_eq!(lifted.losses, []);
        prop_assert_eq!(lifted.kind, kind);
        prop_assert_eq!(lifted.transcript, transcript);
    }

    #[test]
    fn hostile_documents_do_not_panic(text in "[\\[\\]{}\",:a-z0-9 ]{0,60}") {
        let _ = lift(Format::Items, &format!("{{\"items\":[],\"options\":{{{text}}}}}"));
        let _ = lift(Format::Items, &text);
    }
}

#[test]
fn arrays_keep_unknown_items_byte_for_byte() {
    let text = r#"[{"type":"message","role":"system","content":[{"type":"input_text","text":"a"}]},{ "type": "acme:x", "n": 1.0, "n":2 }]"#;
    let lifted = lift(Format::Items, text).unwrap();
    assert_eq!(lifted.kind, DocumentKind::Messages);
    assert_eq!(lifted.transcript.instructions.len(), 1);
    assert_eq!(written(DocumentKind::Messages, &lifted.transcript), text);
}

#[test]
fn an_array_has_no_place_for_the_rest() {
    let text =
        json!({"model": "m", "items": [], "tools": [{"type": "function", "name": "f"}], "x": 1});
    let transcript = lift(Format::Items, &text.to_string()).unwrap().transcript;
    let lowered = lower(
        &Dialect::of(Format::Items),
        DocumentKind::Messages,
        &transcript,
    );
    let found: Vec<(&str, LossKind)> = lowered
        .losses
        .iter()
        .map(|l| (l.path.as_str(), l.what))
        .collect();
    assert_eq!(
        found,
        [
            ("model", LossKind::Option),
            ("tools", LossKind::Tool),
            ("extra", LossKind::Field)
        ]
    );
}

#[test]
fn unknown_options_are_told() {
    let text = json!({"items": [], "options": {"seed": 1}, "response": {"usage": {"pages": 2}}});
    let losses = lift(Format::Items, &text.to_string()).unwrap().losses;
    let paths: Vec<&str> = losses.iter().map(|loss| loss.path.as_str()).collect();
    assert_eq!(paths, ["options.seed", "response.usage.pages"]);
}

#[test]
fn errors_name_the_place() {
    let check = |document: serde_json::Value, expected: &str| {
        let error = lift(Format::Items, &document.to_string()).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        json!({"items": [{"type": "message", "role": "robot"}]}),
        "items: `items[0].role`: expected `user`, `assistant`, `system` or `developer`, found robot",
    );
    check(
        json!({"items": [], "tools": [{"type": "x"}]}),
        "items: `tools[0].type`: expected `function` or `provider`, found x",
    );
    check(
        json!({"items": [], "options": {"tool_choice": 1}}),
        "items: `options.tool_choice`: expected `auto`, `none`, `required` or an object, found 1",
    );
    check(
        json!({"messages": []}),
        "not a document of format items: expected an array of items or an object with `items`",
    );
}

/// What people write by hand is written in the one spelling of stored items, and then stays.
#[test]
fn other_spellings_become_the_stored_one() {
    let cases = [
        (
            json!({"role": "user", "content": "x"}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}),
        ),
        (
            json!({"type": "message", "role": "assistant", "content": "x", "note": 1}),
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}], "note": 1}),
        ),
        (
            json!({"type": "message", "role": "user"}),
            json!({"type": "message", "role": "user", "content": []}),
        ),
        (
            json!({"type": "compaction", "summary": [], "encrypted_content": "E"}),
            json!({"type": "compaction", "encrypted_content": "E"}),
        ),
        (
            json!({"type": "reasoning", "signature": "S"}),
            json!({"type": "reasoning", "summary": [], "signature": "S"}),
        ),
        (
            json!({"type": "function_call", "callId": "c", "name": "f", "arguments": "{}"}),
            json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
        ),
    ];
    for (by_hand, stored) in cases {
        for document in [json!([by_hand]), json!([stored])] {
            let lifted = lift(Format::Items, &document.to_string()).unwrap();
            assert_eq!(lifted.losses, [], "{document}");
            let written: serde_json::Value =
                serde_json::from_str(&written(lifted.kind, &lifted.transcript)).unwrap();
            assert_eq!(written, json!([stored]), "{document}");
        }
    }
}
