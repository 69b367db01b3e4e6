//! What hosts do to streams, and what becomes of one that breaks, case by case.

use contexture_ir::{FinishReason, Item, Status};
use contexture_wire::{
    Accumulator, Dialect, DocumentKind, Format, StreamError, StreamEvent, StreamFailure, lift,
    lower,
};

fn said(format: Format, events: &[&str]) -> (Accumulator, Vec<StreamEvent>) {
    let mut answer = Accumulator::new(format).unwrap();
    let mut said = Vec::new();
    for event in events {
        said.extend(answer.push(event).unwrap());
    }
    (answer, said)
}

/// Arguments by call id, and whether the call is whole.
fn calls(format: Format, events: &[&str]) -> Vec<(String, String, bool)> {
    let (answer, _) = said(format, events);
    let lifted = lift(format, &answer.finish_incomplete()).unwrap();
    let calls = lifted.transcript.items.into_iter();
    calls
        .filter_map(|item| match item {
            Item::FunctionCall(call) => {
                let whole = call.status != Some(Status::Incomplete);
                Some((call.call_id, call.arguments, whole))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn hosts_that_number_calls_badly_are_understood() {
    let expected = [
        ("a".to_owned(), "{\"x\":1}".to_owned(), true),
        ("b".to_owned(), "{}".to_owned(), true),
    ];
    let chunk = |calls: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{calls}]}}}}]}}"#);
    let end = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;
    for parts in [
        // Every call has the index 0.
        [
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}"#,
            r#"{"index":0,"function":{"arguments":"1}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ],
        // There is no index.
        [
            r#"{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":"}}"#,
            r#"{"function":{"arguments":"1}"}}"#,
            r#"{"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ],
        // Id and name stand in every chunk, and calls take turns.
        [
            r#"{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}"#,
            r#"{"index":7,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":1,"id":"a","function":{"name":"f","arguments":"1}"}}"#,
        ],
    ] {
        let [a, b, c] = parts.map(chunk);
        assert_eq!(calls(Format::OpenAiChat, &[&a, &b, &c, end]), expected);
    }
}

#[test]
fn unfinished_arguments_are_kept_as_text() {
    let chat = [
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"So:"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":"{\"x\":"}}]}}]}"#,
    ];
    let anthropic = [
        r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":null}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}"#,
    ];
    let responses = [
        r#"{"type":"response.created","response":{"id":"r","output":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":""}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"a","name":"f","arguments":"{}","status":"completed"}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"b","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"x\":"}"#,
    ];
    let expected = [
        ("a".to_owned(), "{}".to_owned(), true),
        ("b".to_owned(), "{\"x\":".to_owned(), false),
    ];
    for (format, events) in [
        (Format::OpenAiChat, chat.as_slice()),
        (Format::Anthropic, &anthropic),
        (Format::OpenAiResponses, &responses),
    ] {
        assert_eq!(calls(format, events), expected, "{format}");
        let (answer, _) = said(format, events);
        let lifted = lift(format, &answer.finish_incomplete()).unwrap();
        let finish = lifted.transcript.response.as_ref().unwrap().finish.clone();
        assert_eq!(finish, Some(FinishReason::Other("incomplete".into())));
        // No provider is sent what only we say.
        for target in Format::PROVIDERS {
            let json = lower(
                &Dialect::of(target),
                DocumentKind::Response,
                &lifted.transcript,
            )
            .json;
            assert!(
                !json.contains("ctx:unfinished"),
                "{format} to {target}: {json}"
            );
        }
    }
    let gemini = [
        r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","willContinue":true}}]}}]}"#,
        r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"partialArgs":[{"jsonPath":"$.x","stringValue":"ab","willContinue":true}],"willContinue":true}}]}}]}"#,
    ];
    let cut = calls(Format::Gemini, &gemini);
    assert_eq!(cut.len(), 1);
    assert!(!cut[0].2 && cut[0].1.contains("\"ab\""), "{cut:?}");
}

#[test]
fn a_provider_s_own_unfinished_block_is_sent_to_nobody() {
    let (answer, _) = said(
        Format::Anthropic,
        &[
            r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[]}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q"}}"#,
        ],
    );
    let lifted = lift(Format::Anthropic, &answer.finish_incomplete()).unwrap();
    let [Item::Extension(item)] = lifted.transcript.items.as_slice() else {
        panic!("{:?}", lifted.transcript.items);
    };
    assert_eq!(item.kind, "ctx:unfinished");
    assert!(item.raw.get().contains("web_search") && item.raw.get().contains("{\\\"q"));
    let dialect = Dialect::of(Format::Anthropic);
    let json = lower(&dialect, DocumentKind::Response, &lifted.transcript).json;
    assert!(!json.contains("web_search"), "{json}");
}

#[test]
fn gemini_arguments_find_their_places() {
    let piece = |path: &str, rest: &str| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"f","partialArgs":[{{"jsonPath":"{path}",{rest}}}]}}}}]}}}}]}}"#
        )
    };
    for (path, rest, expected) in [
        ("$.a.b", r#""stringValue":"x""#, Some(r#"{"a":{"b":"x"}}"#)),
        (
            "$.a[0]['b.c']",
            r#""boolValue":true"#,
            Some(r#"{"a":[{"b.c":true}]}"#),
        ),
        ("$.a", r#""nullValue":"NULL_VALUE""#, Some(r#"{"a":null}"#)),
        ("$.a", r#""numberValue":1.5"#, Some(r#"{"a":1.5}"#)),
        ("$.a[99999999]", r#""numberValue":1"#, None),
        ("a", r#""numberValue":1"#, None),
        ("$.a", r#""newValue":1"#, None),
    ] {
        let calls = calls(Format::Gemini, &[&piece(path, rest)]);
        match expected {
            Some(arguments) => assert_eq!((calls[0].1.as_str(), calls[0].2), (arguments, true)),
            None => assert!(!calls[0].2 && calls[0].1.contains(path), "{calls:?}"),
        }
    }
}

#[test]
fn a_failure_in_the_middle_keeps_what_came_before() {
    let failure = |kind: &str, code: Option<&str>| StreamFailure {
        kind: kind.into(),
        code: code.map(str::to_owned),
        message: "Overloaded".into(),
    };
    for (format, before, error, expected) in [
        (
            Format::Anthropic,
            r#"{"type":"message_start","message":{"id":"m","role":"assistant"}}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            failure("overloaded_error", None),
        ),
        (
            Format::OpenAiChat,
            r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{"error":{"type":"server_error","code":"busy","message":"Overloaded"}}"#,
            failure("server_error", Some("busy")),
        ),
        (
            Format::OpenAiResponses,
            r#"{"type":"response.created","response":{"id":"r"}}"#,
            r#"{"type":"error","code":"busy","message":"Overloaded"}"#,
            failure("error", Some("busy")),
        ),
        (
            Format::Gemini,
            r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#,
            r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"Overloaded"}}"#,
            failure("UNAVAILABLE", Some("503")),
        ),
    ] {
        let (answer, said) = said(format, &[before, error]);
        assert_eq!(
            said.last(),
            Some(&StreamEvent::Failed(expected)),
            "{format}"
        );
        assert!(matches!(answer.finish(), Err(StreamError::Failed(_))));
        assert!(lift(format, &answer.finish_incomplete()).is_ok());
    }
}

#[test]
fn limits_and_errors_are_named() {
    let error = Accumulator::new(Format::Ui).unwrap_err().to_string();
    assert!(error.starts_with("ui is no provider's format"), "{error}");
    let mut answer = Accumulator::new(Format::OpenAiChat).unwrap().with_limit(60);
    let chunk = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    answer.push(chunk).unwrap();
    let error = answer.push(chunk).unwrap_err().to_string();
    assert_eq!(error, "the openai-chat stream is longer than 60 bytes");
    let error = answer.finish().unwrap_err().to_string();
    assert_eq!(error, "the openai-chat stream was cut off after 2 events");
    let mut answer = Accumulator::new(Format::Anthropic).unwrap();
    let error = answer.push("[1]").unwrap_err().to_string();
    assert_eq!(
        error,
        "event 1 of the anthropic stream is not a JSON object"
    );
    assert_eq!(answer.push(r#"{"type":"new_thing"}"#).unwrap(), []);
    assert_eq!((answer.event_count(), answer.ignored_count()), (2, 1));
}

#[test]
fn what_is_said_twice_counts_once() {
    let (answer, said) = said(
        Format::OpenAiResponses,
        &[
            r#"{"type":"response.output_item.added","output_index":3,"item":{"type":"message","role":"assistant","content":[]}}"#,
            r#"{"type":"response.output_text.delta","output_index":3,"content_index":0,"delta":"Ba"}"#,
            r#"{"type":"response.output_text.done","output_index":3,"content_index":0,"text":"Bamako"}"#,
            r#"{"type":"response.output_text.done","output_index":3,"content_index":0,"text":"Bamako"}"#,
            r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Bamako"}]}}"#,
            r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"message","role":"assistant","content":[]}}"#,
        ],
    );
    let names: Vec<&str> = said.iter().map(StreamEvent::name).collect();
    assert_eq!(
        names,
        [
            "response.output_item.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_item.done",
        ]
    );
    let lifted = lift(Format::OpenAiResponses, &answer.finish_incomplete()).unwrap();
    assert_eq!(lifted.transcript.items[0].text(), "Bamako");
}
