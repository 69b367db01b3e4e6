//! What every provider's recordings are put to: exact round trips, valid translations.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use contexture_testdata::{self as data, Exchange, Validator};
use contexture_wire::{Dialect, DocumentKind, Format, Loss, Lowered, lift, lower};
use serde_json::Value;

/// Losses by kind.
pub(crate) type Tally = BTreeMap<&'static str, usize>;

pub(crate) fn tally(losses: &[Loss], into: &mut Tally) {
    for loss in losses {
        *into.entry(loss.what.as_str()).or_default() += 1;
    }
}

pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A name for messages of failing tests.
pub(crate) fn name(exchange: &Exchange) -> String {
    format!("{}#{}", exchange.file, exchange.index)
}

/// The dialect of the newest models, which recordings are of.
pub(crate) fn dialect(format: Format) -> Dialect {
    let mid_system = format != Format::Gemini;
    Dialect {
        mid_system,
        ..Dialect::of(format)
    }
}

/// What is wrong with a request; the schemas are those of requests that are not streamed.
pub(crate) fn findings(validators: &[Validator], json: &str) -> Vec<String> {
    let mut payload = value(json);
    if let Some(members) = payload.as_object_mut() {
        members.remove("stream");
    }
    let mut findings = Vec::new();
    for validator in validators {
        findings = validator.validation_errors(&payload);
        if findings.is_empty() {
            break;
        }
    }
    findings
}

/// The schemas of a format's requests, one of which must hold; compiled once.
pub(crate) fn validators(format: Format) -> &'static [Validator] {
    static ALL: [OnceLock<Vec<Validator>>; Format::PROVIDERS.len()] =
        [const { OnceLock::new() }; Format::PROVIDERS.len()];
    let place = Format::PROVIDERS
        .iter()
        .position(|provider| *provider == format)
        .unwrap();
    ALL[place].get_or_init(|| {
        let mut all = vec![data::request_validator(format.as_str())];
        if format == Format::Anthropic {
            all.push(Validator::new(&data::schema(
                "anthropic.messages.beta.request",
            )));
        }
        all
    })
}

/// Every recorded answer of another format, lowered to `target`, is valid there.
pub(crate) fn check_answers(target: Format, schema: &str) {
    let validator = Validator::new(&data::schema(schema));
    for format in Format::PROVIDERS
        .into_iter()
        .filter(|format| *format != target)
    {
        let mut tally_ = Tally::new();
        let mut count = 0;
        for exchange in data::exchanges(format.as_str()) {
            let Some(response) = exchange
                .response
                .as_deref()
                .filter(|_| exchange.status == 200)
            else {
                continue;
            };
            let lifted = lift(format, response.get()).unwrap();
            let lowered = lower(
                &Dialect::of(target),
                DocumentKind::Response,
                &lifted.transcript,
            );
            tally(&lowered.losses, &mut tally_);
            count += 1;
            let payload = value(&lowered.json);
            let findings = validator.validation_errors(&payload);
            assert!(
                findings.is_empty(),
                "{} to {target}: {findings:#?}\n{payload}",
                name(&exchange)
            );
            // What was written is read again as an answer.
            assert_eq!(
                lift(target, &lowered.json).unwrap().kind,
                DocumentKind::Response
            );
        }
        println!("{format} to {target}: {count} answers, losses {tally_:?}");
    }
}

/// Lifts and lowers within a format.
pub(crate) fn again(format: Format, kind: DocumentKind, text: &str) -> Result<Lowered, String> {
    let lifted = lift(format, text).map_err(|error| error.to_string())?;
    if lifted.kind != kind {
        return Err(format!("lifted as {:?}", lifted.kind));
    }
    let mut lowered = lower(&dialect(format), kind, &lifted.transcript);
    lowered.losses.extend(lifted.losses);
    Ok(lowered)
}

/// Fails unless the document comes back as it was, without a loss.
pub(crate) fn check_exact(
    format: Format,
    kind: DocumentKind,
    name: &str,
    text: &str,
    tally_: &mut Tally,
) {
    let lowered = again(format, kind, text).unwrap_or_else(|error| panic!("{name}: {error}"));
    tally(&lowered.losses, tally_);
    let (before, after) = (value(text), value(&lowered.json));
    assert!(
        before == after,
        "{name}: {}\n{:?}",
        difference(&before, &after, "$"),
        lowered.losses
    );
    assert!(
        lowered.losses.is_empty(),
        "{name}: equal, yet with losses {:?}",
        lowered.losses
    );
}

/// Every recorded request of `format`, lowered to `target`, is valid there.
pub(crate) fn check_translations(format: Format, target: Format) {
    let validators = validators(target);
    let mut tally_ = Tally::new();
    let exchanges = data::exchanges(format.as_str());
    for exchange in &exchanges {
        let mut lifted = lift(format, exchange.request.get()).unwrap();
        // Gemini names the model in the address.
        lifted
            .transcript
            .model
            .get_or_insert_with(|| "model".to_owned());
        let lowered = lower(
            &Dialect::of(target),
            DocumentKind::Request,
            &lifted.transcript,
        );
        tally(&lowered.losses, &mut tally_);
        let findings = findings(validators, &lowered.json);
        assert!(
            findings.is_empty(),
            "{} to {target}: {findings:#?}",
            name(exchange)
        );
    }
    println!(
        "{format} to {target}: {} requests, losses {tally_:?}",
        exchanges.len()
    );
}

/// The first place where two values differ.
pub(crate) fn difference(a: &Value, b: &Value, path: &str) -> String {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                match b.get(key) {
                    None => return format!("{path}.{key} is gone, was {value}"),
                    Some(other) if other != value => {
                        return difference(value, other, &format!("{path}.{key}"));
                    }
                    Some(_) => {}
                }
            }
            let new = b.keys().find(|key| !a.contains_key(*key));
            format!("{path} gained {new:?}")
        }
        (Value::Array(a), Value::Array(b)) => {
            for (index, (left, right)) in a.iter().zip(b).enumerate() {
                if left != right {
                    return difference(left, right, &format!("{path}[{index}]"));
                }
            }
            format!("{path} has {} elements, had {}", b.len(), a.len())
        }
        _ => format!("{path} is {b}, was {a}"),
    }
}
