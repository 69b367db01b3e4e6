//! OpenAI Responses.

use contexture_testdata as data;
use contexture_wire::{Format, Kind, lift};
use serde_json::Value;

use crate::recorded::{Tally, check_exact, check_translations, name};

const RESPONSES: Format = Format::OpenAiResponses;

#[test]
fn recorded_exchanges_come_back_exactly() {
    let mut tally = Tally::new();
    let (mut requests, mut responses, mut errors, mut streams) = (0, 0, 0, 0);
    for exchange in data::exchanges(RESPONSES.as_str()) {
        let label = name(&exchange);
        check_exact(
            RESPONSES,
            Kind::Request,
            &label,
            exchange.request.get(),
            &mut tally,
        );
        requests += 1;
        match &exchange.response {
            Some(response) if exchange.status == 200 => {
                check_exact(
                    RESPONSES,
                    Kind::Response,
                    &label,
                    response.get(),
                    &mut tally,
                );
                responses += 1;
            }
            Some(response) => {
                assert!(lift(RESPONSES, response.get()).is_err(), "{label}");
                errors += 1;
            }
            None => streams += 1,
        }
    }
    println!(
        "responses: {requests} requests, {responses} responses exact; {errors} error bodies, {streams} streams; losses {tally:?}"
    );
    assert_eq!((requests, responses, errors, streams), (86, 74, 2, 10));
}

#[test]
fn recorded_requests_are_valid_elsewhere() {
    for target in Format::PROVIDERS {
        if target != RESPONSES {
            check_translations(RESPONSES, target);
        }
    }
}

/// Bodies among the AI SDK's files that are no generation's.
const NOT_APPLICABLE: [&str; 10] = [
    "gpt-image-response-format-error.json",
    "openai-completion-text.json",
    "openai-embedding.json",
    "openai-error.1.json",
    "openai-image-edit.json",
    "openai-image.json",
    "openai-skill-create.json",
    "openai-transcription.json",
    "reasoning-model-legacy-parameter-error.json",
    "reasoning-model-temperature-error.json",
];

#[test]
fn ai_sdk_answers_come_back_exactly() {
    let mut tally = Tally::new();
    let (mut exact, mut refused) = (0, Vec::new());
    for recording in data::ai_sdk("openai")
        .into_iter()
        .chain(data::ai_sdk("open-responses"))
    {
        let Some(response) = &recording.response else {
            continue;
        };
        let body: Value = serde_json::from_str(response.get()).unwrap();
        match body["object"].as_str() {
            Some("chat.completion") => {}
            Some("response") => {
                check_exact(
                    RESPONSES,
                    Kind::Response,
                    &recording.file,
                    response.get(),
                    &mut tally,
                );
                exact += 1;
            }
            _ => {
                assert!(
                    lift(RESPONSES, response.get()).is_err(),
                    "{}",
                    recording.file
                );
                refused.push(recording.file);
            }
        }
    }
    println!("ai sdk: {exact} responses exact, not applicable {refused:?}; losses {tally:?}");
    assert_eq!(refused, NOT_APPLICABLE);
    assert_eq!(exact, 31);
}
