//! Every session to every provider at every window: valid, closed, within the window, or refused for
//! a reason that an independent sum confirms.

use std::collections::{BTreeMap, BTreeSet};

use contexture_compile::{CompileInput, CompileRequest, Plan, Refusal, Scratch, compile};
use contexture_ir::{Item, Role};
use contexture_wire::Format;
use serde_json::Value;

use crate::fixtures::{Session, counter_of, once, request, sessions};
use crate::invariants::{check_report, required_sum};

const WINDOWS: [u64; 3] = [4_000, 16_000, 128_000];

#[test]
fn every_session_compiles_or_is_rightly_refused() {
    let mut refused: BTreeMap<(u64, &str), (usize, usize)> = BTreeMap::new();
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let step = if soak { 1 } else { 9 };
    let all = sessions();
    for format in Format::PROVIDERS {
        let validator = contexture_testdata::request_validator(format.as_str());
        let mut scratch = Scratch::new();
        for session in all.iter().step_by(step) {
            for window in WINDOWS {
                let mut request = request(format, 0);
                request.window = window;
                request.reserve = window / 8;
                let counts = refused.entry((window, format.as_str())).or_default();
                counts.1 += 1;
                counts.0 += usize::from(check(session, &request, &validator, &mut scratch));
            }
        }
    }
    println!("refused:");
    for ((window, format), (refused, all)) in refused {
        println!("  window {window:>7} {format:<17} {refused:>4} of {all}");
    }
}

/// Whether it was refused.
fn check(
    session: &Session,
    request: &CompileRequest,
    validator: &contexture_testdata::Validator,
    scratch: &mut Scratch,
) -> bool {
    let counter = counter_of(request.dialect.format);
    let name = &session.name;
    let place = format!("{name} to {} at {}", request.dialect.format, request.window);
    let limit = request.window - request.reserve;
    let needed = required_sum(&session.path, &session.system, request, counter);
    let input = CompileInput {
        path: (&session.path).into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions: &session.system,
        plan: &Plan::default(),
        request,
        counter,
        cancel: None,
    };
    match compile(&input, scratch) {
        Ok(compiled) => {
            assert!(
                needed <= limit,
                "{place}: needs {needed} of {limit} and was compiled"
            );
            let payload: Value = serde_json::from_str(&compiled.payload.to_json()).unwrap();
            assert_eq!(
                validator.validation_errors(&payload),
                Vec::<String>::new(),
                "{place}"
            );
            closed(request.dialect.format, &payload)
                .unwrap_or_else(|what| panic!("{place}: {what}"));
            check_report(&compiled, &session.path, &place);
            false
        }
        Err(Refusal::DoesNotFit {
            needed: said,
            allowed,
            segments,
            ..
        }) => {
            assert_eq!(allowed, limit, "{place}");
            assert_eq!(
                said,
                segments.iter().map(|segment| segment.tokens).sum::<u64>(),
                "{place}"
            );
            assert_eq!(said, needed, "{place}: the independent sum");
            assert!(needed > limit, "{place}: {needed} of {limit} was refused");
            true
        }
        Err(other) => panic!("{place}: {other}"),
    }
}

/// Whether every call in a payload has its output right after it, read from the JSON alone.
pub(crate) fn closed(format: Format, payload: &Value) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    let array = match format {
        Format::OpenAiResponses => "input",
        Format::Gemini => "contents",
        _ => "messages",
    };
    for message in payload[array].as_array().ok_or("no messages")? {
        let (calls, outputs) = calls_and_outputs(format, message);
        let heard = message["role"]
            .as_str()
            .is_some_and(|role| role != "assistant" && role != "model");
        let speaks = calls.is_empty() && outputs.is_empty() && heard;
        for output in outputs {
            let at = open.iter().position(|call| *call == output);
            open.remove(at.ok_or_else(|| format!("output {output} without a call"))?);
        }
        if speaks && !open.is_empty() {
            return Err(format!("call {} not answered in time", open[0]));
        }
        for call in &calls {
            // Gemini's are known by their functions' names here.
            if format != Format::Gemini && !seen.insert(call.clone()) {
                return Err(format!("call id {call} is used twice"));
            }
        }
        open.extend(calls);
    }
    match open.first() {
        Some(call) => Err(format!("call {call} never answered")),
        None => Ok(()),
    }
}

fn calls_and_outputs(format: Format, message: &Value) -> (Vec<String>, Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = (Vec::new(), Vec::new());
    match format {
        Format::OpenAiChat => {
            found.0.extend(
                list(&message["tool_calls"])
                    .iter()
                    .map(|call| text(&call["id"])),
            );
            if message["role"] == "tool" {
                found.1.push(text(&message["tool_call_id"]));
            }
        }
        Format::OpenAiResponses => match message["type"].as_str() {
            Some("function_call" | "custom_tool_call") => found.0.push(text(&message["call_id"])),
            Some("function_call_output" | "custom_tool_call_output") => {
                found.1.push(text(&message["call_id"]));
            }
            _ => {}
        },
        Format::Anthropic => {
            for block in list(&message["content"]) {
                match block["type"].as_str() {
                    Some("tool_use") => found.0.push(text(&block["id"])),
                    Some("tool_result") => found.1.push(text(&block["tool_use_id"])),
                    _ => {}
                }
            }
        }
        _ => {
            for part in list(&message["parts"]) {
                if let Some(call) = part.get("functionCall") {
                    found.0.push(text(&call["name"]));
                }
                if let Some(output) = part.get("functionResponse") {
                    found.1.push(text(&output["name"]));
                }
            }
        }
    }
    found
}

#[test]
fn the_task_and_the_last_words_are_always_there() {
    for session in sessions().iter().step_by(17) {
        let compiled = match once(
            &session.path,
            &session.system,
            &request(Format::OpenAiChat, 6_000),
        ) {
            Ok(compiled) => compiled,
            Err(Refusal::DoesNotFit { .. }) => continue,
            Err(other) => panic!("{}: {other}", session.name),
        };
        let json = compiled.payload.to_json();
        let users = session
            .path
            .iter()
            .filter(|entry| entry.item.role() == Some(Role::User));
        let texts: Vec<String> = users.map(|entry| quoted(&entry.item)).collect();
        for text in [texts.first(), texts.last()].into_iter().flatten() {
            assert!(json.contains(text), "{}: {text}", session.name);
        }
    }
}

fn quoted(item: &Item) -> String {
    contexture_ir::quote_json(&item.text())
}
