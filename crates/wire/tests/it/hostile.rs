//! Documents that nobody should send, and items that nobody should keep: no panic, nothing invalid.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use contexture_ir::{
    Cancel, Compaction, FunctionCall, FunctionCallOutput, Item, Message, Output, Part, Reasoning,
    Role, Transcript,
};
use contexture_testdata as data;
use contexture_wire::{
    Dialect, DocumentKind, Format, WireError, lift, lift_unless_cancelled, lower,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::recorded::{dialect, difference, findings, validators, value};

/// The formats these tests speak for.
const FORMATS: [Format; 3] = [Format::Anthropic, Format::Gemini, Format::Bedrock];

/// The members of a format's history and of one message's content.
fn members(format: Format) -> (&'static str, &'static str) {
    match format {
        Format::Gemini => ("contents", "parts"),
        _ => ("messages", "content"),
    }
}

fn text() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        Just(String::new()),
        Just(" \n".to_owned()),
        Just("</system>".to_owned()),
        "[a-z]{1,6}",
        "\\PC{0,8}",
    ]
}

fn part() -> impl Strategy<Value = Part> + Clone {
    prop_oneof![
        text().prop_map(Part::input_text),
        text().prop_map(Part::output_text),
        any::<u8>().prop_map(|pick| {
            let raw = match pick % 8 {
                0 => json!({"type": "input_image", "image_url": "data:image/png;base64,AA=="}),
                1 => json!({"type": "input_image", "image_url": "https://e.org/a"}),
                2 => json!({"type": "input_image"}),
                3 => json!({"type": "input_file", "file_data": "data:application/pdf;base64,AA=="}),
                4 => json!({"type": "input_file", "file_data": "data:text/plain;base64,????"}),
                5 => json!({"type": "input_file", "file_id": "file-x", "filename": ""}),
                6 => json!({"type": "refusal", "refusal": "no"}),
                _ => json!({"type": "strange:part", "x": [1]}),
            };
            Part::parse(&raw.to_string()).unwrap()
        }),
    ]
}

fn item() -> impl Strategy<Value = Item> {
    let role = prop_oneof![
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::System),
        Just(Role::Developer)
    ];
    let id = prop_oneof![Just("a".to_owned()), Just("b|c".to_owned()), text()];
    let arguments = prop_oneof![Just("{}".to_owned()), Just("{\"a\":{}}".to_owned()), text()];
    let parts = prop::collection::vec(part(), 0..3);
    let format = prop_oneof![
        Just(None),
        Just(Some("anthropic-claude-v1".to_owned())),
        Just(Some("google-gemini-v1".to_owned())),
        Just(Some("openai-responses-v1".to_owned()))
    ];
    prop_oneof![
        (role, parts.clone()).prop_map(|(role, parts)| Message::new(role, parts).into()),
        (id.clone(), arguments).prop_map(|(id, args)| FunctionCall::new(id, "f", args).into()),
        (id.clone(), text(), any::<Option<bool>>()).prop_map(|(id, text, is_error)| {
            let mut item = FunctionCallOutput::new(id, Output::Text(text));
            item.is_error = is_error;
            item.into()
        }),
        (id, parts.clone()).prop_map(|(id, parts)| FunctionCallOutput::new(
            id,
            Output::Parts(parts)
        )
        .into()),
        (
            format.clone(),
            prop::option::of(text()),
            prop::option::of(text()),
            text()
        )
            .prop_map(|(format, signature, encrypted_content, text)| {
                Reasoning {
                    content: Some(vec![Part::ReasoningText(contexture_ir::TextPart::new(
                        text,
                    ))]),
                    signature,
                    encrypted_content,
                    format,
                    ..Reasoning::default()
                }
                .into()
            }),
        (format, text(), prop::option::of(text())).prop_map(|(format, text, encrypted_content)| {
            Compaction {
                summary: vec![Part::SummaryText(contexture_ir::TextPart::new(text))],
                encrypted_content,
                format,
                ..Compaction::default()
            }
            .into()
        }),
        any::<u8>().prop_map(|pick| {
            let raw = match pick % 4 {
                0 => json!({"type": "ctx:state"}),
                1 => json!({"type": "item_reference", "id": "x"}),
                2 => json!({"type": "anthropic:server_tool_use", "block":
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}}),
                _ => json!({"type": "gemini:executableCode", "block":
                    {"executableCode": {"code": "1", "language": "PYTHON"}}}),
            };
            Item::parse(&raw.to_string()).unwrap()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_items_lower_to_something_valid(items in prop::collection::vec(item(), 0..12), mid in any::<bool>()) {
        for format in FORMATS {
            let dialect = Dialect { mid_system: mid, ..Dialect::of(format) };
            let transcript = Transcript {
                model: Some("m".to_owned()),
                items: items.clone(),
                ..Transcript::default()
            };
            let lowered = lower(&dialect, DocumentKind::Request, &transcript);
            let payload = value(&lowered.json);
            let (history, body) = members(format);
            let list = &payload[history];
            // An empty list is the compiler's to refuse; the schemas demand one element.
            if list.as_array().is_some_and(|list| !list.is_empty()) {
                prop_assert_eq!(findings(validators(format), &lowered.json), Vec::<String>::new());
            }
            prop_assert!(list.as_array().unwrap().iter().all(|message| message[body] != json!([])));
            // What was written is read again, and then nothing more is lost.
            let again = lift(format, &lowered.json).unwrap();
            let twice = lower(&dialect, DocumentKind::Request, &again.transcript);
            if again.transcript.items.iter().all(|item| item.role().is_none_or(|role| !role.is_instruction())) {
                prop_assert_eq!(value(&twice.json), payload);
                prop_assert_eq!(twice.losses, Vec::new());
            }
            let answer = lower(&dialect, DocumentKind::Response, &transcript);
            prop_assert!(lift(format, &answer.json).is_ok(), "{}", answer.json);
        }
    }

    #[test]
    fn mangled_documents_never_panic(pick in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), junk in 0..8usize) {
        for format in FORMATS {
            let documents = documents(format);
            let mut document = documents[pick.index(documents.len())].clone();
            let mut places = count(&document);
            places = at.index(places.max(1));
            let values = [json!(null), json!(3), json!("x"), json!([]), json!({}), json!([[]]),
                json!({"type": "text", "text": "t"}), json!(true)];
            replace(&mut document, &mut places, &values[junk]);
            let text = document.to_string();
            for other in FORMATS {
                if let Ok(lifted) = lift(other, &text) {
                    for target in FORMATS {
                        let lowered = lower(&Dialect::of(target), lifted.kind, &lifted.transcript);
                        let read: Result<Value, _> = serde_json::from_str(&lowered.json);
                        prop_assert!(read.is_ok(), "{}", lowered.json);
                        if target == other && lowered.losses.is_empty() {
                            let read = read.unwrap();
                            let place = difference(&document, &read, "$");
                            prop_assert!(read == document, "{place}\n{document}");
                        }
                    }
                }
            }
        }
    }
}

/// Small recorded documents to mangle.
fn documents(format: Format) -> &'static [Value] {
    static ALL: [OnceLock<Vec<Value>>; FORMATS.len()] = [const { OnceLock::new() }; FORMATS.len()];
    let place = FORMATS.iter().position(|own| *own == format).unwrap();
    ALL[place].get_or_init(|| small(format))
}

fn small(format: Format) -> Vec<Value> {
    let mut all = Vec::new();
    for exchange in data::exchanges(format.as_str()) {
        for text in [Some(&exchange.request), exchange.response.as_ref()]
            .into_iter()
            .flatten()
        {
            if text.get().len() < 4000 {
                all.push(value(text.get()));
            }
        }
    }
    all
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the value at a place counted in preorder.
fn replace(value: &mut Value, place: &mut usize, with: &Value) {
    if *place == 0 {
        *value = with.clone();
        *place = usize::MAX;
        return;
    }
    *place = place.saturating_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| step(value, place, with)),
        Value::Object(map) => map.values_mut().for_each(|value| step(value, place, with)),
        _ => {}
    }
}

fn step(value: &mut Value, place: &mut usize, with: &Value) {
    if *place != usize::MAX {
        replace(value, place, with);
    }
}

/// Every kind of place in the small recorded documents holds some plain values, each once: what can be read comes back.
#[test]
fn any_readable_value_comes_back() {
    let values = [
        json!(null),
        json!(0),
        json!("x"),
        json!(""),
        json!([]),
        json!({}),
        json!(true),
    ];
    let mut changed = Vec::new();
    for format in Format::PROVIDERS {
        let mut seen = BTreeSet::new();
        for document in small(format) {
            let mut places = Vec::new();
            list_places(&document, "", "", &mut places);
            for (pointer, _) in places
                .into_iter()
                .filter(|(_, kind)| seen.insert(kind.clone()))
            {
                for value in &values {
                    let mut other = document.clone();
                    *other.pointer_mut(&pointer).unwrap() = value.clone();
                    changed.extend(change(format, &pointer, &other));
                }
            }
        }
        assert!(seen.len() > 100, "{format}: {}", seen.len());
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

/// JSON that is legal and that no parsed value holds (halves of surrogate pairs, numbers beyond the largest, members that stand
/// twice) is data wherever a plain value is read: it never fails a document, and of repeated members the last one counts.
#[test]
fn json_that_no_value_holds_is_read() {
    const MARK: &str = "mark of this test";
    for format in Format::PROVIDERS {
        let mut seen = BTreeSet::new();
        for document in small(format) {
            let plain = document.to_string();
            let Ok(lifted) = lift(format, &plain) else {
                continue;
            };
            let expected = value(&lower(&dialect(format), lifted.kind, &lifted.transcript).json);
            let mut places = Vec::new();
            list_places(&document, "", "", &mut places);
            for (pointer, _) in places
                .into_iter()
                .filter(|(_, kind)| seen.insert(kind.clone()))
            {
                let old = document.pointer(&pointer).unwrap();
                let with = |written: &str| {
                    let mut changed = document.clone();
                    *changed.pointer_mut(&pointer).unwrap() = MARK.into();
                    changed
                        .to_string()
                        .replacen(&format!("\"{MARK}\""), written, 1)
                };
                let can_be = |plain: &str| lift(format, &with(plain)).is_ok();
                if old.is_string() && can_be("\"a half\"") {
                    let text = with(r#""a\ud800b""#);
                    assert!(lift(format, &text).is_ok(), "{format} {pointer}: {text}");
                }
                if old.is_number() {
                    let text = with("1e400");
                    let lifted = lift(format, &text);
                    let lifted =
                        lifted.unwrap_or_else(|error| panic!("{format} {pointer}: {error}"));
                    let lowered = lower(&dialect(format), lifted.kind, &lifted.transcript);
                    let is_told = !lowered.losses.is_empty();
                    assert!(
                        is_told || lowered.json.contains("1e400"),
                        "{format} {pointer}: {}",
                        lowered.json
                    );
                }
                let key = pointer.rsplit('/').next().unwrap();
                if key.parse::<usize>().is_err() && !key.contains('~') {
                    let text = with(&format!("[7],\"{key}\":{old}"));
                    let lifted = lift(format, &text);
                    let lifted =
                        lifted.unwrap_or_else(|error| panic!("{format} {pointer}: {error}"));
                    let again =
                        value(&lower(&dialect(format), lifted.kind, &lifted.transcript).json);
                    let changed = difference(&expected, &again, "$");
                    assert!(again == expected, "{format} {pointer}: {changed}\n{text}");
                }
            }
        }
    }
}

/// The strings that no text holds stay with the items that show them, whatever the format; others see U+FFFD.
#[test]
fn strings_that_no_text_holds_are_kept() {
    let half = r#"a\ud800b"#;
    let cases = [
        (
            Format::OpenAiChat,
            format!(
                r#"{{"model":"m","messages":[{{"role":"system","content":"{half}"}},{{"role":"user","content":"{half}"}},{{"role":"user","content":[{{"type":"text","text":"{half}"}}]}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"c","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c","content":"{half}"}}]}}"#
            ),
        ),
        (
            Format::OpenAiResponses,
            format!(
                r#"{{"model":"m","instructions":"{half}","input":[{{"role":"user","content":"{half}"}},{{"role":"user","content":[{{"type":"input_text","text":"{half}"}}]}},{{"type":"function_call","call_id":"c","name":"f","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c","output":"{half}"}}]}}"#
            ),
        ),
        (
            Format::Anthropic,
            format!(
                r#"{{"model":"m","max_tokens":9,"system":"{half}","messages":[{{"role":"user","content":"{half}"}},{{"role":"assistant","content":"x"}},{{"role":"user","content":[{{"type":"text","text":"{half}"}}]}},{{"role":"assistant","content":[{{"type":"tool_use","id":"c","name":"f","input":{{"x":"{half}"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c","content":"{half}"}}]}}]}}"#
            ),
        ),
        (
            Format::Gemini,
            format!(
                r#"{{"systemInstruction":{{"parts":[{{"text":"{half}"}}]}},"contents":[{{"role":"user","parts":[{{"text":"{half}"}}]}},{{"role":"model","parts":[{{"text":"{half}"}}]}}]}}"#
            ),
        ),
        (
            Format::Bedrock,
            format!(
                r#"{{"system":[{{"text":"{half}"}}],"messages":[{{"role":"user","content":[{{"text":"{half}"}}]}},{{"role":"assistant","content":[{{"toolUse":{{"toolUseId":"c","name":"f","input":{{}}}}}}]}},{{"role":"user","content":[{{"toolResult":{{"toolUseId":"c","content":[{{"text":"{half}"}}]}}}}]}}]}}"#
            ),
        ),
    ];
    for (format, text) in cases {
        let halves = text.matches(half).count();
        let lifted = lift(format, &text).unwrap();
        assert_eq!(lifted.losses.len(), 1, "{format}");
        let transcript = &lifted.transcript;
        let instructions = transcript.instructions.iter().cloned().map(Item::from);
        let items: Vec<Item> = instructions
            .chain(transcript.items.iter().cloned())
            .collect();
        let kept = items
            .iter()
            .filter_map(|item| item.extra()?.get(contexture_ir::DAMAGED));
        let kept: String = kept.map(|mark| mark.get()).collect();
        let original = r#""\"a\\ud800b\"""#;
        assert_eq!(kept.matches(original).count(), halves, "{format}: {kept}");
        // No provider is sent the mark, and all of them are sent text.
        for target in Format::PROVIDERS {
            let sent = lower(&Dialect::of(target), lifted.kind, transcript).json;
            assert!(!sent.contains("ctx:"), "{format} to {target}: {sent}");
            assert!(
                value(&sent).to_string().contains("a\u{fffd}b"),
                "{format} to {target}: {sent}"
            );
        }
        // Items are stored and read again with it.
        for item in &items {
            assert_eq!(Item::parse(&item.to_json()).unwrap(), *item);
        }
    }
}

/// The JSON pointers of all values within a value, each with its kind: the pointer without indices.
fn list_places(value: &Value, pointer: &str, kind: &str, places: &mut Vec<(String, String)>) {
    let inner: Vec<(String, &str, &Value)> = match value {
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), "*", value))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                (
                    key.replace('~', "~0").replace('/', "~1"),
                    key.as_str(),
                    value,
                )
            })
            .collect(),
        _ => Vec::new(),
    };
    for (segment, kind_segment, value) in inner {
        let pointer = format!("{pointer}/{segment}");
        let kind = format!("{kind}/{kind_segment}");
        places.push((pointer.clone(), kind.clone()));
        list_places(value, &pointer, &kind, places);
    }
}

/// How a document that can be read comes back changed without a loss that says so.
fn change(format: Format, place: &str, document: &Value) -> Option<String> {
    let lifted = lift(format, &document.to_string()).ok()?;
    let lowered = lower(&dialect(format), lifted.kind, &lifted.transcript);
    let again = value(&lowered.json);
    let is_told = !lowered.losses.is_empty() || !lifted.losses.is_empty();
    let difference = difference(document, &again, "$");
    (!is_told && again != *document).then(|| format!("{format} {place}: {difference}"))
}

#[test]
fn depth_is_survived() {
    let deep =
        |open: &str, close: &str| format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
    let values = [deep("[", "]"), deep("{\"a\":", "}")];
    for inner in values {
        let anthropic = format!(
            r#"{{"messages":[{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"f","input":{{"x":{inner}}}}},
            {{"type":"new","x":{inner}}}]}},{{"role":"user","content":"x","more":{inner}}}],
            "thinking":{inner},"output_config":{inner},"tools":[{{"name":"f","input_schema":{inner}}}]}}"#
        );
        let gemini = format!(
            r#"{{"contents":[{{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{{"x":{inner}}}}}}},{{"new":{inner}}}]}},
            {{"parts":[{{"functionResponse":{{"name":"f","response":{{"x":{inner}}}}}}}],"more":{inner}}}],
            "tools":[{{"functionDeclarations":[{{"name":"f","parameters":{{"x":{inner}}}}}]}}],
            "generationConfig":{{"thinkingConfig":{{"x":{inner}}},"responseMimeType":"application/json","responseSchema":{inner}}}}}"#
        );
        let bedrock = format!(
            r#"{{"messages":[{{"role":"assistant","content":[{{"toolUse":{{"toolUseId":"a","name":"f","input":{{"x":{inner}}}}}}},{{"new":{inner}}}]}},
            {{"role":"user","content":[{{"toolResult":{{"toolUseId":"a","content":[{{"json":{inner}}}]}}}}],"more":{inner}}}],
            "additionalModelRequestFields":{inner},"outputConfig":{inner},"toolConfig":{{"tools":[{{"toolSpec":{{"name":"f","inputSchema":{{"json":{inner}}}}}}}]}}}}"#
        );
        for (format, text) in [
            (Format::Anthropic, anthropic),
            (Format::Gemini, gemini),
            (Format::Bedrock, bedrock),
        ] {
            let lifted = lift(format, &text).unwrap();
            for target in FORMATS {
                let lowered = lower(
                    &Dialect::of(target),
                    DocumentKind::Request,
                    &lifted.transcript,
                );
                assert!(lowered.json.len() > 100_000);
            }
        }
    }
}

#[test]
fn long_runs_are_lowered_in_one_pass() {
    // A step that looked at the whole run again for each item would not end within an hour.
    let size = 30_000;
    let mut items = Vec::new();
    for index in 0..size {
        items.push(Item::from(FunctionCall::new(
            format!("c{index}"),
            "f",
            "{}",
        )));
    }
    for index in 0..size {
        let output = Output::Text("x".to_owned());
        items.push(Message::text(Role::System, "s").into());
        items.push(FunctionCallOutput::new(format!("c{index}"), output).into());
    }
    let transcript = Transcript {
        items,
        ..Transcript::default()
    };
    for format in FORMATS {
        let dialect = Dialect {
            mid_system: true,
            ..Dialect::of(format)
        };
        let lowered = lower(&dialect, DocumentKind::Messages, &transcript);
        let lifted = lift(format, &lowered.json).unwrap();
        let calls = |item: &&Item| matches!(item, Item::FunctionCall(_));
        let outputs = |item: &&Item| matches!(item, Item::FunctionCallOutput(_));
        assert_eq!(lifted.transcript.items.iter().filter(calls).count(), size);
        assert_eq!(lifted.transcript.items.iter().filter(outputs).count(), size);
    }
}

/// Whatever the format, and wherever its messages stand.
#[test]
fn reading_that_is_called_off_ends() {
    let cancel = Cancel::new();
    cancel.cancel();
    for (format, text) in [
        (
            Format::OpenAiChat,
            r#"{"messages":[{"role":"user","content":"a"}]}"#,
        ),
        (Format::OpenAiChat, r#"[{"role":"user","content":"a"}]"#),
        (
            Format::OpenAiResponses,
            r#"{"input":[{"role":"user","content":"a"}]}"#,
        ),
        (
            Format::Anthropic,
            r#"{"messages":[{"role":"user","content":"a"}]}"#,
        ),
        (
            Format::Gemini,
            r#"{"contents":[{"role":"user","parts":[{"text":"a"}]}]}"#,
        ),
        (
            Format::Bedrock,
            r#"{"messages":[{"role":"user","content":[{"text":"a"}]}]}"#,
        ),
        (
            Format::Items,
            r#"{"items":[{"type":"message","role":"user","content":"a"}]}"#,
        ),
        (
            Format::Ui,
            r#"[{"id":"1","role":"user","parts":[{"type":"text","text":"a"}]}]"#,
        ),
    ] {
        assert!(lift_unless_cancelled(format, text, None).is_ok(), "{text}");
        let called_off = lift_unless_cancelled(format, text, Some(&cancel));
        assert!(
            matches!(called_off, Err(WireError::Cancelled(_))),
            "{format}"
        );
    }
}
