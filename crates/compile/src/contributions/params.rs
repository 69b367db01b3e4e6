//! Fields of the payload that a caller sets verbatim.
//!
//! A parameter wins over the payload's field of that name. Where both are objects they are merged
//! member by member, all the way down; objects of different `type` are different things, and the
//! given one stands alone. A field that the payload does not have comes last. What compile must know
//! to keep its promises (the history, the tools, the model, the output limit) cannot be set here.

use std::collections::BTreeMap;

use contexture_ir::{Fields, Raw};
use contexture_wire::{Envelope, Format, find_member};

use crate::contributions::envelope_fields::{EnvelopeFields, Member, push_member};
use crate::error::Refusal;

/// Objects nested deeper are replaced, not merged.
const DEEPEST: usize = 32;

const OWNED: [&str; 10] = [
    "messages",
    "input",
    "contents",
    "system",
    "systemInstruction",
    "tools",
    "model",
    // A whole number is taken as the option; anything else is no limit.
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
];

/// The envelope with parameters laid over it.
pub(crate) fn overlay_params(
    envelope: Envelope,
    format: Format,
    params: &[(String, Raw)],
) -> Result<Envelope, Refusal> {
    if params.is_empty() {
        return Ok(envelope);
    }
    if let Some((name, _)) = params
        .iter()
        .find(|(name, value)| OWNED.contains(&name.as_str()) || sets_tools(format, name, value))
    {
        return Err(Refusal::BadParameter {
            name: name.clone(),
            reason: "is written by the compile and cannot be set to this",
        });
    }
    let Some(mut edges) = EnvelopeFields::parse_envelope(&envelope.before, &envelope.after) else {
        debug_assert!(false, "an envelope is an object around an array");
        return Ok(envelope);
    };
    for (name, value) in params {
        let known = edges.front.iter_mut().chain(&mut edges.back);
        match known.rev().find(|(known, _)| known == name) {
            Some((_, own)) => *own = merge_json(own, value.get(), DEEPEST),
            None => edges.back.push((name.clone(), value.get().to_owned())),
        }
    }
    Ok(Envelope {
        before: edges.opening_text(),
        after: edges.closing_text(),
        ..envelope
    })
}

/// Whether a parameter holds the format's tools, where they stand below another member.
fn sets_tools(format: Format, name: &str, value: &Raw) -> bool {
    let mut paths = format.spec().tool_paths().iter();
    paths.any(|path| match path {
        [first, rest @ ..] if *first == name && !rest.is_empty() => {
            let fields = value.fields();
            fields.is_some_and(|fields| find_member(&fields, &[rest]).is_some())
        }
        _ => false,
    })
}

fn merge_json(own: &str, given: &str, depth: usize) -> String {
    let objects = (Fields::parse(own), Fields::parse(given));
    let (Ok(ours), Ok(theirs)) = objects else {
        return given.to_owned();
    };
    let kind = |fields: &Fields<'_>| fields.get(&["type"]).map(|kind| kind.get().to_owned());
    let other = matches!((kind(&ours), kind(&theirs)), (Some(a), Some(b)) if a != b);
    if other || depth == 0 {
        return given.to_owned();
    }
    let mut given: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, value) in theirs.iter() {
        given.insert(name, value.get());
    }
    let mut all: Vec<Member> = Vec::new();
    for (name, value) in ours.iter() {
        let value = match given.remove(name) {
            Some(given) => merge_json(value.get(), given, depth - 1),
            None => value.get().to_owned(),
        };
        all.push((name.to_owned(), value));
    }
    for (name, value) in theirs.iter() {
        if given.remove(name).is_some() {
            all.push((name.to_owned(), value.get().to_owned()));
        }
    }
    let mut out = String::from("{");
    for member in &all {
        if out.len() > 1 {
            out.push(',');
        }
        push_member(&mut out, member);
    }
    out.push('}');
    out
}
