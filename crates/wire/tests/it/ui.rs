//! UI messages: checked as the AI SDK checks them, lifted and folded without a difference.

use std::io::Read;

use contexture_ir::{Audience, Item, Output, Raw, ResponseId, Role, UiMessage, UiRole};
use contexture_wire::ui::{
    Extensions, FoldAudience, FoldItem, FoldOptions, UnknownFields, fold, lift_message, validate,
    validate_json,
};
use contexture_wire::{Dialect, DocumentKind, Format, LossKind, WireError, lift, lower};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const EVERYTHING: FoldOptions<'static> = FoldOptions {
    audience: FoldAudience::Everyone,
    include_system: true,
    extensions: Extensions::Hidden,
    unknown_fields: UnknownFields::Kept,
};

/// What the AI SDK said about some messages.
#[derive(Deserialize)]
struct Case {
    name: String,
    messages: Box<RawValue>,
    valid: Option<Box<RawValue>>,
    path: Option<String>,
}

fn sdk_cases() -> Vec<Case> {
    let bytes = include_bytes!("../fixtures/ui/validate.jsonl.gz").as_slice();
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_string(&mut text)
        .unwrap();
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap());
    cases.collect()
}

fn json_of(messages: &[UiMessage]) -> String {
    serde_json::to_string(messages).unwrap()
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn validation_agrees_with_the_sdk() {
    let cases = sdk_cases();
    let (mut valid, mut refused) = (0, 0);
    for case in &cases {
        let ours = validate_json(case.messages.get());
        match (&case.valid, ours) {
            // Byte by byte: keys come out in the SDK's order.
            (Some(theirs), Ok(ours)) => {
                assert_eq!(json_of(&ours), theirs.get(), "{}", case.name);
                assert_eq!(validate(&ours).unwrap(), ours, "{}", case.name);
                valid += 1;
            }
            (None, Err(WireError::InvalidUi { path, .. })) => {
                let theirs = case.path.as_deref().unwrap();
                // The SDK reports a missing discriminator of a nested union on the union itself.
                let same = path == theirs || path.starts_with(theirs) || theirs.is_empty();
                assert!(same, "{}: {path} against {theirs}", case.name);
                refused += 1;
            }
            (theirs, ours) => panic!("{}: {ours:?} against {theirs:?}", case.name),
        }
    }
    assert!(valid > 500 && refused > 1000, "{valid} {refused}");
}

/// Folds what a message lifts to, as the engine would after storing it.
fn refold(message: &UiMessage) -> Vec<UiMessage> {
    let lifted = lift_message(message);
    let items: Vec<FoldItem<'_>> = lifted
        .items
        .iter()
        .map(|item| FoldItem {
            message_id: Some(&lifted.message_id),
            ..FoldItem::new(item)
        })
        .collect();
    fold(&items, &EVERYTHING)
}

#[test]
fn every_valid_message_of_the_sdk_comes_back() {
    for case in sdk_cases() {
        let Some(valid) = case.valid else { continue };
        for message in validate_json(valid.get()).unwrap() {
            let lifted = lift_message(&message);
            assert_eq!(lifted.losses, [], "{}", case.name);
            let back = refold(&message);
            assert_eq!(
                value(&json_of(&back)),
                value(&json_of(std::slice::from_ref(&message))),
                "{}: {:#?}",
                case.name,
                lifted.items
            );
            // Items survive being written and read.
            let text = serde_json::to_string(&lifted.items).unwrap();
            assert_eq!(
                Item::parse_all(&text).unwrap(),
                lifted.items,
                "{}",
                case.name
            );
        }
    }
}

fn check_document(document: &Value, kind: DocumentKind) {
    let text = document.to_string();
    let lifted = lift(Format::Ui, &text).unwrap();
    assert_eq!(lifted.kind, kind);
    assert_eq!(lifted.losses, []);
    let lowered = lower(&Dialect::of(Format::Ui), kind, &lifted.transcript);
    assert_eq!(lowered.losses, []);
    assert_eq!(&value(&lowered.json), document);
}

#[test]
fn documents_come_back() {
    let system = json!({"id": "s", "role": "system", "metadata": 1, "parts": [{"type": "text", "text": "be brief"}]});
    let user = json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]});
    let answer = json!({"id": "", "role": "assistant", "parts": [
        {"type": "step-start"},
        {"type": "text", "text": "let me", "state": "done"},
        {"type": "tool-sql", "toolCallId": "c", "state": "output-available", "input": {"q": 1}, "output": "42"},
        {"type": "step-start"},
        {"type": "text", "text": "done", "state": "done"},
    ]});
    let again = json!({"id": "u", "role": "user", "parts": [{"type": "data-x", "data": 1}, {"type": "text", "text": "hi"}]});
    check_document(
        &json!([system, user, answer, again, user]),
        DocumentKind::Messages,
    );
    check_document(
        &json!([user, system, answer, answer]),
        DocumentKind::Messages,
    );
    check_document(
        &json!({"messages": [user], "id": "chat", "trigger": "submit-message", "big": 12345678901234567890_u64}),
        DocumentKind::Request,
    );
    check_document(&answer, DocumentKind::Response);
}

#[test]
fn leading_system_messages_are_instructions() {
    let text = json!([
        {"id": "s", "role": "system", "parts": [{"type": "text", "text": "be brief"}]},
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]},
    ]);
    let transcript = lift(Format::Ui, &text.to_string()).unwrap().transcript;
    assert_eq!(transcript.instructions.len(), 1);
    assert_eq!(transcript.instructions[0].role, Role::System);
    assert_eq!(transcript.items[1].text(), "hi");
}

#[test]
fn unknown_fields_come_back_and_are_losses_elsewhere() {
    let text = r#"{"messages":[{"id":"u","role":"user","createdAt":1,"parts":[{"type":"text","text":"hi","x":1}]}]}"#;
    check_document(&value(text), DocumentKind::Request);
    let transcript = lift(Format::Ui, text).unwrap().transcript;
    let lowered = lower(
        &Dialect::of(Format::OpenAiChat),
        DocumentKind::Request,
        &transcript,
    );
    let losses: Vec<&str> = lowered
        .losses
        .iter()
        .map(|loss| loss.path.as_str())
        .collect();
    let wanted = ["items[0].createdAt", "items[1].content[0].unknown"];
    assert!(
        wanted.iter().all(|path| losses.contains(path)),
        "{losses:?}"
    );
}

/// Every message that the SDK accepts, as it came: stored whole, and shown as the SDK validates it.
#[test]
fn what_validation_drops_is_kept_beside_the_items() {
    let mut dropped = 0;
    for case in sdk_cases() {
        let Some(valid) = case.valid else { continue };
        let valid = validate_json(valid.get()).unwrap();
        let given: Vec<Raw> = serde_json::from_str(case.messages.get()).unwrap();
        for (given, valid) in given.iter().zip(valid) {
            let given = UiMessage::parse(given.get()).unwrap();
            let lifted = lift_message(&given);
            assert_eq!(lifted.losses, [], "{}", case.name);
            let back = |unknown_fields| {
                let items = lifted.items.iter().map(|item| FoldItem {
                    message_id: Some(&lifted.message_id),
                    ..FoldItem::new(item)
                });
                let options = FoldOptions {
                    unknown_fields,
                    ..EVERYTHING
                };
                value(&json_of(&fold(&items.collect::<Vec<_>>(), &options)))
            };
            let of = |message: &UiMessage| value(&json_of(std::slice::from_ref(message)));
            assert_eq!(back(UnknownFields::Kept), of(&given), "{}", case.name);
            assert_eq!(back(UnknownFields::Dropped), of(&valid), "{}", case.name);
            dropped += usize::from(of(&given) != of(&valid));
        }
    }
    assert!(dropped > 20, "{dropped}");
}

fn check_error(text: &str, expected: &str) {
    let error = lift(Format::Ui, text).unwrap_err();
    assert_eq!(error.to_string(), expected, "{text}");
}

#[test]
fn errors_name_the_place() {
    check_error(
        r#"[{"id":"a","role":"tool","parts":[]}]"#,
        "ui message: `[0].role`: expected `system`, `user` or `assistant`, found \"tool\"",
    );
    check_error(
        r#"[{"id":"a","role":"user","parts":[]}]"#,
        "ui message: `[0].parts`: expected at least one part",
    );
    check_error(
        r#"[{"id":"a","role":"user","role":"tool","parts":[]}]"#,
        "ui message: `[0].role`: expected `system`, `user` or `assistant`, found \"tool\"",
    );
    check_error(
        r#"[{"id":"a","role":"assistant","parts":[{"type":"tool-x","toolCallId":"1","state":"input-available","input":1,"output":2}]}]"#,
        "ui message: `[0].parts[0].output`: expected nothing in this state, found 2",
    );
    check_error(
        r#"{"prompt":"x"}"#,
        "not a document of format ui: expected an array of UI messages, an object with `messages`, or one UI message",
    );
    check_error(
        "[]",
        "ui message: `messages`: expected at least one message",
    );
}

fn assistant(parts: Value) -> UiMessage {
    let text = json!({"id": "m", "role": "assistant", "parts": parts}).to_string();
    UiMessage::parse(&text).unwrap()
}

/// The kinds of the items, with a short form of what they say.
fn outline(items: &[Item]) -> Vec<String> {
    let short = |item: &Item| match item {
        Item::Message(message) => format!("{} {}", message.role.as_str(), item.text()),
        Item::FunctionCall(call) => format!("call {} {}", call.call_id, call.arguments),
        Item::FunctionCallOutput(output) => format!("output {} {}", output.call_id, item.text()),
        Item::Reasoning(_) => format!("reasoning {}", item.text()),
        other => other.kind().to_owned(),
    };
    items.iter().map(short).collect()
}

fn done(id: &str) -> Value {
    json!({"type": "tool-f", "toolCallId": id, "state": "output-available", "input": {}, "output": id})
}

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

#[test]
fn outputs_stand_behind_their_step() {
    let step = json!({"type": "step-start"});
    let own = json!({"type": "tool-s", "toolCallId": "s", "state": "output-available", "providerExecuted": true, "input": {}, "output": 1});
    let steering =
        json!({"type": "steering-message", "id": "x", "parts": [{"type": "text", "text": "stop"}]});
    let denied = json!({"type": "tool-f", "toolCallId": "d", "state": "output-denied", "input": {}, "approval": {"id": "a", "approved": false, "reason": "no"}});
    let cases = [
        (
            json!([step, text("a"), done("1"), done("2"), step, text("b")]),
            vec![
                "assistant a",
                "call 1 {}",
                "call 2 {}",
                "output 1 1",
                "output 2 2",
                "assistant b",
            ],
        ),
        (
            json!([step, done("1"), text("a"), step, text("b")]),
            vec!["call 1 {}", "assistant a", "output 1 1", "assistant b"],
        ),
        // Without marks, text after an output answers it.
        (
            json!([done("1"), done("2"), text("a")]),
            vec![
                "call 1 {}",
                "call 2 {}",
                "output 1 1",
                "output 2 2",
                "assistant a",
            ],
        ),
        (
            json!([step, own, text("a")]),
            vec!["call s {}", "output s 1", "assistant a"],
        ),
        (
            json!([step, done("1"), steering, step, text("a")]),
            vec!["call 1 {}", "output 1 1", "user stop", "assistant a"],
        ),
        (
            json!([denied, text("a")]),
            vec!["call d {}", "ctx:approval", "output d no", "assistant a"],
        ),
    ];
    for (parts, expected) in cases {
        let message = assistant(parts.clone());
        assert_eq!(outline(&lift_message(&message).items), expected, "{parts}");
        assert_eq!(refold(&message), [message], "{parts}");
    }
}

#[test]
fn opaque_reasoning_reaches_the_item_and_comes_back() {
    let cases = [
        (
            json!({"anthropic": {"signature": "sig"}}),
            json!({"signature": "sig", "format": "anthropic-claude-v1", "content": [{"type": "reasoning_text", "text": "hm"}], "summary": []}),
        ),
        (
            json!({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "enc"}}),
            json!({"id": "rs_1", "encrypted_content": "enc", "format": "openai-responses-v1", "summary": [{"type": "summary_text", "text": "hm"}]}),
        ),
        (
            json!({"google": {"thoughtSignature": "sig"}}),
            json!({"signature": "sig", "format": "google-gemini-v1", "content": [{"type": "reasoning_text", "text": "hm"}], "summary": []}),
        ),
    ];
    for (metadata, expected) in cases {
        let message =
            assistant(json!([{"type": "reasoning", "text": "hm", "providerMetadata": metadata}]));
        let items = lift_message(&message).items;
        let mut expected = expected;
        expected["type"] = "reasoning".into();
        assert_eq!(value(&items[0].to_json()), expected);
        assert_eq!(refold(&message), [message]);
    }
    let redacted = assistant(
        json!([{"type": "reasoning", "text": "", "providerMetadata": {"anthropic": {"redactedData": "xx"}}}]),
    );
    let Item::Reasoning(item) = &lift_message(&redacted).items[0] else {
        panic!()
    };
    assert_eq!(
        (item.encrypted_content.as_deref(), &item.content),
        (Some("xx"), &None)
    );
}

#[test]
fn summaries_of_one_openai_item_are_one_item() {
    let part = |text: &str, sealed: Value| json!({"type": "reasoning", "text": text, "state": "done", "providerMetadata": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": sealed}}});
    let message = assistant(json!([
        part("a", json!(null)),
        part("b", json!("enc")),
        text("x")
    ]));
    let items = lift_message(&message).items;
    assert_eq!(items.len(), 2);
    let Item::Reasoning(item) = &items[0] else {
        panic!()
    };
    assert_eq!(
        (item.summary.len(), item.encrypted_content.as_deref()),
        (2, Some("enc"))
    );
    assert_eq!(
        value(&json_of(&refold(&message))),
        value(&json_of(&[message]))
    );
}

fn folded(items: &Value, options: &FoldOptions<'_>) -> Value {
    let items = Item::parse_all(&items.to_string()).unwrap();
    let entries: Vec<FoldItem<'_>> = items.iter().map(FoldItem::new).collect();
    let messages = fold(&entries, options);
    if !messages.is_empty() {
        assert_eq!(validate(&messages).unwrap(), messages);
    }
    value(&json_of(&messages))
}

#[test]
fn items_of_any_source_fold() {
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": arguments});
    let output = |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let user = json!({"role": "user", "content": "hi"});
    let said = json!({"role": "assistant", "content": "ok", "id": "msg_1", "status": "completed"});
    let cases = [
        // A run of the model's items is one message; a repeated call id answers the nearest call.
        (
            json!([
                user,
                said,
                call("c", "{\"a\":1}"),
                output("c", "{\"x\":1}"),
                call("c", "oops"),
                output("c", "plain")
            ]),
            json!([
                {"id": "msg-0", "role": "user", "parts": [{"type": "text", "text": "hi"}]},
                {"id": "msg-1", "role": "assistant", "parts": [
                    {"type": "text", "text": "ok", "state": "done", "providerMetadata": {"openai": {"itemId": "msg_1"}}},
                    {"type": "tool-f", "toolCallId": "c", "state": "output-available", "input": {"a": 1}, "output": {"x": 1}},
                    {"type": "step-start"},
                    {"type": "tool-f", "toolCallId": "c", "state": "output-available", "input": "oops", "output": "plain"},
                ]},
            ]),
        ),
        // An error, a call cut off, a call waiting, an output nobody asked for.
        (
            json!([
                call("1", ""), {"type": "function_call_output", "call_id": "1", "output": "bad", "is_error": true},
                {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{\"a", "status": "incomplete"},
                call("3", ""), output("9", "lost"),
            ]),
            json!([{"id": "msg-0", "role": "assistant", "parts": [
                {"type": "tool-f", "toolCallId": "1", "state": "output-error", "errorText": "bad"},
                {"type": "step-start"},
                {"type": "tool-f", "toolCallId": "2", "state": "input-streaming", "rawInput": "{\"a"},
                {"type": "tool-f", "toolCallId": "3", "state": "input-available", "input": {}},
            ]}]),
        ),
        // Pictures in an output stay parts.
        (
            json!([call("1", "{}"), {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]}]),
            json!([{"id": "msg-0", "role": "assistant", "parts": [
                {"type": "tool-f", "toolCallId": "1", "state": "output-available", "input": {}, "output": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
            ]}]),
        ),
        // Sources stand behind their text; a refusal says so; media have types.
        (
            json!([
                {"role": "assistant", "content": [{"type": "output_text", "text": "see", "annotations": [{"type": "url_citation", "url": "https://e.org", "title": "E", "start_index": 0, "end_index": 3}]}, {"type": "refusal", "refusal": "no"}]},
                {"role": "user", "content": [{"type": "input_image", "image_url": "https://e.org/a"}, {"type": "input_file", "file_id": "file-1", "filename": "a.pdf"}]},
            ]),
            json!([
                {"id": "msg-0", "role": "assistant", "parts": [
                    {"type": "text", "text": "see"}, {"type": "source-url", "sourceId": "source-1", "url": "https://e.org", "title": "E"},
                    {"type": "text", "text": "no", "providerMetadata": {"contexture": {"refusal": true}}},
                ]},
                {"id": "msg-1", "role": "user", "parts": [
                    {"type": "file", "mediaType": "image/*", "url": "https://e.org/a"},
                    {"type": "file", "mediaType": "application/octet-stream", "filename": "a.pdf", "url": "", "providerReference": {"openai": "file-1"}},
                ]},
            ]),
        ),
        // Broken bookkeeping is ignored.
        (
            json!([{"type": "ctx:part", "part": {"type": "tool-x"}}, {"type": "ctx:approval", "call_id": 1}, {"type": "ctx:message", "role": "nobody"}, {"type": "ctx:state"}, user]),
            json!([{"id": "msg-0", "role": "assistant", "parts": []}, {"id": "msg-1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]),
        ),
    ];
    for (items, expected) in cases {
        assert_eq!(folded(&items, &FoldOptions::default()), expected, "{items}");
    }
}

#[test]
fn system_messages_and_extensions_show_on_request() {
    let items = json!([
        {"role": "developer", "content": "rules"},
        {"role": "user", "content": "hi"},
        {"type": "acme:note", "id": "n", "x": 1},
        {"type": "compaction", "summary": [{"type": "summary_text", "text": "s"}]},
    ]);
    let user = json!({"id": "msg-1", "role": "user", "parts": [{"type": "text", "text": "hi"}]});
    assert_eq!(folded(&items, &FoldOptions::default()), json!([user]));
    let all = FoldOptions {
        include_system: true,
        extensions: Extensions::Listed(&["acme:note"]),
        ..FoldOptions::default()
    };
    assert_eq!(
        folded(&items, &all),
        json!([
            {"id": "msg-0", "role": "system", "parts": [{"type": "text", "text": "rules"}]},
            user,
            {"id": "msg-2", "role": "assistant", "parts": [{"type": "data-acme-note", "id": "n", "data": {"type": "acme:note", "id": "n", "x": 1}}]},
        ])
    );
}

#[test]
fn audience_ids_and_responses_decide() {
    let items = Item::parse_all(
        &json!([
            {"role": "assistant", "content": "a"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "secret"},
            {"type": "ctx:message", "metadata": {"n": 1}},
            {"type": "function_call_output", "call_id": "c", "output": "late"},
            {"type": "ctx:message", "metadata": {"n": 2}},
        ])
        .to_string(),
    )
    .unwrap();
    let response = |name: &str| Some(ResponseId::derive("test", &[name.as_bytes()]));
    let entry = |index: usize, message_id, response, audience| FoldItem {
        message_id: Some(message_id),
        response,
        audience,
        ..FoldItem::new(&items[index])
    };
    let entries = [
        entry(0, "m", response("1"), Audience::ALL),
        entry(1, "m", response("1"), Audience::ALL),
        entry(2, "m", response("2"), Audience::ALL),
        entry(3, "u", None, Audience::MODEL),
        entry(4, "m", None, Audience::NONE),
        entry(5, "late", None, Audience::ALL),
        entry(6, "m", None, Audience::NONE),
    ];
    let expected = json!([{"id": "m", "role": "assistant", "metadata": {"n": 2}, "parts": [
        {"type": "text", "text": "a"},
        {"type": "tool-f", "toolCallId": "c", "state": "output-available", "input": {}, "output": "late"},
        {"type": "step-start"},
        {"type": "text", "text": "b"},
    ]}]);
    assert_eq!(
        value(&json_of(&fold(&entries, &FoldOptions::default()))),
        expected
    );
    let models = FoldOptions {
        audience: FoldAudience::Model,
        ..FoldOptions::default()
    };
    assert_eq!(fold(&entries, &models).len(), 2);
}

#[test]
fn lowering_tells_what_it_loses() {
    let text = json!({
        "model": "m", "instructions": [{"role": "developer", "content": "x"}],
        "items": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi", "ctx:wire": {"gemini": {"partMetadata": 1}, "anthropic": {"~shape": 1}}}]},
            {"type": "compaction", "encrypted_content": "x"},
            {"type": "acme:thing"},
            {"type": "function_call_output", "call_id": "c", "output": "lost"},
            {"type": "message", "role": "assistant", "status": "incomplete", "content": [{"type": "output_text", "text": "x", "logprobs": [1], "annotations": []}]},
        ],
        "tools": [{"type": "function", "name": "f"}],
        "options": {"temperature": 1},
    });
    let transcript = lift(Format::Items, &text.to_string()).unwrap().transcript;
    let lowered = lower(&Dialect::of(Format::Ui), DocumentKind::Request, &transcript);
    let found: Vec<(&str, LossKind)> = lowered
        .losses
        .iter()
        .map(|loss| (loss.path.as_str(), loss.what))
        .collect();
    assert_eq!(
        found,
        [
            ("model", LossKind::Option),
            ("tools[0]", LossKind::Tool),
            ("options.temperature", LossKind::Option),
            ("instructions[0].role", LossKind::Role),
            ("items[0].content[0].partMetadata", LossKind::Field),
            ("items[1]", LossKind::Item),
            ("items[2]", LossKind::Item),
            ("items[3]", LossKind::Item),
            ("items[4].content[0].logprobs", LossKind::Field),
            ("items[4].status", LossKind::Value),
        ]
    );
    let list = &value(&lowered.json)["messages"];
    validate_json(&list.to_string()).unwrap();
}

#[test]
fn half_a_surrogate_pair_is_mended_and_told() {
    let text = r#"[{"id":"u","role":"user","parts":[{"type":"text","text":"a\ud83d b"}]}]"#;
    let lifted = lift(Format::Ui, text).unwrap();
    assert_eq!(lifted.transcript.items[1].text(), "a\u{fffd} b");
    assert_eq!(lifted.losses[0].path, "[0].parts[0].text");
}

#[test]
fn thought_signatures_reach_gemini_fields() {
    let metadata = json!({"google": {"thoughtSignature": "s"}});
    let call = json!({"type": "tool-f", "toolCallId": "c", "state": "input-available", "input": {}, "callProviderMetadata": metadata});
    let message = assistant(json!([call]));
    let items = lift_message(&message).items;
    let signature = items[0]
        .extra()
        .unwrap()
        .wire_fields("gemini")
        .get("thoughtSignature")
        .cloned();
    assert_eq!(signature, Some(Raw::string("s")));
    assert_eq!(
        value(&json_of(&refold(&message))),
        value(&json_of(&[message]))
    );
}

#[test]
fn pictures_in_outputs_are_parts() {
    let picture = json!([{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AA"}]);
    let message = assistant(
        json!([{"type": "tool-f", "toolCallId": "c", "state": "output-available", "input": {}, "output": picture}]),
    );
    let items = lift_message(&message).items;
    let Item::FunctionCallOutput(output) = &items[1] else {
        panic!()
    };
    assert!(matches!(&output.output, Output::Parts(parts) if parts.len() == 2));
    assert_eq!(
        value(&json_of(&refold(&message))),
        value(&json_of(&[message]))
    );
}

/// The parts of every valid case of the SDK's, to be mixed into messages.
fn part_pool() -> Vec<Raw> {
    let valid = sdk_cases().into_iter().filter_map(|case| case.valid);
    let messages = valid.flat_map(|list| validate_json(list.get()).unwrap());
    let mut parts: Vec<Raw> = messages.flat_map(|message| message.parts).collect();
    let more = [
        json!({"type": "step-start"}),
        done("1"),
        done("c1"),
        text("a"),
        json!({"type": "text", "text": "b", "state": "done"}),
        json!({"type": "reasoning", "text": "", "providerMetadata": {"openai": {"itemId": "rs", "reasoningEncryptedContent": "e"}}}),
        json!({"type": "reasoning", "text": "x", "providerMetadata": {"openai": {"itemId": "rs"}}}),
        json!({"type": "reasoning", "text": "x", "providerMetadata": {"contexture": {"id": "i", "format": "f", "signature": "s", "encryptedContent": "e"}, "anthropic": {}}}),
        json!({"type": "reasoning", "text": "x", "providerMetadata": {"contexture": {"id": "i", "format": "anthropic-claude-v1", "signature": "s"}}}),
        json!({"type": "reasoning", "text": "x", "providerMetadata": {"azure": {"itemId": "rs"}, "contexture": {"encryptedContent": "e", "signature": "s"}}}),
        json!({"type": "reasoning", "text": "x", "providerMetadata": {"vertex": {"thoughtSignature": "q"}, "google": {"x": 1}}}),
        json!({"type": "text", "text": "x", "providerMetadata": {"contexture": {"refusal": true}, "anthropic": {"cacheControl": {"type": "ephemeral"}}}}),
        json!({"type": "tool-f", "toolCallId": "1", "state": "output-available", "input": "s", "output": "{\"a\":1}"}),
        json!({"type": "tool-f", "toolCallId": "1", "state": "output-error", "rawInput": "{\"a\"", "errorText": ""}),
        json!({"type": "tool-f", "toolCallId": "1", "state": "input-streaming", "rawInput": "{}"}),
    ];
    for _ in 0..40 {
        parts.extend(
            more.iter()
                .map(|part| Raw::parse(part.to_string()).unwrap()),
        );
    }
    parts
}

fn message(pool: Vec<Raw>) -> impl Strategy<Value = UiMessage> {
    let roles = prop_oneof![
        Just(UiRole::Assistant),
        Just(UiRole::User),
        Just(UiRole::System)
    ];
    let parts = proptest::collection::vec(proptest::sample::select(pool), 1..9);
    (roles, parts, proptest::option::of(0..3), ".{0,3}").prop_map(|(role, parts, metadata, id)| {
        UiMessage {
            id,
            role,
            metadata: metadata.map(|n| Raw::parse(format!("[{n}]")).unwrap()),
            parts,
            extra: contexture_ir::Extra::new(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_message_comes_back(message in message(part_pool())) {
        let lifted = lift_message(&message);
        let back = refold(&message);
        prop_assert_eq!(
            value(&json_of(&back)), value(&json_of(&[message])), "{}", serde_json::to_string_pretty(&lifted.items).unwrap()
        );
    }

    #[test]
    fn any_document_comes_back(messages in proptest::collection::vec(message(part_pool()), 1..6)) {
        let text = json_of(&messages);
        let lifted = lift(Format::Ui, &text).unwrap();
        let lowered = lower(&Dialect::of(Format::Ui), DocumentKind::Messages, &lifted.transcript);
        prop_assert_eq!(value(&lowered.json), value(&text));
    }

    #[test]
    fn mutated_documents_do_not_panic(messages in proptest::collection::vec(message(part_pool()), 1..3), at in any::<prop::sample::Index>(), with in "[\\[\\]{}\",:a0\\\\]") {
        let mut text = json_of(&messages);
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).collect();
        let place = places[at.index(places.len())];
        let length = text[place..].chars().next().unwrap().len_utf8();
        text.replace_range(place..place + length, &with);
        if let Ok(lifted) = lift(Format::Ui, &text) {
            let lowered = lower(&Dialect::of(Format::Ui), lifted.kind, &lifted.transcript);
            let list = value(&lowered.json);
            prop_assert!(list.is_array() || list.is_object());
        }
    }
}

/// Conversations of the SDK's cases: what a person asks, then a message of every kind.
fn conversations() -> Vec<UiMessage> {
    let valid = sdk_cases().into_iter().filter_map(|case| case.valid);
    let messages = valid.flat_map(|list| validate_json(list.get()).unwrap());
    messages
        .filter(|message| message.role == UiRole::Assistant)
        .collect()
}

#[test]
fn every_message_lowers_to_every_provider() {
    let user = UiMessage::text(UiRole::User, "hello");
    for format in Format::PROVIDERS {
        let validator = contexture_testdata::request_validator(format.as_str());
        for message in conversations() {
            let text = json_of(&[user.clone(), message, user.clone()]);
            let mut transcript = lift(Format::Ui, &text).unwrap().transcript;
            transcript.model = Some("m".to_owned());
            transcript.options.max_output_tokens = Some(100);
            let lowered = lower(&Dialect::of(format), DocumentKind::Request, &transcript);
            let found = validator.validation_errors(&value(&lowered.json));
            assert_eq!(
                found,
                Vec::<String>::new(),
                "{format}: {text}\n{}",
                lowered.json
            );
        }
    }
}

/// What items say, without where it was said: ids, statuses, hints.
fn plain(items: &[Item]) -> Vec<String> {
    let own = |item: &&Item| !item.kind().starts_with("ctx:");
    outline(&items.iter().filter(own).cloned().collect::<Vec<_>>())
}

#[test]
fn recorded_histories_survive_the_ui() {
    let mut count = 0;
    for format in Format::PROVIDERS {
        for exchange in contexture_testdata::exchanges(format.as_str()) {
            if exchange.status != 200 {
                continue;
            }
            let items = lift(format, exchange.request.get())
                .unwrap()
                .transcript
                .items;
            // Texts of one message come back as one message each; extensions are data.
            let sayable = |item: &Item| match item {
                Item::FunctionCall(call) => Raw::parse(call.arguments.clone()).is_ok(),
                Item::FunctionCallOutput(_) => true,
                _ => false,
            };
            let before: Vec<Item> = items.iter().filter(|item| sayable(item)).cloned().collect();
            let paired = contexture_wire::partner_indices(&before)
                .iter()
                .all(Option::is_some);
            if before.is_empty() || !paired {
                continue;
            }
            let entries: Vec<FoldItem<'_>> = items.iter().map(FoldItem::new).collect();
            let messages = fold(&entries, &EVERYTHING);
            let after: Vec<Item> = messages
                .iter()
                .flat_map(|message| lift_message(message).items)
                .filter(sayable)
                .collect();
            let sort = |items: &[Item]| {
                let mut lines = plain(items);
                lines.sort();
                lines
            };
            assert_eq!(
                sort(&after),
                sort(&before),
                "{} {}",
                exchange.file,
                exchange.index
            );
            assert_eq!(
                plain(&after),
                plain(&before),
                "{} {}",
                exchange.file,
                exchange.index
            );
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn hostile_sizes_take_linear_time() {
    let keys: Vec<String> = (0..50_000).map(|n| format!("\"k{n}\":1")).collect();
    let wide = format!("{{{}}}", keys.join(","));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let part = format!(r#"{{"type":"text","text":"","providerMetadata":{{"a":{wide}}}}}"#);
    let tool = format!(
        r#"{{"type":"tool-f","toolCallId":"c","state":"input-available","input":{deep},"x":{wide}}}"#
    );
    let calls = vec![done("same").to_string(); 5_000].join(",");
    let text = format!(r#"[{{"id":"m","role":"assistant","parts":[{part},{tool},{calls}]}}]"#);
    let lifted = lift(Format::Ui, &text).unwrap();
    let lowered = lower(
        &Dialect::of(Format::Ui),
        DocumentKind::Messages,
        &lifted.transcript,
    );
    assert_eq!(validate_json(&lowered.json).unwrap()[0].parts.len(), 5_002);
}
