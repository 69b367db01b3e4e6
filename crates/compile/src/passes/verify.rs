//! The post-condition, checked on what will be sent, from the facts of its chunks and their joins.
//!
//! A breach is a fault of this program or of a format's writer; it is refused, never sent. Whether
//! each chunk is valid JSON of its schema is shown by tests.

use std::collections::BTreeSet;

use contexture_ir::quote;
use contexture_wire::{Envelope, Facts, Format, Side};

use crate::passes::lower::Piece;
use crate::refusal::Refusal;
use crate::request::CompileRequest;

/// A payload about to leave.
pub(crate) struct Sealed<'a> {
    pub(crate) request: &'a CompileRequest,
    pub(crate) limit: u64,
    pub(crate) tokens: u64,
    pub(crate) envelope: &'a Envelope,
    pub(crate) pieces: &'a [&'a Piece],
    /// Texts that must stand in it unchanged.
    pub(crate) pinned: &'a [String],
}

/// Checks size, structure, pairs and pinned text.
pub(crate) fn verify(sealed: &Sealed<'_>) -> Result<(), Refusal> {
    let format = sealed.request.dialect.format;
    let unsound = |what: String| Err(Refusal::Unsound { what });
    if sealed.tokens > sealed.limit {
        let (tokens, limit) = (sealed.tokens, sealed.limit);
        return unsound(format!("{tokens} tokens where {limit} are allowed"));
    }
    let facts = || {
        let all = sealed.pieces.iter().map(|piece| &piece.lowered.chunk.facts);
        all.filter(|facts| facts.elements > 0)
    };
    let Some(first) = facts().next().map(|facts| facts.first) else {
        return Err(Refusal::NothingToSay { format });
    };
    let strict = matches!(format, Format::Anthropic | Format::Gemini);
    if strict && first == Some(Side::Model) {
        return unsound("the model speaks first".to_owned());
    }
    let last = facts().next_back().map(|facts| facts.last);
    if strict && !sealed.request.prefill && last == Some(Some(Side::Model)) {
        return unsound("the model speaks last and takes no prefill".to_owned());
    }
    if let Err(what) = pairs(facts()) {
        return unsound(what);
    }
    match sealed.pinned.iter().find(|text| !stands(sealed, text)) {
        Some(text) => unsound(format!(
            "pinned text is not in it: {}",
            text.chars().take(60).collect::<String>()
        )),
        None => Ok(()),
    }
}

/// Every call is answered before anybody else speaks, every output answers a call, and no id is used
/// twice.
fn pairs<'a>(facts: impl Iterator<Item = &'a Facts>) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for facts in facts {
        for output in &facts.outputs {
            if !open.remove(output.as_str()) {
                return Err(format!("output {output:?} answers no call before it"));
            }
        }
        if let Some(call) = open.first() {
            return Err(format!("call {call:?} has no output after it"));
        }
        for call in &facts.calls {
            if !seen.insert(call) {
                return Err(format!("call id {call:?} is used twice"));
            }
            open.insert(call);
        }
    }
    match open.first() {
        Some(call) => Err(format!("call {call:?} has no output")),
        None => Ok(()),
    }
}

fn stands(sealed: &Sealed<'_>, text: &str) -> bool {
    let quoted = quote(text);
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    let envelope = sealed.envelope;
    let around = [&envelope.lead, &envelope.before, &envelope.after];
    around.iter().any(|part| part.contains(inner))
        || sealed
            .pieces
            .iter()
            .rev()
            .any(|piece| piece.lowered.json.contains(inner))
}
