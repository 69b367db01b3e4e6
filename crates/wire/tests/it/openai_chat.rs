//! OpenAI Chat Completions.

use contexture_testdata as data;
use contexture_wire::{Format, Kind};
use serde_json::Value;

use crate::recorded::{Tally, check_exact, check_translations, name};

const CHAT: Format = Format::OpenAiChat;

#[test]
fn recorded_exchanges_come_back_exactly() {
    let mut tally = Tally::new();
    let (mut requests, mut responses, mut errors, mut streams) = (0, 0, 0, 0);
    for exchange in data::exchanges(CHAT.as_str()) {
        let label = name(&exchange);
        check_exact(
            CHAT,
            Kind::Request,
            &label,
            exchange.request.get(),
            &mut tally,
        );
        requests += 1;
        match &exchange.response {
            Some(response) if exchange.status == 200 => {
                check_exact(CHAT, Kind::Response, &label, response.get(), &mut tally);
                responses += 1;
            }
            Some(response) => {
                assert!(
                    contexture_wire::lift(CHAT, response.get()).is_err(),
                    "{label}"
                );
                errors += 1;
            }
            None => streams += 1,
        }
    }
    println!(
        "chat: {requests} requests, {responses} responses exact; {errors} error bodies, {streams} streams; losses {tally:?}"
    );
    assert_eq!((requests, responses, errors, streams), (45, 41, 2, 2));
}

#[test]
fn recorded_requests_are_valid_elsewhere() {
    for target in Format::PROVIDERS {
        if target != CHAT {
            check_translations(CHAT, target);
        }
    }
}

#[test]
fn ai_sdk_answers_come_back_exactly() {
    let mut tally = Tally::new();
    let mut exact = 0;
    for recording in data::ai_sdk("openai") {
        let Some(response) = &recording.response else {
            continue;
        };
        let body: Value = serde_json::from_str(response.get()).unwrap();
        if body["object"] == "chat.completion" {
            check_exact(
                CHAT,
                Kind::Response,
                &recording.file,
                response.get(),
                &mut tally,
            );
            exact += 1;
        }
    }
    assert_eq!(exact, 1);
}
