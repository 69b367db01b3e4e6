//! Anthropic Messages against recordings, schemas and hand-written cases.

use contexture_testdata as data;
use contexture_wire::{DocumentKind, Format, WireError, lift, lower};

use crate::recorded::{
    Tally, check_answers, check_exact, check_translations, dialect, findings, name, validators,
};

const FORMAT: Format = Format::Anthropic;

#[test]
fn recorded_requests_come_back_exactly() {
    let mut tally = Tally::new();
    let exchanges = data::exchanges(FORMAT.as_str());
    for exchange in &exchanges {
        check_exact(
            FORMAT,
            DocumentKind::Request,
            &name(exchange),
            exchange.request.get(),
            &mut tally,
        );
    }
    println!("anthropic: {} requests, losses {tally:?}", exchanges.len());
}

#[test]
fn recorded_requests_are_valid_again() {
    let (stable, beta) = validators(FORMAT).split_at(1);
    let mut counts = (0, 0);
    for exchange in data::exchanges(FORMAT.as_str()) {
        let lifted = lift(FORMAT, exchange.request.get()).unwrap();
        let lowered = lower(&dialect(FORMAT), DocumentKind::Request, &lifted.transcript);
        if findings(stable, &lowered.json).is_empty() {
            counts.0 += 1;
        } else {
            assert_eq!(
                findings(beta, &lowered.json),
                Vec::<String>::new(),
                "{}",
                name(&exchange)
            );
            counts.1 += 1;
        }
    }
    println!(
        "anthropic: {} stable requests, {} beta requests",
        counts.0, counts.1
    );
}

#[test]
fn recorded_responses_come_back_exactly() {
    let mut tally = Tally::new();
    let mut count = 0;
    for exchange in data::exchanges(FORMAT.as_str()) {
        if let Some(response) = exchange
            .response
            .as_deref()
            .filter(|_| exchange.status == 200)
        {
            check_exact(
                FORMAT,
                DocumentKind::Response,
                &name(&exchange),
                response.get(),
                &mut tally,
            );
            count += 1;
        }
    }
    println!("anthropic: {count} responses, losses {tally:?}");
    assert_eq!(count, 59);
}

#[test]
fn ai_sdk_responses_come_back_exactly() {
    let other = [
        "anthropic-skill-create.json",
        "anthropic-skill-version-create.json",
    ];
    let mut tally = Tally::new();
    let (mut count, mut skipped) = (0, Vec::new());
    for recording in data::ai_sdk("anthropic") {
        let Some(response) = recording.response else {
            continue;
        };
        if other.contains(&recording.file.as_str()) {
            let error = lift(FORMAT, response.get()).unwrap_err();
            assert!(
                matches!(error, WireError::WrongShape { .. }),
                "{}: {error}",
                recording.file
            );
            skipped.push(recording.file);
            continue;
        }
        check_exact(
            FORMAT,
            DocumentKind::Response,
            &recording.file,
            response.get(),
            &mut tally,
        );
        count += 1;
    }
    println!("ai sdk anthropic: {count} responses, losses {tally:?}; not answers: {skipped:?}");
    assert_eq!(skipped, other);
}

#[test]
fn recorded_requests_translate_into_valid_ones() {
    for target in Format::PROVIDERS.into_iter().filter(|one| *one != FORMAT) {
        check_translations(FORMAT, target);
    }
}

#[test]
fn answers_of_other_formats_are_valid_answers_here() {
    check_answers(FORMAT, "anthropic.messages.response");
}
