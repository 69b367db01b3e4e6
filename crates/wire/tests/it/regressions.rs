//! Faults that translators between formats are known for, each as a document that brings one about.
//!
//! The table of all of them is docs/behaviour/compile-lessons.md. Not here: those that a module about one format or
//! about repair shows already.

use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Role, Transcript};
use contexture_testdata::request_validator;
use contexture_wire::{Dialect, DocumentKind, Format, LossKind, Lowered, lift, lower};
use serde_json::{Value, json};

fn to(format: Format, items: Vec<Item>) -> (Value, Lowered) {
    let mut transcript = Transcript {
        model: Some("m".to_owned()),
        items,
        ..Transcript::default()
    };
    transcript.options.max_output_tokens = Some(10);
    let lowered = lower(&Dialect::of(format), DocumentKind::Request, &transcript);
    (serde_json::from_str(&lowered.json).unwrap(), lowered)
}

/// The document, which the provider's schema must allow.
fn valid(format: Format, items: Vec<Item>) -> (Value, Lowered) {
    let (document, lowered) = to(format, items);
    let findings = request_validator(format.as_str()).validation_errors(&document);
    assert!(findings.is_empty(), "{format}: {findings:#?} {document}");
    (document, lowered)
}

fn lifted(format: Format, document: &Value) -> Vec<Item> {
    lift(format, &document.to_string())
        .unwrap()
        .transcript
        .items
}

fn user(text: &str) -> Item {
    Message::text(Role::User, text).into()
}

/// What a host keeps beside a message is its own business: it is sent to nobody who did not say it in that form.
#[test]
fn keys_of_the_host_reach_no_other_provider() {
    let items = [
        r#"{"type":"message","id":"m_1","role":"user","content":"hi","createdAt":"2026-01-01","_userContent":[1]}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so","createdAt":1}],"__proto__":{"a":1}}"#,
        r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{}","createdAt":1}"#,
        r#"{"type":"function_call_output","call_id":"c","output":"1","name":"f","createdAt":1}"#,
        r#"{"type":"message","role":"user","content":"and?"}"#,
    ];
    let items = items.map(|document| Item::parse(document).unwrap());
    let chat = lifted(
        Format::OpenAiChat,
        &json!([
            {"role": "user", "content": "hi", "id": "m_1", "createdAt": 1},
            {"role": "assistant", "content": "so", "_userContent": [1], "tool_calls": [
                {"id": "c", "type": "function", "createdAt": 1, "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "1", "__proto__": {"a": 1}, "name": "f"},
        ]),
    );
    // An item is a document of Responses, a message one of Chat: each has its own back as it was.
    for (items, own) in [
        (items.to_vec(), Format::OpenAiResponses),
        (chat, Format::OpenAiChat),
    ] {
        for format in Format::PROVIDERS.into_iter().filter(|one| *one != own) {
            let (document, _) = valid(format, items.clone());
            let text = document.to_string();
            for key in ["createdAt", "_userContent", "__proto__", "m_1"] {
                assert!(!text.contains(key), "{format}: {key}: {text}");
            }
        }
    }
}

/// A chat's messages under the roles it has had: none is dropped on the way in.
#[test]
fn no_role_of_a_chat_is_dropped() {
    let document = json!([
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "one"},
        {"role": "developer", "content": "be kind"},
        {"role": "assistant", "content": [{"type": "text", "text": "two"}, {"type": "refusal", "refusal": "three"}]},
        {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "four"},
    ]);
    let lifted = lift(Format::OpenAiChat, &document.to_string()).unwrap();
    let lowered = lower(
        &Dialect::of(Format::OpenAiChat),
        DocumentKind::Messages,
        &lifted.transcript,
    );
    let back: Value = serde_json::from_str(&lowered.json).unwrap();
    assert_eq!((back, lowered.losses), (document, vec![]));
    for format in Format::PROVIDERS {
        let lowered = lower(
            &Dialect::of(format),
            DocumentKind::Request,
            &lifted.transcript,
        );
        for said in ["be brief", "one", "be kind", "two", "three", "four"] {
            assert!(lowered.json.contains(said), "{format}: {said}: {lowered:?}");
        }
    }
    let stranger = r#"[{"role":"narrator","content":"once"}]"#;
    assert!(lift(Format::OpenAiChat, stranger).is_err());
}

/// Only one provider names the function in its output; the name is that of the call, whoever wrote it.
#[test]
fn an_output_is_named_after_its_call() {
    let chat = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_7", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "call_7", "content": "42"},
    ]);
    let anthropic = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_7", "name": "look_up", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_7", "content": "42"}]},
    ]);
    for (format, document) in [(Format::OpenAiChat, chat), (Format::Anthropic, anthropic)] {
        let (document, _) = valid(Format::Gemini, lifted(format, &document));
        let response = &document["contents"][2]["parts"][0]["functionResponse"];
        assert_eq!(response["name"], "look_up", "{document}");
        assert!(response["response"].is_object(), "{document}");
    }
}

/// A system prompt comes as a text or as blocks: both are one instruction, not one for each character.
#[test]
fn a_system_prompt_is_one_instruction_in_either_form() {
    for system in [
        json!("be brief"),
        json!([{"type": "text", "text": "be brief"}]),
    ] {
        let request = json!({"model": "m", "max_tokens": 1, "system": system,
            "messages": [{"role": "user", "content": "hi"}]});
        let lifted = lift(Format::Anthropic, &request.to_string()).unwrap();
        let said = lifted.transcript.instructions;
        let said: Vec<String> = said
            .into_iter()
            .map(|message| Item::from(message).text())
            .collect();
        assert_eq!(said, ["be brief"]);
    }
}

/// A file that one provider keeps under an id: its own again at home, a loss with a place anywhere else.
#[test]
fn a_file_by_its_id_is_sent_home_and_told_elsewhere() {
    let message = json!([{"role": "user", "content": [
        {"type": "text", "text": "what is this?"},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}}]}]);
    for format in Format::PROVIDERS {
        let (document, lowered) = valid(format, lifted(Format::Anthropic, &message));
        assert!(lowered.json.contains("what is this?"));
        if format == Format::Anthropic {
            assert!(lowered.losses.is_empty(), "{:?}", lowered.losses);
            assert!(lowered.json.contains("file_1"), "{document}");
        } else {
            let about = |kind: LossKind| lowered.losses.iter().any(|loss| loss.what == kind);
            let told = about(LossKind::Part) || about(LossKind::Value) || about(LossKind::Field);
            assert!(
                told || lowered.json.contains("file_1"),
                "{format}: {document}"
            );
        }
    }
}

/// No text of nothing: a picture alone, calls alone, and a call without a word before it are sent as they are.
#[test]
fn nothing_empty_is_sent_where_it_is_refused() {
    let picture = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":""},
        {"type":"input_image","image_url":"data:image/png;base64,AA=="}]}"#;
    let chat = json!([
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "c", "content": ""},
    ]);
    let mut items = vec![Item::parse(picture).unwrap()];
    items.extend(lifted(Format::OpenAiChat, &chat));
    for format in [Format::Anthropic, Format::Gemini] {
        let (document, lowered) = valid(format, items.clone());
        let text = document.to_string();
        assert!(!text.contains(r#""text":"""#), "{text}");
        assert!(text.contains("image/png"), "{:?}", lowered.losses);
    }
}

/// Arguments that are no object reach no provider that parses them, and break no request.
#[test]
fn arguments_that_are_no_object_break_no_request() {
    for arguments in [
        "",
        " ",
        "{",
        r#"{"path":"a"#,
        "[1]",
        "null",
        "7",
        r#""{}""#,
        "{a}",
        "\u{0}",
    ] {
        let items = vec![
            user("hi"),
            FunctionCall::new("c", "f", arguments).into(),
            FunctionCallOutput::new("c", Output::Text("ok".to_owned())).into(),
        ];
        for (format, pointer) in [
            (Format::Anthropic, "/messages/1/content/0/input"),
            (Format::Gemini, "/contents/1/parts/0/functionCall/args"),
        ] {
            let (document, lowered) = valid(format, items.clone());
            let sent = document.pointer(pointer).unwrap();
            assert_eq!(sent, &json!({}), "{format}: {arguments:?}");
            let told = lowered
                .losses
                .iter()
                .any(|loss| loss.path == "items[1].arguments");
            // Nothing is no arguments; anything else that is thrown away is told.
            assert_eq!(
                told,
                !arguments.trim().is_empty(),
                "{format}: {arguments:?}: {:?}",
                lowered.losses
            );
        }
    }
}
