//! Whole documents in and out: what `convert` does.
//!
//! Lifting detects whether a text is a request, a response or a bare array of messages. Lowering
//! writes the same kind of document. Nothing is repaired on the way: a history that does not pair is
//! written as it is, see [`crate::repair()`].
//!
//! Which format a document is of is told by its formats: all are asked, and the most certain evidence wins.

use std::borrow::Cow;

use contexture_ir::{Cancel, Fields, Transcript, replace_lone_surrogates};

use crate::custom_calls::with_functions;
use crate::markers::markers;
use crate::model::chunk::{Chunk, Dialect, Envelope};
use crate::model::conversion::{DocumentKind, Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::Evidence;
use crate::model::format::Format;
use crate::model::loss::{Loss, LossKind, Losses};
use crate::model::paired_item::{RoleRun, paired_items};
use crate::surrogates::keep_replaced_strings;
use crate::truncation;
use crate::turns::role_runs;
use crate::ui::report_message_fields;

/// Reads a request body, a response body or a bare array of messages.
///
/// # Errors
/// [`WireError::NotJson`], [`WireError::WrongShape`] or [`WireError::Invalid`]; for UI messages also
/// [`WireError::InvalidUi`].
pub fn lift(format: Format, text: &str) -> Result<Lifted, WireError> {
    lift_unless_cancelled(format, text, None)
}

/// As [`lift`], unless it is called off, which is looked at before each message or item of a request.
///
/// # Errors
/// As [`lift`], and [`WireError::Cancelled`].
pub fn lift_unless_cancelled(
    format: Format,
    text: &str,
    cancel: Option<&Cancel>,
) -> Result<Lifted, WireError> {
    // Checked once for all formats: their readers cut the text into slices and would report a
    // syntax error as a wrong shape.
    check_json(text)?;
    let mut lifted = match format.spec().parse(text, cancel) {
        Ok(lifted) => lifted,
        Err(error) => {
            let replaced = parse_with_replacements(format, text, cancel);
            // Once cancelled it stays so, however the format reports it.
            Cancel::check_optional(cancel)?;
            replaced.ok_or(error)?
        }
    };
    // Only an accumulator writes truncation marks, and it only writes responses.
    if lifted.kind == DocumentKind::Response {
        truncation::take_truncation_marks(format, &mut lifted.transcript);
    }
    Ok(lifted)
}

/// Reads a document in which halves of surrogate pairs stand where text must be; `None` if that is not what is wrong.
fn parse_with_replacements(format: Format, text: &str, cancel: Option<&Cancel>) -> Option<Lifted> {
    let Cow::Owned(readable) = replace_lone_surrogates(text) else {
        return None;
    };
    let mut lifted = format.spec().parse(&readable, cancel).ok()?;
    keep_replaced_strings(text, &mut lifted.transcript);
    lifted.losses.push(Loss {
        path: String::new(),
        what: LossKind::Value,
        why: "halves of surrogate pairs are read as U+FFFD".to_owned(),
    });
    Some(lifted)
}

/// Writes a document of the given kind.
#[must_use]
pub fn lower(dialect: &Dialect, kind: DocumentKind, transcript: &Transcript) -> Lowered {
    let mut losses = Losses::default();
    let transcript = with_functions(transcript, dialect.format, &mut losses);
    let whole = dialect.format.spec().encode_document(kind, &transcript);
    let mut lowered = whole.unwrap_or_else(|| lower_runs(dialect, kind, &transcript));
    lowered.losses.extend(losses.into_vec());
    lowered
}

/// Puts a document together from an envelope and one chunk per run.
fn lower_runs(dialect: &Dialect, kind: DocumentKind, transcript: &Transcript) -> Lowered {
    let spec = dialect.format.spec();
    let mut envelope = lower_envelope(dialect, transcript);
    let mut losses = std::mem::take(&mut envelope.losses);
    if kind == DocumentKind::Messages {
        reduce_to_array(dialect, transcript, &mut envelope, &mut losses);
    }
    let mut own = Losses::default();
    for (index, item) in transcript.items.iter().enumerate() {
        report_message_fields(item, &format!("items[{index}]"), &mut own);
    }
    losses.extend(own.into_vec());
    // Nothing is repaired here: a conversion shows a history as it is, even one that a provider
    // would refuse.
    let entries = paired_items(&transcript.items);
    let mut chunks = Vec::new();
    for run in role_runs(&entries, dialect.format) {
        let chunk = lower_run(dialect, &run);
        let placed = chunk.losses.into_iter();
        // A chunk counts its items from the start of its run so that it can be cached; the document
        // counts from the first item.
        losses.extend(placed.map(|loss| prefix_loss_path(loss, run.start)));
        chunks.push(chunk.json);
    }
    // Only a request can have had another shape than an array.
    if kind == DocumentKind::Request {
        spec.restore_history_shape(transcript, &mut envelope, &mut chunks);
    }
    Lowered {
        json: envelope.assemble(chunks.iter().map(String::as_str)),
        losses,
    }
}

/// Leaves of a request's envelope what a bare array of messages can hold.
fn reduce_to_array(
    dialect: &Dialect,
    transcript: &Transcript,
    envelope: &mut Envelope,
    losses: &mut Vec<Loss>,
) {
    let spec = dialect.format.spec();
    if let Some(listed) = spec.encode_listed_instructions(dialect, transcript) {
        envelope.lead = listed;
    }
    // A bare array has neither a model nor options; only what leads it can lose something.
    let has_lead = !envelope.lead.is_empty();
    losses.retain(|loss| has_lead && loss.path.starts_with("instructions"));
    if !has_lead && !transcript.instructions.is_empty() {
        let why = "a bare array of messages has no place for instructions in this format";
        losses.push(Loss {
            path: "instructions".to_owned(),
            what: LossKind::Item,
            why: why.into(),
        });
    }
    envelope.before = "[".to_owned();
    envelope.after = "]".to_owned();
}

/// Lowers one run of a history; `Ui` has no runs and gives an empty chunk.
#[must_use]
pub fn lower_run(dialect: &Dialect, run: &RoleRun<'_, '_>) -> Chunk {
    let mut chunk = dialect.format.spec().encode_run(dialect, run);
    // Read from what was written, not from the items: a marker may also be a field that the item itself carried.
    chunk.facts.marks = markers(dialect.format, &chunk.json);
    chunk
}

/// Lowers everything of a request but its history; `Ui` gives an empty envelope.
#[must_use]
pub fn lower_envelope(dialect: &Dialect, request: &Transcript) -> Envelope {
    dialect.format.spec().encode_envelope(dialect, request)
}

/// A chunk's loss, whose path begins with an index within the run, placed among all items.
#[must_use]
pub(crate) fn prefix_loss_path(mut loss: Loss, start: usize) -> Loss {
    let index = loss
        .path
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'));
    if let Some((index, rest)) = index
        && let Ok(index) = index.parse::<usize>()
    {
        loss.path = format!("items[{}]{rest}", start + index);
    }
    loss
}

fn check_json(text: &str) -> Result<(), WireError> {
    // `IgnoredAny` checks the syntax without building a value: documents have megabytes of media.
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(source) => Err(WireError::NotJson {
            line: source.line(),
            column: source.column(),
            source,
        }),
    }
}

/// Detects the format of an object: a request, a response or a single message. `None` if nothing speaks for any.
///
/// ```
/// use contexture_ir::Fields;
/// use contexture_wire::{Format, detect_object};
///
/// let object = Fields::parse(r#"{"contents":[]}"#).unwrap();
/// let (format, evidence) = detect_object(&object).unwrap();
/// assert_eq!(format, Format::Gemini);
/// assert_eq!(evidence.text, "an object with `contents` or `candidates`");
/// ```
#[must_use]
pub fn detect_object(object: &Fields<'_>) -> Option<(Format, Evidence)> {
    most_certain(|format| format.spec().detect_object(object))
}

/// Detects the format of an array of messages, whose elements that are no objects come as empty ones. `None` if nothing
/// speaks for any.
#[must_use]
pub fn detect_messages(messages: &[Fields<'_>]) -> Option<(Format, Evidence)> {
    most_certain(|format| format.spec().detect_messages(messages))
}

fn most_certain(evidence: impl Fn(Format) -> Option<Evidence>) -> Option<(Format, Evidence)> {
    let found = Format::ALL
        .into_iter()
        .filter_map(|format| Some((format, evidence(format)?)));
    found.max_by_key(|(_, evidence)| evidence.certainty)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents with signs of two formats: the sign that another format cannot have decides.
    #[test]
    fn most_certain_evidence_wins() {
        let object = |json: &str| detect_object(&Fields::parse(json).unwrap()).map(|(own, _)| own);
        let cases = [
            (r#"{"contents":[],"items":[]}"#, Some(Format::Gemini)),
            (r#"{"items":[],"choices":[]}"#, Some(Format::Items)),
            (r#"{"choices":[],"output":[]}"#, Some(Format::OpenAiChat)),
            (
                r#"{"input":[],"role":"user","parts":[]}"#,
                Some(Format::OpenAiResponses),
            ),
            (
                r#"{"type":"message","content":[],"role":"user","parts":[]}"#,
                Some(Format::Ui),
            ),
            (
                r#"{"messages":[{"role":"user"}],"system":""}"#,
                Some(Format::Anthropic),
            ),
            (r#"{"messages":[{"role":"tool"}],"system":""}"#, None),
            (r#"{"messages":[]}"#, None),
        ];
        for (json, expected) in cases {
            assert_eq!(object(json), expected, "{json}");
        }
    }

    #[test]
    fn messages_with_two_formats_words_have_one_format() {
        let list = |messages: &[&str]| {
            let messages: Vec<Fields<'_>> = messages
                .iter()
                .map(|one| Fields::parse(one).unwrap())
                .collect();
            detect_messages(&messages).map(|(format, _)| format)
        };
        let blocks = r#"{"role":"user","content":[{"type":"tool_result"}]}"#;
        let system = r#"{"role":"system","content":""}"#;
        let user = r#"{"role":"user","content":""}"#;
        assert_eq!(list(&[blocks, system]), Some(Format::Anthropic));
        assert_eq!(list(&[system, blocks]), Some(Format::OpenAiChat));
        assert_eq!(list(&[user, system]), Some(Format::OpenAiChat));
        assert_eq!(list(&[user]), Some(Format::OpenAiChat));
        let part = r#"{"role":"user","parts":[{"text":"a"}]}"#;
        let typed = r#"{"role":"user","parts":[{"type":"text"}]}"#;
        let item = r#"{"type":"function_call"}"#;
        assert_eq!(list(&[part, item]), Some(Format::Gemini));
        assert_eq!(list(&[part, typed]), Some(Format::Ui));
        assert_eq!(list(&[user, item]), Some(Format::Items));
        assert_eq!(list(&[r#"{"a":1}"#]), None);
        assert_eq!(list(&[]), None);
    }
}
