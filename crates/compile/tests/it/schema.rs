//! Real reports agree with the published JSON Schema, and hold nothing that it does not describe.

use contexture_compile::{Band, HistoryPolicy, PreviewPolicy, Report, TextSize};
use contexture_ir::ToolDefinition;
use contexture_wire::{Format, lift};
use jsonschema::Validator;
use serde_json::Value;

use crate::fixtures::{once, request, sessions};
use crate::report::eventful;

const PUBLISHED: &str = include_str!("../../../../docs/schema/report.schema.json");

/// The published schema; `strict`, in which no object may have a field that is not described.
fn validators() -> [Validator; 2] {
    let published: Value = serde_json::from_str(PUBLISHED).unwrap();
    let mut strict = published.clone();
    close(&mut strict);
    [published, strict].map(|schema| jsonschema::validator_for(&schema).unwrap())
}

fn close(schema: &mut Value) {
    if let Value::Object(object) = schema {
        if object.contains_key("properties") {
            object.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        object.values_mut().for_each(close);
    } else if let Value::Array(list) = schema {
        list.iter_mut().for_each(close);
    }
}

fn findings(report: &Value, validators: &[Validator]) -> Vec<String> {
    let all = validators.iter().flat_map(|one| one.iter_errors(report));
    all.map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn check(name: &str, report: &Report, validators: &[Validator]) {
    let findings = findings(&serde_json::to_value(report).unwrap(), validators);
    assert!(findings.is_empty(), "{name}: {findings:#?}");
}

#[test]
fn real_reports_agree_with_the_published_schema() {
    let validators = validators();
    let (mut reports, mut omitted, mut rewritten, mut repairs, mut losses) = (0, 0, 0, 0, 0);
    let mut see = |name: &str, report: &Report| {
        check(name, report, &validators);
        reports += 1;
        omitted += report.omitted.len();
        rewritten += report.rewritten.len();
        repairs += report.repairs.len();
        losses += report.losses.len();
    };
    let sessions = sessions();
    let some = sessions
        .iter()
        .step_by(20)
        .chain(sessions.iter().rev().take(5));
    for session in some {
        for format in Format::PROVIDERS {
            for limit in [3_000, 12_000, 200_000] {
                let mut request = request(format, limit);
                request.history = HistoryPolicy {
                    preview: Some(PreviewPolicy {
                        threshold: TextSize::Characters(2_000),
                        ..PreviewPolicy::default()
                    }),
                    ..HistoryPolicy::for_one_call()
                };
                if let Ok(compiled) = once(&session.path, &session.system, &request) {
                    see(&session.name, &compiled.report);
                }
            }
        }
    }
    // Recorded requests have tools, options and blocks that other formats cannot say.
    for exchange in contexture_testdata::exchanges("anthropic").iter().take(40) {
        let Ok(lifted) = lift(Format::Anthropic, exchange.request.get()) else {
            continue;
        };
        let transcript = lifted.transcript;
        let path = contexture_compile::PathItem::from_items(transcript.items);
        let mut request = request(Format::Gemini, 100_000);
        request.options = transcript.options;
        let own = |tool: &ToolDefinition| matches!(tool, ToolDefinition::Provider(_));
        request.tools = transcript
            .tools
            .into_iter()
            .filter(|tool| !own(tool))
            .collect();
        if let Ok(compiled) = once(&path, &[], &request) {
            see(&exchange.file, &compiled.report);
        }
    }
    println!(
        "{reports} reports: {omitted} spans omitted, {rewritten} items rewritten, {repairs} repairs, {losses} losses"
    );
    assert!(reports > 150 && omitted > 20 && rewritten > 20 && repairs > 5 && losses > 5);
    check("eventful", &eventful(), &validators);
}

#[test]
fn what_is_no_report_does_not_agree() {
    let validators = validators();
    let good = serde_json::to_value(eventful()).unwrap();
    let mut bad = Vec::new();
    let mut break_it = |pointer: &str, value: Value| {
        let mut report = good.clone();
        *report.pointer_mut(pointer).unwrap() = value;
        bad.push((pointer.to_owned(), report));
    };
    break_it("/segments/0/verdict", "eaten".into());
    break_it("/segments/0/band", "trombone".into());
    break_it("/segments/0/tokens", (-1).into());
    break_it("/totals/tokens", "many".into());
    break_it("/epoch/reason", "whim".into());
    break_it("/cache/kind", "magic".into());
    break_it("/rewritten/0/how", "sung".into());
    for (pointer, report) in bad {
        assert!(!findings(&report, &validators[..1]).is_empty(), "{pointer}");
    }
    for field in good.as_object().unwrap().keys() {
        let mut report = good.clone();
        report.as_object_mut().unwrap().remove(field);
        assert!(
            !findings(&report, &validators[..1]).is_empty(),
            "without {field}"
        );
    }
}

#[test]
fn every_band_is_in_the_published_schema() {
    let published: Value = serde_json::from_str(PUBLISHED).unwrap();
    let published = published["$defs"]["SegmentBand"]["enum"]
        .as_array()
        .unwrap();
    for band in [
        Band::System,
        Band::Anchor,
        Band::History,
        Band::Live,
        Band::Tail,
    ] {
        assert!(published.contains(&band.as_str().into()), "{band:?}");
    }
}
