//! The two OpenAI formats on random items and on documents that somebody broke.

use contexture_ir::{FinishReason, Item, Message, ResponseInfo, Role, Transcript};
use contexture_testdata as data;
use contexture_wire::{
    Dialect, DocumentKind, Format, Side, lift, lower, lower_run, paired_items, role_runs,
};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

const FORMATS: [Format; 2] = [Format::OpenAiChat, Format::OpenAiResponses];

fn part() -> impl Strategy<Value = Value> {
    let text = prop_oneof![Just(String::new()), "[a-z\"\\\\\u{0}<é]{1,6}"];
    let url = prop_oneof![
        Just("https://example.org/x".to_owned()),
        Just("data:image/png;base64,AA==".to_owned()),
        Just("data:application/pdf;base64,AA==".to_owned()),
        Just("data:audio/mpeg;base64,AA==".to_owned()),
        Just("data:video/mp4;base64,AA==".to_owned()),
        Just("AA==".to_owned()),
    ];
    let extra = prop_oneof![
        Just(json!({})),
        Just(
            json!({"ctx:wire": {"anthropic": {"cache_control": {"type": "ephemeral"}, "~start": "x"}}})
        ),
        Just(json!({"ctx:wire": {"openai-chat": {"~content": "array", "~empty": "kept"}}})),
        Just(json!({"ctx:wire": 5})),
    ];
    let kind = prop_oneof![
        Just("input_text"),
        Just("output_text"),
        Just("refusal"),
        Just("input_image"),
        Just("input_file"),
        Just("anthropic:document")
    ];
    (kind, text, url, extra).prop_map(|(kind, text, url, extra)| {
        let mut part = match kind {
            "refusal" => json!({"refusal": text}),
            "input_image" => json!({"image_url": url, "media_type": "image/png"}),
            "input_file" if url.starts_with("https") => json!({"file_url": url}),
            "input_file" => json!({"file_data": url}),
            "anthropic:document" => json!({"block": {}}),
            _ => json!({"text": text}),
        };
        part["type"] = kind.into();
        if !kind.contains(':') {
            part.as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
        }
        part
    })
}

fn item() -> impl Strategy<Value = Value> {
    let parts = prop::collection::vec(part(), 0..4);
    let kind = 0..9usize;
    let role = prop_oneof![
        Just("user"),
        Just("assistant"),
        Just("system"),
        Just("developer")
    ];
    let id = prop_oneof![
        Just(Value::Null),
        Just(json!("msg_1")),
        Just(json!("rs_1")),
        Just(json!("x"))
    ];
    let status = prop_oneof![
        Just("completed"),
        Just("incomplete"),
        Just("failed"),
        Just("in_progress")
    ];
    (kind, parts, role, id, status).prop_map(|(kind, parts, role, id, status)| {
        let mut item = match kind {
            0..=2 => json!({"type": "message", "role": role, "content": parts, "status": status}),
            3 | 4 => json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{", "status": status}),
            5 => json!({"type": "function_call_output", "call_id": "c1", "output": parts, "is_error": true}),
            6 => json!({"type": "reasoning", "summary": [], "signature": "S", "format": "anthropic-claude-v1"}),
            7 => json!({"type": "compaction", "summary": [{"type": "summary_text", "text": "t"}], "format": "google-gemini-v1", "encrypted_content": "E"}),
            _ => json!({"type": "acme:note"}),
        };
        if !id.is_null() {
            item["id"] = id;
        }
        item
    })
}

/// No message is empty, and the facts of a chunk are true of its elements.
fn check_chunks(dialect: &Dialect, items: &[Item]) -> Result<(), TestCaseError> {
    let entries = paired_items(items);
    for run in role_runs(&entries, dialect.format) {
        let chunk = lower_run(dialect, &run);
        let elements: Vec<Value> = serde_json::from_str(&format!("[{}]", chunk.json)).unwrap();
        prop_assert_eq!(elements.len(), chunk.facts.elements);
        let side = |element: &Value| match element["role"].as_str() {
            Some("assistant") => Side::Model,
            Some(_) => Side::User,
            None if element["type"] == "function_call" || element["type"] == "reasoning" => {
                Side::Model
            }
            None => Side::User,
        };
        prop_assert_eq!(chunk.facts.first, elements.first().map(side));
        prop_assert_eq!(chunk.facts.last, elements.last().map(side));
        let calls = run
            .entries
            .iter()
            .filter(|entry| matches!(entry.item, Item::FunctionCall(_)))
            .count();
        let outputs = run
            .entries
            .iter()
            .filter(|entry| matches!(entry.item, Item::FunctionCallOutput(_)))
            .count();
        prop_assert_eq!(chunk.facts.calls.len(), calls);
        prop_assert_eq!(chunk.facts.outputs.len(), outputs);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_items_make_valid_requests_and_answers(items in prop::collection::vec(item(), 0..12)) {
        let items = Item::parse_all(&Value::from(items).to_string()).unwrap();
        let transcript = Transcript {
            model: Some("m".into()),
            instructions: vec![Message::text(Role::System, "s"), Message::text(Role::Developer, "")],
            items,
            response: Some(ResponseInfo { finish: Some(FinishReason::Other("odd".into())), ..ResponseInfo::default() }),
            ..Transcript::default()
        };
        for format in FORMATS {
            let dialect = Dialect::of(format);
            let request = lower(&dialect, DocumentKind::Request, &transcript);
            let findings = validator(format, true).findings(&serde_json::from_str(&request.json).unwrap());
            prop_assert!(findings.is_empty(), "{format}: {findings:?}\n{}", request.json);
            let answer = lower(&dialect, DocumentKind::Response, &transcript);
            let findings = validator(format, false).findings(&serde_json::from_str(&answer.json).unwrap());
            prop_assert!(findings.is_empty(), "{format}: {findings:?}\n{}", answer.json);
            check_chunks(&dialect, &transcript.items)?;
            // What was written is read again, and written the same.
            let again = lift(format, &request.json).unwrap();
            prop_assert_eq!(&lower(&dialect, DocumentKind::Request, &again.transcript).json, &request.json);
        }
    }

    #[test]
    fn broken_documents_do_not_panic(
        pick in any::<Index>(), places in prop::collection::vec((any::<Index>(), 0..10usize), 1..4), cut in any::<Index>(), answer in any::<bool>(),
    ) {
        for format in FORMATS {
            let documents = documents(format, answer);
            let text = &documents[pick.index(documents.len())];
            let mut value: Value = serde_json::from_str(text).unwrap();
            for (place, with) in &places {
                let count = count(&value);
                damage(&mut value, &mut place.index(count), *with);
            }
            let broken = value.to_string();
            for text in [broken.as_str(), broken.get(..cut.index(broken.len())).unwrap_or_default()] {
                let Ok(lifted) = lift(format, text) else { continue };
                for target in FORMATS {
                    let dialect = Dialect::of(target);
                    for kind in [DocumentKind::Request, DocumentKind::Response, DocumentKind::Messages] {
                        let lowered = lower(&dialect, kind, &lifted.transcript);
                        prop_assert!(serde_json::from_str::<Value>(&lowered.json).is_ok(), "{}", lowered.json);
                    }
                }
            }
        }
    }
}

thread_local! {
    static VALIDATORS: Vec<data::Validator> = FORMATS
        .into_iter()
        .flat_map(|format| {
            let answer = match format {
                Format::OpenAiChat => "openai.chat.response",
                _ => "openai.responses.response",
            };
            [data::request_validator(format.as_str()), data::Validator::new(&data::schema(answer))]
        })
        .collect();
    static DOCUMENTS: Vec<Vec<String>> = FORMATS
        .into_iter()
        .flat_map(|format| {
            let exchanges = data::exchanges(format.as_str());
            let short = |text: &str| (text.len() < 10_000).then(|| text.to_owned());
            let requests = exchanges.iter().filter_map(|exchange| short(exchange.request.get())).collect();
            let answers = exchanges.iter().filter_map(|exchange| short(exchange.response.as_ref()?.get())).collect();
            [requests, answers]
        })
        .collect();
}

fn place(format: Format, first: bool) -> usize {
    usize::from(format == Format::OpenAiResponses) * 2 + usize::from(!first)
}

struct Validators(usize);

impl Validators {
    fn findings(&self, value: &Value) -> Vec<String> {
        VALIDATORS.with(|all| all[self.0].validation_errors(value))
    }
}

fn validator(format: Format, request: bool) -> Validators {
    Validators(place(format, request))
}

fn documents(format: Format, answer: bool) -> Vec<String> {
    DOCUMENTS.with(|all| all[place(format, !answer)].clone())
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(count).sum(),
        Value::Array(values) => values.iter().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the value at a place, counted in reading order.
fn damage(value: &mut Value, at: &mut usize, with: usize) -> bool {
    if *at == 0 {
        *value = match with {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-1),
            3 => json!(1e300),
            4 => json!(""),
            5 => json!("tool"),
            6 => json!([]),
            7 => json!({}),
            8 => json!([value.clone(), value.clone()]),
            _ => json!({"type": "message", "role": "user", "content": value.clone()}),
        };
        return true;
    }
    *at -= 1;
    match value {
        Value::Object(members) => members.values_mut().any(|value| damage(value, at, with)),
        Value::Array(values) => values.iter_mut().any(|value| damage(value, at, with)),
        _ => false,
    }
}

#[test]
fn deep_nesting_is_kept_or_refused() {
    let deep = "[".repeat(50_000) + &"]".repeat(50_000);
    for (format, text) in [
        (
            Format::OpenAiChat,
            format!("{{\"messages\":[],\"x\":{deep}}}"),
        ),
        (Format::OpenAiChat, format!("{{\"messages\":{deep}}}")),
        (
            Format::OpenAiChat,
            format!("{{\"messages\":[{{\"role\":\"user\",\"content\":{deep}}}]}}"),
        ),
        (
            Format::OpenAiResponses,
            format!("{{\"input\":[],\"x\":{deep}}}"),
        ),
        (
            Format::OpenAiResponses,
            format!("{{\"input\":[{{\"type\":\"x\",\"y\":{deep}}}]}}"),
        ),
        (
            Format::OpenAiResponses,
            format!(
                "{{\"output\":[{{\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"y\":{deep}}}]}}"
            ),
        ),
    ] {
        if let Ok(lifted) = lift(format, &text) {
            let lowered = lower(&Dialect::of(format), lifted.kind, &lifted.transcript);
            assert!(lowered.json.contains(&deep));
        }
    }
}

/// Long lists of every sort: what is quadratic in any of them does not come to an end here.
#[test]
fn long_documents_come_back() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let repeat = |value: Value| Value::Array(vec![value; 10_000]);
    let fields = || {
        (0..10_000)
            .map(|at| (format!("f{at}"), json!(at)))
            .collect::<serde_json::Map<_, _>>()
    };
    let mut message = fields();
    message.insert("role".into(), "assistant".into());
    message.insert("content".into(), "a".into());
    let mut request = fields();
    request.insert("messages".into(), json!([]));
    for document in [
        json!({"messages": repeat(json!({"role": "assistant", "content": "a"}))}),
        json!({"messages": [{"role": "assistant", "content": null, "tool_calls": repeat(call)}]}),
        json!({"messages": [{"role": "user", "content": repeat(json!({"type": "text", "text": "a", "x": 1}))}]}),
        json!({"messages": [message]}),
        Value::Object(request),
    ] {
        let lifted = lift(Format::OpenAiChat, &document.to_string()).unwrap();
        let again = lower(
            &Dialect::of(Format::OpenAiChat),
            DocumentKind::Request,
            &lifted.transcript,
        );
        assert_eq!(
            serde_json::from_str::<Value>(&again.json).unwrap(),
            document
        );
        for format in FORMATS {
            let answer = lower(
                &Dialect::of(format),
                DocumentKind::Response,
                &lifted.transcript,
            );
            assert!(serde_json::from_str::<Value>(&answer.json).is_ok());
        }
    }
}
