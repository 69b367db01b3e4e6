//! Amazon Bedrock Converse against recordings, the service model and event streams.

use contexture_testdata::{self as data, Validator};
use contexture_wire::{Accumulator, DocumentKind, Format, Frame, WireError, lift, lower};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::recorded::{
    Tally, check_answers, check_exact, check_translations, dialect, difference, findings, name,
    validators, value,
};

const FORMAT: Format = Format::Bedrock;

/// The frames of a whole event stream.
fn frames(bytes: &[u8]) -> Vec<Frame> {
    let mut reader = FORMAT.spec().frame_reader();
    reader.push(bytes);
    let frames = std::iter::from_fn(|| reader.next_frame().unwrap()).collect();
    assert_eq!(reader.pending_bytes(), 0);
    frames
}

/// The events of a whole event stream, as JSON.
pub(crate) fn event_jsons(bytes: &[u8]) -> Vec<String> {
    let frames = frames(bytes).into_iter();
    frames.filter_map(|frame| frame.data).collect()
}

/// The recorded event streams.
fn event_streams() -> Vec<(String, Vec<u8>)> {
    let exchanges = data::exchanges(FORMAT.as_str()).into_iter();
    let streams = exchanges.filter_map(|one| Some((name(&one), one.event_stream?)));
    streams.collect()
}

#[test]
fn recorded_requests_come_back_exactly() {
    let mut tally = Tally::new();
    let exchanges = data::exchanges(FORMAT.as_str());
    for exchange in &exchanges {
        let text = exchange.request.get();
        check_exact(
            FORMAT,
            DocumentKind::Request,
            &name(exchange),
            text,
            &mut tally,
        );
    }
    println!("bedrock: {} requests, losses {tally:?}", exchanges.len());
}

#[test]
fn recorded_requests_are_valid_again() {
    for exchange in data::exchanges(FORMAT.as_str()) {
        let lifted = lift(FORMAT, exchange.request.get()).unwrap();
        let lowered = lower(&dialect(FORMAT), DocumentKind::Request, &lifted.transcript);
        let findings = findings(validators(FORMAT), &lowered.json);
        assert_eq!(findings, Vec::<String>::new(), "{}", name(&exchange));
    }
}

#[test]
fn recorded_responses_come_back_exactly() {
    let mut tally = Tally::new();
    let mut count = 0;
    for exchange in data::exchanges(FORMAT.as_str()) {
        let Some(response) = exchange.response.as_deref() else {
            continue;
        };
        if exchange.status == 200 {
            let text = response.get();
            check_exact(
                FORMAT,
                DocumentKind::Response,
                &name(&exchange),
                text,
                &mut tally,
            );
            count += 1;
        } else {
            let error = lift(FORMAT, response.get()).unwrap_err();
            assert!(matches!(error, WireError::WrongShape { .. }), "{error}");
        }
    }
    println!("bedrock: {count} responses, losses {tally:?}");
    assert!(count > 50, "{count}");
}

#[test]
fn recorded_requests_translate_into_valid_ones() {
    for other in Format::PROVIDERS.into_iter().filter(|one| *one != FORMAT) {
        check_translations(FORMAT, other);
        check_translations(other, FORMAT);
    }
}

#[test]
fn answers_of_other_formats_are_valid_answers_here() {
    check_answers(FORMAT, "bedrock.converse.response");
}

/// What an exchange says in both formats comes back through the other one: text, calls and their outputs.
#[test]
fn recorded_requests_survive_other_formats() {
    for exchange in data::exchanges(FORMAT.as_str()) {
        let lifted = lift(FORMAT, exchange.request.get()).unwrap().transcript;
        for other in [Format::Anthropic, Format::OpenAiResponses] {
            let there = lower(&dialect(other), DocumentKind::Request, &lifted);
            let again = lift(other, &there.json).unwrap().transcript;
            let back = lower(&dialect(FORMAT), DocumentKind::Request, &again);
            let findings = findings(validators(FORMAT), &back.json);
            assert_eq!(
                findings,
                Vec::<String>::new(),
                "{} by {other}",
                name(&exchange)
            );
            let hashes = |items: &[contexture_ir::Item]| -> Vec<_> {
                items
                    .iter()
                    .filter_map(contexture_ir::meaning_hash)
                    .collect()
            };
            // Whatever differs has been reported.
            let changed = hashes(&lifted.items)
                != hashes(&lift(FORMAT, &back.json).unwrap().transcript.items);
            assert!(
                !changed || !there.losses.is_empty() || !back.losses.is_empty(),
                "{} by {other}",
                name(&exchange)
            );
        }
    }
}

#[test]
fn a_count_of_tokens_is_no_call() {
    let text = r#"{"input":{"converse":{"messages":[{"role":"user","content":[{"text":"x"}]}],"system":[]}}}"#;
    for text in [text, r#"{"inputTokens":3}"#, r#"{"message":"denied"}"#, "7"] {
        let error = lift(FORMAT, text).unwrap_err();
        assert!(
            matches!(error, WireError::WrongShape { .. }),
            "{text}: {error}"
        );
    }
}

#[test]
fn recorded_event_streams_are_written_again_byte_for_byte() {
    let streams = event_streams();
    assert_eq!(streams.len(), 2);
    for (name, bytes) in streams {
        let reader = FORMAT.spec().frame_reader();
        let frames = frames(&bytes);
        let raw = frames.iter().flat_map(|frame| frame.raw.clone());
        assert!(raw.eq(bytes.iter().copied()), "{name}");
        let made = frames.iter().flat_map(|frame| {
            let data = frame.data.as_deref().unwrap();
            reader.with_data(&Frame::default(), data)
        });
        assert!(made.eq(bytes), "{name}");
    }
}

#[test]
fn recorded_events_are_those_of_the_service_model() {
    let validator = Validator::new(&data::schema("bedrock.converse.event"));
    for (name, bytes) in event_streams() {
        for event in event_jsons(&bytes) {
            let mut event = value(&event);
            let payload = event.as_object_mut().unwrap().values_mut().next().unwrap();
            let payload = payload.as_object_mut().unwrap();
            // What the service sends and its model does not have.
            assert!(payload.remove("p").is_some());
            if let Some(usage) = payload.get_mut("usage").and_then(Value::as_object_mut) {
                usage.remove("serverToolUsage");
            }
            let start = payload
                .get_mut("start")
                .and_then(|one| one.get_mut("toolUse"));
            if let Some(Value::Object(call)) = start {
                call.retain(|_, value| *value != json!("tool_use"));
            }
            let findings = validator.validation_errors(&event);
            assert_eq!(findings, Vec::<String>::new(), "{name}: {event}");
        }
    }
}

/// The answer that a stream's events describe, put together by the simplest means.
fn folded(events: &[String]) -> Value {
    let mut body = Map::new();
    let mut blocks: Vec<(u64, Value)> = Vec::new();
    for event in events {
        let event = value(event);
        let (kind, mut payload) = event
            .as_object()
            .unwrap()
            .clone()
            .into_iter()
            .next()
            .unwrap();
        payload.as_object_mut().unwrap().remove("p");
        let index = payload["contentBlockIndex"].as_u64();
        let at = blocks.iter().position(|(at, _)| Some(*at) == index);
        let at = at.or_else(|| {
            blocks.push((index?, json!({})));
            Some(blocks.len() - 1)
        });
        let block = at.map(|at| &mut blocks[at].1);
        match (kind.as_str(), block) {
            ("contentBlockStart", Some(block)) => *block = payload["start"].clone(),
            ("contentBlockDelta", Some(block)) => grow(block, &payload["delta"]),
            ("messageStop" | "metadata", _) => body.extend(payload.as_object().unwrap().clone()),
            _ => {}
        }
    }
    let is_said = |block: &Value| *block != json!({}) && *block != json!({"text": ""});
    let mut content: Vec<Value> = blocks.into_iter().map(|(_, block)| block).collect();
    content.retain(is_said);
    for call in content
        .iter_mut()
        .filter_map(|block| block.get_mut("toolUse"))
    {
        call["input"] = value(call["input"].as_str().unwrap());
    }
    body.insert(
        "output".to_owned(),
        json!({"message": {"role": "assistant", "content": content}}),
    );
    Value::Object(body)
}

fn grow(block: &mut Value, delta: &Value) {
    for (key, value) in delta.as_object().unwrap() {
        let place = match key.as_str() {
            "reasoningContent" => {
                let block = block.as_object_mut().unwrap();
                let inner = block.entry(key).or_insert(json!({"reasoningText": {}}));
                grow(&mut inner["reasoningText"], value);
                continue;
            }
            "toolUse" => &mut block["toolUse"]["input"],
            "toolResult" => {
                block["toolResult"]["content"] = value.clone();
                continue;
            }
            key => &mut block[key],
        };
        let piece = value.as_str().or(value["input"].as_str()).unwrap();
        *place = json!(place.as_str().unwrap_or("").to_owned() + piece);
    }
}

#[test]
fn recorded_streams_say_what_their_events_say() {
    for (name, bytes) in event_streams() {
        let events = event_jsons(&bytes);
        let mut answer = Accumulator::new(FORMAT).unwrap();
        for event in &events {
            answer.push(event).unwrap();
        }
        assert_eq!(answer.ignored_count(), 0, "{name}");
        let (body, expected) = (value(&answer.finish().unwrap()), folded(&events));
        assert!(
            body == expected,
            "{name}: {}",
            difference(&expected, &body, "$")
        );
        let mut tally = Tally::new();
        let text = body.to_string();
        check_exact(FORMAT, DocumentKind::Response, &name, &text, &mut tally);
    }
}

#[test]
fn an_event_stream_cut_at_any_byte_never_panics() {
    for (_, bytes) in event_streams() {
        let mut answer = Accumulator::new(FORMAT).unwrap();
        let mut reader = FORMAT.spec().frame_reader();
        for byte in bytes {
            reader.push(&[byte]);
            if let Some(frame) = reader.next_frame().unwrap() {
                answer.push(&frame.data.unwrap()).unwrap();
                let body = answer.finish_incomplete();
                assert!(lift(FORMAT, &body).is_ok(), "{body}");
            }
        }
        assert!(answer.is_complete());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn damaged_event_streams_never_panic(
        pick in 0..2_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
        chunk in 1..900_usize,
    ) {
        let (_, mut bytes) = event_streams().swap_remove(pick);
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(end.index(bytes.len() + 1));
        let mut answer = Accumulator::new(FORMAT).unwrap();
        let mut reader = FORMAT.spec().frame_reader();
        'stream: for piece in bytes.chunks(chunk) {
            reader.push(piece);
            loop {
                match reader.next_frame() {
                    Ok(Some(frame)) => drop(answer.push(&frame.data.unwrap())),
                    Ok(None) => break,
                    Err(_) => break 'stream,
                }
            }
        }
        prop_assert!(lift(FORMAT, &answer.finish_incomplete()).is_ok());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = FORMAT.spec().frame_reader();
        reader.push(&bytes);
        while let Ok(Some(_)) = reader.next_frame() {}
    }
}
