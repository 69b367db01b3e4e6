//! What providers refuse, as data: `tests/fixtures/provider_rules.json` has an input for every rule, the thread it was
//! learned from, what is to come of it, and what the report is to say. `tests/fixtures/README.md` describes the fields.
//!
//! Every case takes both roads: through the compiler, and through the converter that repairs. What comes out is legal, so
//! it goes in again: it must come out as it is, with nothing to report.

use std::collections::BTreeSet;

use contexture_catalogue::Catalogue;
use contexture_compile::{Band, CompileError, Compiler, Content, Contribution, Converter, Target};
use contexture_wire::{DocumentKind, Format, WireError, lift};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const CASES: &str = include_str!("../fixtures/provider_rules.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    rule: String,
    source: String,
    from: Format,
    to: Option<Format>,
    model: String,
    roads: Option<Vec<Road>>,
    request: Map<String, Value>,
    expect: Option<Map<String, Value>>,
    refused: Option<String>,
    report: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Road {
    Compile,
    Convert,
}

/// A payload and the codes of its report, or the word of the refusal.
type Outcome = Result<(Value, BTreeSet<String>), String>;

impl Road {
    fn name(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Convert => "convert",
        }
    }

    fn take(self, from: Format, to: Format, model: &str, request: &Value) -> Outcome {
        match self {
            Self::Compile => compiled(from, to, model, request),
            Self::Convert => converted(from, to, model, request),
        }
    }
}

fn compiled(from: Format, to: Format, model: &str, request: &Value) -> Outcome {
    let lifted = lift(from, &request.to_string()).unwrap();
    assert_eq!(lifted.kind, DocumentKind::Request);
    let document = lifted.transcript;
    let target = Target::new(to, model)
        .options(document.options)
        .tools(document.tools)
        // Markers stand where they help the cache; no rule but that of their number concerns them.
        .marker_policy(None);
    let mut compiler = Compiler::new(Catalogue::builtin());
    if !document.instructions.is_empty() {
        let instructions = Content::Instructions(document.instructions);
        compiler = compiler.with_contribution(Contribution::new(
            "instructions",
            Band::System,
            instructions,
        ));
    }
    let compiled = match compiler.compile(&document.items, &target) {
        Ok(compiled) => compiled,
        Err(CompileError::Refused(refusal)) => return Err(refusal.kind().to_owned()),
        Err(error) => panic!("{error}"),
    };
    let repairs = compiled.report.repairs.iter();
    let repairs = repairs.map(|repair| repair.what.clone());
    let losses = compiled.report.losses.iter();
    let losses = losses.map(|loss| format!("{}: {}", loss.path, loss.what.as_str()));
    Ok((
        serde_json::from_str(&compiled.payload.to_json()).unwrap(),
        repairs.chain(losses).collect(),
    ))
}

fn converted(from: Format, to: Format, model: &str, request: &Value) -> Outcome {
    let converter = Converter::new(Catalogue::builtin(), to).for_model(model);
    let converter = converter.unwrap().with_repairs();
    let converted = match converter.convert(from, &request.to_string()) {
        Ok(converted) => converted,
        Err(WireError::Tools(refusal)) => return Err(refusal.kind().to_owned()),
        Err(error) => panic!("{error}"),
    };
    let repairs = converted.repairs.iter().flatten();
    let repairs = repairs.map(|issue| issue.kind.as_str().to_owned());
    let losses = converted.losses.iter();
    let losses = losses.map(|loss| format!("{}: {}", loss.path, loss.what.as_str()));
    Ok((
        serde_json::from_str(&converted.json).unwrap(),
        repairs.chain(losses).collect(),
    ))
}

/// `X` for the hash at the end of a name or an id that was made up.
fn without_hashes(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.rsplit_once('_') {
            Some((stem, hash)) if is_hash(hash) => json!(format!("{stem}_X")),
            _ => value.clone(),
        },
        Value::Array(all) => all.iter().map(without_hashes).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), without_hashes(value)))
            .collect(),
        _ => value.clone(),
    }
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 8 | 12 | 32) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Neighbouring messages of people and tools as one: the providers that want turns merge them, and the compiler writes
/// outputs apart from what people say.
fn with_merged_turns(value: &Value) -> Value {
    let Some(messages) = value.as_array() else {
        return value.clone();
    };
    let mut merged: Vec<Value> = Vec::new();
    for message in messages {
        let key = ["content", "parts"]
            .into_iter()
            .find(|key| message["role"] == "user" && message[*key].is_array());
        if let (Some(key), Some(last)) = (key, merged.last_mut())
            && last["role"] == "user"
            && let Some(parts) = last[key].as_array_mut()
        {
            parts.extend(message[key].as_array().cloned().unwrap_or_default());
        } else {
            merged.push(message.clone());
        }
    }
    merged.into()
}

/// The request of a case; `"tools:N"` stands for N functions.
fn request_of(case: &Case) -> Value {
    let mut request = case.request.clone();
    let count = request.get("tools").and_then(Value::as_str);
    if let Some(count) = count.and_then(|tools| tools.strip_prefix("tools:")) {
        let count: usize = count.parse().unwrap();
        let tool = |at| {
            let schema = json!({"type": "object", "properties": {}});
            json!({"type": "function", "function": {"name": format!("t{at}"), "parameters": schema}})
        };
        request.insert("tools".to_owned(), (0..count).map(tool).collect());
    }
    request.insert("model".to_owned(), json!(case.model));
    request.retain(|_, value| !value.is_null());
    Value::Object(request)
}

/// The codes that a road is to report; a code may be one road's alone: `convert:tools: field`.
fn expected_report(case: &Case, road: Road) -> BTreeSet<String> {
    let codes = case.report.iter().filter_map(|code| {
        let own = [Road::Compile, Road::Convert].into_iter().find_map(|one| {
            let rest = code.strip_prefix(one.name())?.strip_prefix(':')?;
            Some((one, rest))
        });
        match own {
            Some((one, rest)) => (one == road).then(|| rest.to_owned()),
            None => Some(code.clone()),
        }
    });
    codes.collect()
}

/// What differs from the expectation, if anything.
fn check_case(case: &Case, road: Road) -> Result<(), String> {
    let to = case.to.unwrap_or(case.from);
    let request = request_of(case);
    let (payload, report) = match (
        road.take(case.from, to, &case.model, &request),
        &case.refused,
    ) {
        (Err(found), Some(expected)) if found == *expected => return Ok(()),
        (Err(found), _) => return Err(format!("refused: {found}")),
        (Ok((payload, _)), Some(expected)) => {
            return Err(format!("not refused as {expected}: {payload}"));
        }
        (Ok(outcome), None) => outcome,
    };
    let mut legal = payload.clone();
    for (member, expected) in case.expect.iter().flatten() {
        let found = without_hashes(payload.get(member).unwrap_or(&Value::Null));
        let turns = matches!(to, Format::Anthropic | Format::Gemini);
        let shown = |value: &Value| match turns {
            true => with_merged_turns(value),
            false => value.clone(),
        };
        if shown(&found) != shown(expected) {
            return Err(format!(
                "{member}\n  found    {found}\n  expected {expected}"
            ));
        }
    }
    let expected = expected_report(case, road);
    if report != expected {
        return Err(format!("report {report:?}, expected {expected:?}"));
    }
    // The caches of other providers have members of their own, which the compiler adds.
    legal["model"] = json!(case.model);
    let (again, report) = road.take(to, to, &case.model, &legal)?;
    for member in case.expect.iter().flatten().map(|(member, _)| member) {
        if again.get(member) != payload.get(member) {
            return Err(format!("{member} of what is legal changed to {again}"));
        }
    }
    match report.is_empty() {
        true => Ok(()),
        false => Err(format!("of what is legal it reports {report:?}")),
    }
}

#[test]
fn every_rule_is_kept_on_both_roads() {
    let cases: Vec<Case> = serde_json::from_str(CASES).unwrap();
    let mut found = Vec::new();
    for case in &cases {
        for road in [Road::Compile, Road::Convert] {
            if case
                .roads
                .as_ref()
                .is_some_and(|roads| !roads.contains(&road))
            {
                continue;
            }
            if let Err(why) = check_case(case, road) {
                let (rule, source) = (&case.rule, &case.source);
                found.push(format!("{rule} ({source}), {}: {why}", road.name()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} findings\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn every_rule_names_its_source() {
    let cases: Vec<Case> = serde_json::from_str(CASES).unwrap();
    let rules: BTreeSet<&str> = cases.iter().map(|case| case.rule.as_str()).collect();
    for (letter, count) in [("A", 43), ("C", 15), ("R", 12), ("G", 14)] {
        for at in 1..=count {
            let rule = format!("{letter}{at:02}");
            assert!(rules.contains(rule.as_str()), "{rule} has no input");
        }
    }
    assert!(cases.iter().all(|case| !case.source.is_empty()));
}
