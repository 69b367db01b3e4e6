//! Gemini `generateContent` against recordings, schemas and hand-written cases.

use contexture_ir::{Item, Output, Part, ToolDefinition, Transcript};
use contexture_testdata as data;
use contexture_wire::{DocumentKind, Format, WireError, lift, lower};

use crate::recorded::{
    Tally, check_answers, check_exact, check_translations, dialect, findings, name, validators,
    value,
};

const FORMAT: Format = Format::Gemini;

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
    println!("gemini: {} requests, losses {tally:?}", exchanges.len());
}

#[test]
fn recorded_responses_come_back_exactly() {
    let mut tally = Tally::new();
    let (mut count, mut errors) = (0, 0);
    for exchange in data::exchanges(FORMAT.as_str()) {
        let Some(response) = exchange.response.as_deref() else {
            continue;
        };
        if exchange.status != 200 {
            let error = lift(FORMAT, response.get()).unwrap_err();
            assert!(matches!(error, WireError::WrongShape { .. }), "{error}");
            errors += 1;
            continue;
        }
        check_exact(
            FORMAT,
            DocumentKind::Response,
            &name(&exchange),
            response.get(),
            &mut tally,
        );
        count += 1;
    }
    println!("gemini: {count} responses, losses {tally:?}; {errors} errors refused");
    assert_eq!((count, errors), (103, 1));
}

#[test]
fn ai_sdk_responses_come_back_exactly() {
    let mut tally = Tally::new();
    let (mut count, mut skipped) = (0, Vec::new());
    for recording in data::ai_sdk("google") {
        let Some(response) = recording.response else {
            continue;
        };
        // The Interactions API (`steps`) and a bare error are not answers of `generateContent`.
        let parsed = value(response.get());
        if parsed.get("steps").is_some() || parsed.get("error").is_some() {
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
    println!("ai sdk google: {count} responses, losses {tally:?}; not answers: {skipped:?}");
    assert_eq!((count, skipped.len()), (5, 10));
}

#[test]
fn recorded_requests_translate_into_valid_ones() {
    for target in [
        Format::OpenAiChat,
        Format::OpenAiResponses,
        Format::Anthropic,
    ] {
        check_translations(FORMAT, target);
    }
}

#[test]
fn answers_of_other_formats_are_valid_answers_here() {
    check_answers(FORMAT, "gemini.GenerateContentResponse");
}

#[test]
fn the_canonical_form_of_recorded_requests_is_valid() {
    // The schema knows camelCase only, so the hints that say otherwise are taken away first.
    let validators = validators(FORMAT);
    let mut invalid = Vec::new();
    let exchanges = data::exchanges(FORMAT.as_str());
    for exchange in &exchanges {
        let mut transcript = lift(FORMAT, exchange.request.get()).unwrap().transcript;
        forget(&mut transcript);
        let lowered = lower(&dialect(FORMAT), DocumentKind::Request, &transcript);
        let findings = findings(validators, &lowered.json);
        if !findings.is_empty() {
            invalid.push(format!("{}: {findings:?}", name(exchange)));
        }
    }
    println!(
        "gemini: {} of {} outside the schema: {invalid:#?}",
        invalid.len(),
        exchanges.len()
    );
    // Provider tools are verbatim, snake_case included.
    assert!(
        invalid.iter().all(|finding| finding.contains("fileSearch")),
        "{invalid:#?}"
    );
    assert!(invalid.len() <= 1, "{invalid:#?}");
}

/// Takes away what is kept for wire formats.
fn forget(transcript: &mut Transcript) {
    const WIRE: &str = "ctx:wire";
    transcript.extra.remove(WIRE);
    for message in &mut transcript.instructions {
        message.extra.remove(WIRE);
        forget_parts(&mut message.content);
    }
    for tool in &mut transcript.tools {
        if let ToolDefinition::Function(tool) = tool {
            tool.extra.remove(WIRE);
        }
    }
    for item in &mut transcript.items {
        if let Some(extra) = item.extra_mut() {
            extra.remove(WIRE);
        }
        match item {
            Item::Message(message) => forget_parts(&mut message.content),
            Item::FunctionCallOutput(output) => {
                if let Output::Parts(parts) = &mut output.output {
                    forget_parts(parts);
                }
            }
            _ => {}
        }
    }
}

fn forget_parts(parts: &mut [Part]) {
    for extra in parts.iter_mut().filter_map(Part::extra_mut) {
        extra.remove("ctx:wire");
    }
}
