//! The post-condition, checked on what will be sent, from the facts of its chunks and their joins.
//!
//! A payload that names a cache object is checked whole: the object holds just what is left out.
//!
//! A breach is a fault of this program or of a format's writer; it is refused, never sent. Whether
//! each chunk is valid JSON of its schema is shown by tests.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use contexture_ir::quote_json;
use contexture_wire::{Envelope, RepairRules, Side};

use crate::blocks::lower::LoweredBlock;
use crate::error::Refusal;
use crate::input::CompileRequest;

/// How Anthropic's writer begins a system message inside the history. It is on the user's side, yet no
/// beginning.
const HOST: &str = r#"{"role":"system""#;

/// A payload about to leave.
pub(crate) struct VerifyInput<'a> {
    pub(crate) request: &'a CompileRequest,
    pub(crate) rules: RepairRules,
    pub(crate) limit: u64,
    pub(crate) tokens: u64,
    pub(crate) envelope: &'a Envelope,
    /// The pieces of contributions before the history, each with whose it is.
    pub(crate) before: &'a [(&'a LoweredBlock, &'a str)],
    /// What is kept of a history that was cut.
    pub(crate) kept: &'a [&'a LoweredBlock],
    /// The rest of the history.
    pub(crate) history: &'a [LoweredBlock],
    /// The pieces of contributions behind the history, each with whose it is.
    pub(crate) after: &'a [(&'a LoweredBlock, &'a str)],
    /// Whether the history is known to be in order, each call with an id of its own, and so is each part
    /// that is kept of what was cut.
    pub(crate) sound: bool,
    /// Whether it holds thinking that the plan leaves out.
    pub(crate) edited_thinking: bool,
    /// Texts that must stand in it unchanged.
    pub(crate) pinned: &'a [String],
}

impl<'a> VerifyInput<'a> {
    /// The pieces of contributions.
    fn contributed(&self) -> impl DoubleEndedIterator<Item = &'a LoweredBlock> + Clone {
        let all = self.before.iter().chain(self.after);
        all.map(|(piece, _)| *piece)
    }

    /// All pieces in their order.
    fn blocks(&self) -> impl DoubleEndedIterator<Item = &'a LoweredBlock> + Clone {
        let before = self.before.iter().map(|(piece, _)| *piece);
        let history = self.kept.iter().copied().chain(self.history);
        let after = self.after.iter().map(|(piece, _)| *piece);
        before.chain(history).chain(after)
    }

    fn len(&self) -> usize {
        self.before.len() + self.kept.len() + self.history.len() + self.after.len()
    }

    /// The contribution that a piece is of; `None` for the history's.
    fn owner(&self, at: usize) -> Option<&'a str> {
        let own = match self.before.get(at) {
            Some(own) => own,
            None => {
                let last = self.len() - self.after.len();
                self.after.get(at.checked_sub(last)?)?
            }
        };
        Some(own.1)
    }
}

/// What is wrong with the structure, and the pieces between which it is.
struct PostconditionError {
    what: String,
    blocks: [usize; 2],
}

/// Checks size, structure, pairs and pinned text.
pub(crate) fn verify_payload(sealed: &VerifyInput<'_>) -> Result<(), Refusal> {
    let unsound = |what: String| Err(Refusal::Unsound { reason: what });
    // Checked first: a payload that is too large is refused by the provider whatever its structure.
    if sealed.tokens > sealed.limit {
        let (tokens, limit) = (sealed.tokens, sealed.limit);
        return unsound(format!("{tokens} tokens where {limit} are allowed"));
    }
    if sealed.edited_thinking {
        return unsound("thinking stands behind an edit of what it was answered to".to_owned());
    }
    if !sealed.blocks().any(|piece| piece.element_count() > 0) {
        let target = sealed.request.target_name().to_owned();
        return Err(Refusal::NothingToSay { target });
    }
    if let Err(breach) = check_first_and_last(sealed).and_then(|()| check_call_pairs(sealed)) {
        // A contribution whose items break the structure is the caller's mistake and is named;
        // anything else is a fault of this program.
        let owner = |at: &usize| sealed.owner(*at);
        return match breach.blocks.iter().find_map(owner) {
            Some(source) => Err(Refusal::BadContribution {
                source_name: source.to_owned(),
                reason: breach.what,
            }),
            None => unsound(breach.what),
        };
    }
    check_pinned_texts(sealed)
}

/// Pinned texts stand in it unchanged.
fn check_pinned_texts(sealed: &VerifyInput<'_>) -> Result<(), Refusal> {
    match sealed.pinned.iter().find(|text| !has_text(sealed, text)) {
        Some(text) => Err(Refusal::Unsound {
            reason: format!(
                "pinned text is not in it: {}",
                text.chars().take(60).collect::<String>()
            ),
        }),
        None => Ok(()),
    }
}

/// Whoever must speak first and last does.
fn check_first_and_last(sealed: &VerifyInput<'_>) -> Result<(), PostconditionError> {
    if !sealed.rules.user_first {
        return Ok(());
    }
    // Blocks that lower to nothing do not speak: what the provider sees first is the first element
    // that is written.
    let spoken = |(_, piece): &(usize, &LoweredBlock)| piece.element_count() > 0;
    let first = (0..).zip(sealed.blocks()).find(spoken);
    let newest_first = (0..sealed.len()).rev().zip(sealed.blocks().rev());
    let last = { newest_first }.find(spoken);
    let breach = |at: usize, what: &str| {
        Err(PostconditionError {
            what: what.to_owned(),
            blocks: [at, at],
        })
    };
    match (first, last) {
        (Some((at, piece)), _) if piece.lowered.chunk.facts.first != Some(Side::User) => {
            breach(at, "the model would speak first")
        }
        (Some((at, piece)), _) if piece.lowered.json.starts_with(HOST) => {
            breach(at, "the host would speak first")
        }
        (_, Some((at, piece)))
            if piece.lowered.chunk.facts.last != Some(Side::User) && sealed.rules.user_last =>
        {
            breach(
                at,
                "the model would speak last, and it continues no begun answer",
            )
        }
        _ => Ok(()),
    }
}

/// Every call is answered before anybody else speaks, every output answers a call, and no id is used twice.
fn check_call_pairs(sealed: &VerifyInput<'_>) -> Result<(), PostconditionError> {
    // The common case: the history was checked when it was prepared, and no contribution makes calls.
    // It saves a pass over all ids of a long history.
    if sealed.sound && !sealed.contributed().any(has_calls) {
        return Ok(());
    }
    let blocks: Vec<&LoweredBlock> = sealed.blocks().collect();
    if is_sound(&blocks) {
        return Ok(());
    }
    find_unpaired_call(&blocks, sealed.rules.kept_beginning)
}

/// Goes through all calls and outputs in order, and tells where the first is without its other half.
fn find_unpaired_call(
    blocks: &[&LoweredBlock],
    kept_beginning: bool,
) -> Result<(), PostconditionError> {
    // By id: how many calls are open, and the piece of the last.
    let mut open: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let breach = |what: String, here: usize, there: usize| {
        Err(PostconditionError {
            what,
            blocks: [here, there],
        })
    };
    for (at, piece) in blocks.iter().enumerate() {
        let facts = &piece.lowered.chunk.facts;
        for output in &facts.outputs {
            match open.get_mut(output.as_str()) {
                // Calls of one id may be open more than once until the duplicate check below sees the
                // id twice.
                Some((count, _)) if *count > 1 => *count -= 1,
                Some(_) => drop(open.remove(output.as_str())),
                // The provider has the call.
                None if kept_beginning && !seen.contains_key(output.as_str()) => {}
                None => {
                    return breach(
                        format!("output {output:?} answers no call before it"),
                        at,
                        at,
                    );
                }
            }
        }
        // A block that says nothing does not stand between a call and its output.
        if facts.elements == 0 {
            continue;
        }
        if let Some((call, (_, from))) = open.first_key_value() {
            return breach(format!("call {call:?} has no output after it"), at, *from);
        }
        for call in &facts.calls {
            if let Some(before) = seen.insert(call, at) {
                return breach(format!("call id {call:?} is used twice"), at, before);
            }
            let (count, from) = open.entry(call).or_insert((0, at));
            (*count, *from) = (*count + 1, at);
        }
    }
    match open.first_key_value() {
        Some((call, (_, from))) => breach(format!("call {call:?} has no output"), *from, *from),
        None => Ok(()),
    }
}

fn has_calls(piece: &LoweredBlock) -> bool {
    let facts = &piece.lowered.chunk.facts;
    !facts.calls.is_empty() || !facts.outputs.is_empty()
}

/// Whether the outputs of every step follow it at once and in the order of its calls, as repair puts
/// them, and no two calls have one id.
pub(crate) fn is_sound<P: Borrow<LoweredBlock>>(pieces: &[P]) -> bool {
    let facts = || {
        pieces
            .iter()
            .map(|piece| &piece.borrow().lowered.chunk.facts)
    };
    let mut open: &[String] = &[];
    for facts in facts() {
        if facts.outputs != open {
            return false;
        }
        open = &facts.calls;
    }
    let mut ids: Vec<&String> = facts().flat_map(|facts| &facts.calls).collect();
    // Sorted neighbours instead of a set: one allocation, and ids are compared by reference.
    ids.sort_unstable();
    open.is_empty() && ids.windows(2).all(|pair| pair.first() != pair.last())
}

fn has_text(sealed: &VerifyInput<'_>, text: &str) -> bool {
    // Searched for as JSON would write it: the payload is never parsed again.
    let quoted = quote_json(text);
    let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    let envelope = sealed.envelope;
    let around = [&envelope.lead, &envelope.before, &envelope.after];
    // It is in a contribution's own pieces; only one that repair changed is looked for everywhere.
    let has = |piece: &LoweredBlock| piece.lowered.json.contains(inner);
    around.iter().any(|part| part.contains(inner))
        || sealed.contributed().any(has)
        || sealed.blocks().any(has)
}
