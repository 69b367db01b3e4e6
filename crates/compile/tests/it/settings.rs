//! A request compiled for its own format is the same request: whatever differs is in the report.

use std::collections::BTreeSet;

use contexture_catalogue::{Catalogue, Encoding, ModelSpec};
use contexture_compile::{
    Band, CompileError, Compiled, Compiler, Content, Contribution, HistoryPolicy, Target,
};
use contexture_ir::Transcript;
use contexture_testdata::exchanges;
use contexture_wire::{Format, LossKind, lift};
use serde_json::Value;

use crate::recorded::model_of;

/// A window in which every recorded request fits whole.
const WIDE: u64 = 4_000_000;

/// Compiles a request as it came, for its own format, with nothing to cut.
fn compile_as_it_came(
    format: Format,
    model: &str,
    request: &Transcript,
) -> Result<Compiled, CompileError> {
    let builtin = Catalogue::builtin();
    let catalogue = match builtin.resolve(model) {
        Ok(_) => builtin.clone(),
        Err(_) => builtin.with_model(ModelSpec::new(model, WIDE, Encoding::Other)),
    };
    let mut spec = catalogue.resolve(model).unwrap().clone();
    // Some recorded hosts serve models of other makers.
    spec.provider = String::new();
    let catalogue = catalogue.with_model(spec);
    let target = Target::new(format, model)
        .window(WIDE)
        .request_settings(request)
        .keep_model_name()
        .marker_policy(None)
        .history(HistoryPolicy::for_one_call());
    let mut compiler = Compiler::new(&catalogue);
    if !request.instructions.is_empty() {
        let content = Content::Instructions(request.instructions.clone());
        let said = Contribution::new("instructions", Band::System, content);
        compiler = compiler.with_contribution(said);
    }
    compiler.compile(&request.items, &target)
}

/// Joins neighbouring messages of one role, which the provider reads as one. A compile begins a message where a person
/// speaks behind outputs, so that what stands before keeps its bytes.
fn join_neighbours(body: &mut Value) {
    let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) else {
        return;
    };
    let mut joined: Vec<Value> = Vec::new();
    for message in messages.drain(..) {
        let last = joined
            .last_mut()
            .filter(|last| last["role"] == message["role"]);
        match (last, message["content"].as_array()) {
            (Some(last), Some(more)) if last["content"].is_array() => {
                last["content"]
                    .as_array_mut()
                    .unwrap()
                    .extend(more.iter().cloned());
            }
            _ => joined.push(message),
        }
    }
    *messages = joined;
}

/// Collects the paths at which two values differ.
fn differences(at: &str, a: Option<&Value>, b: Option<&Value>, found: &mut BTreeSet<String>) {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for name in a.keys().chain(b.keys()) {
                let at = match at {
                    "" => name.clone(),
                    at => format!("{at}.{name}"),
                };
                differences(&at, a.get(name), b.get(name), found);
            }
        }
        (a, b) if a != b => {
            found.insert(at.to_owned());
        }
        _ => {}
    }
}

/// The members that the report says are not as they came.
fn declared(format: Format, compiled: &Compiled) -> BTreeSet<String> {
    let spec = format.spec();
    let options = spec.option_members();
    let holder = options
        .holder
        .map_or_else(String::new, |name| format!("{name}."));
    let report = &compiled.report;
    let mut declared = BTreeSet::new();
    let losses = report.losses.iter().map(|loss| loss.path.as_str());
    let settings = report.settings.iter().map(|change| change.field.as_str());
    for path in losses.chain(settings) {
        match path {
            "options.max_output_tokens" => {
                let names = options.output_limit.iter();
                declared.extend(names.map(|name| format!("{holder}{name}")));
                // An object that was not there and holds nothing else.
                declared.extend(options.holder.map(str::to_owned));
            }
            path if path.starts_with("items[") => {
                declared.extend(spec.members().map(|members| members.history.to_owned()));
            }
            path => {
                declared.insert(path.to_owned());
            }
        }
    }
    if !report.repairs.is_empty() {
        declared.extend(spec.members().map(|members| members.history.to_owned()));
    }
    declared
}

#[test]
fn a_request_compiled_for_its_own_format_stays_as_it_is() {
    let mut wrong = Vec::new();
    for format in Format::PROVIDERS {
        let mut count = 0;
        for exchange in exchanges(format.as_str()) {
            let name = format!("{format} {}#{}", exchange.file, exchange.index);
            let request = lift(format, exchange.request.get()).unwrap().transcript;
            if request.items.is_empty() {
                continue;
            }
            let model = model_of(&exchange).unwrap_or_else(|| "unknown".to_owned());
            let compiled = match compile_as_it_came(format, &model, &request) {
                Ok(compiled) => compiled,
                Err(error) => {
                    wrong.push(format!("{name}: {error}"));
                    continue;
                }
            };
            let mut payload: Value = serde_json::from_str(&compiled.payload.to_json()).unwrap();
            let mut original: Value = serde_json::from_str(exchange.request.get()).unwrap();
            if format == Format::Anthropic {
                join_neighbours(&mut payload);
                join_neighbours(&mut original);
            }
            let mut found = BTreeSet::new();
            differences("", Some(&original), Some(&payload), &mut found);
            let declared = declared(format, &compiled);
            found.retain(|path| !declared.contains(path));
            if !found.is_empty() {
                let shown = payload.to_string();
                wrong.push(format!("{name}: {found:?} in {shown:.1500}"));
            }
            count += 1;
        }
        assert!(count > 10, "{format}: {count} requests");
    }
    assert!(
        wrong.is_empty(),
        "{} of them:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn settings_of_another_format_are_written_or_listed() {
    let own = [
        (
            Format::Anthropic,
            r#""top_k":5,"thinking":{"type":"adaptive"},"service_tier":"auto","container":"c1""#,
        ),
        (
            Format::OpenAiChat,
            r#""frequency_penalty":0.5,"service_tier":"flex","provider":{"order":["x"]}"#,
        ),
        (
            Format::OpenAiResponses,
            r#""include":["reasoning.encrypted_content"],"text":{"verbosity":"low"},"truncation":"auto""#,
        ),
        (
            Format::Gemini,
            r#""safetySettings":[{"category":"C","threshold":"T"}],"generationConfig":{"topK":4,"responseModalities":["TEXT"]}"#,
        ),
    ];
    for (from, settings) in own {
        let members = from.spec().members().unwrap();
        let message = match from {
            Format::Gemini => r#"{"role":"user","parts":[{"text":"Hello"}]}"#,
            _ => r#"{"role":"user","content":"Hello"}"#,
        };
        let body = format!(r#"{{"{}":[{message}],{settings}}}"#, members.history);
        let request = lift(from, &body).unwrap().transcript;
        for to in [
            Format::Anthropic,
            Format::OpenAiChat,
            Format::OpenAiResponses,
            Format::Gemini,
        ] {
            let compiled = compile_as_it_came(to, "unknown", &request).unwrap();
            let json = compiled.payload.to_json();
            let told: Vec<&str> = compiled
                .report
                .losses
                .iter()
                .filter(|loss| loss.what == LossKind::Option)
                .map(|loss| loss.path.as_str())
                .collect();
            let Value::Object(written) = serde_json::from_str(&format!("{{{settings}}}")).unwrap()
            else {
                panic!("{settings}");
            };
            for name in written.keys() {
                let is_told = told.iter().any(|path| path.contains(name.as_str()));
                assert!(
                    json.contains(&format!("\"{name}\":")) || is_told,
                    "{from} to {to}: {name} is gone; told: {told:?}"
                );
            }
        }
    }
}
