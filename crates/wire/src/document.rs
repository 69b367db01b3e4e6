//! Whole documents in and out: what `convert` does.
//!
//! Lifting detects whether a text is a request, a response or a bare array of messages. Lowering
//! writes the same kind of document. Nothing is repaired on the way: a history that does not pair is
//! written as it is, see [`crate::repair`].

use contexture_ir::Transcript;

use crate::chunk::Dialect;
use crate::entry::{paired_items, role_runs};
use crate::error::WireError;
use crate::format::{DocumentKind, Format};
use crate::lifted::{Lifted, Lowered};
use crate::loss::{Loss, LossKind};
use crate::lower::{lower_envelope, lower_run};
use crate::{anthropic, gemini, items, openai_chat, openai_responses, ui, unfinished};

/// Reads a request body, a response body or a bare array of messages.
///
/// # Errors
/// [`WireError::NotJson`], [`WireError::WrongShape`] or [`WireError::Invalid`]; for UI messages also
/// [`WireError::InvalidUi`].
pub fn lift(format: Format, text: &str) -> Result<Lifted, WireError> {
    check_json(text)?;
    let mut lifted = match format {
        Format::OpenAiChat => openai_chat::lift(text),
        Format::OpenAiResponses => openai_responses::lift(text),
        Format::Anthropic => anthropic::lift(text),
        Format::Gemini => gemini::lift(text),
        Format::Ui => ui::lift(text),
        Format::Items => items::lift(text),
    }?;
    if lifted.kind == DocumentKind::Response {
        unfinished::take_truncation_marks(format, &mut lifted.transcript);
    }
    Ok(lifted)
}

/// Writes a document of the given kind.
#[must_use]
pub fn lower(dialect: &Dialect, kind: DocumentKind, transcript: &Transcript) -> Lowered {
    match (dialect.format, kind) {
        (Format::Ui, _) => ui::lower(kind, transcript),
        (Format::Items, _) => items::lower(kind, transcript),
        (Format::OpenAiChat, DocumentKind::Response) => openai_chat::lower_response(transcript),
        (Format::OpenAiResponses, DocumentKind::Response) => {
            openai_responses::lower_response(transcript)
        }
        (Format::Anthropic, DocumentKind::Response) => anthropic::lower_response(transcript),
        (Format::Gemini, DocumentKind::Response) => gemini::lower_response(transcript),
        (_, DocumentKind::Request | DocumentKind::Messages) => {
            lower_request(dialect, kind, transcript)
        }
    }
}

fn lower_request(dialect: &Dialect, kind: DocumentKind, transcript: &Transcript) -> Lowered {
    let mut frame = lower_envelope(dialect, transcript);
    let mut losses = std::mem::take(&mut frame.losses);
    if kind == DocumentKind::Messages {
        if dialect.format == Format::OpenAiResponses {
            frame.lead = openai_responses::lower_listed_instructions(dialect, transcript);
        }
        // A bare array has neither a model nor options; only what leads it can lose something.
        let lead = !frame.lead.is_empty();
        losses.retain(|loss| lead && loss.path.starts_with("instructions"));
        if frame.lead.is_empty() && !transcript.instructions.is_empty() {
            let why = "a bare array of messages has no place for instructions in this format";
            losses.push(Loss {
                path: "instructions".to_owned(),
                what: LossKind::Item,
                why: why.into(),
            });
        }
        frame.before = "[".to_owned();
        frame.after = "]".to_owned();
    }
    let entries = paired_items(&transcript.items);
    let mut chunks = Vec::new();
    for run in role_runs(&entries, dialect.format) {
        let chunk = lower_run(dialect, &run);
        losses.extend(
            chunk
                .losses
                .into_iter()
                .map(|loss| prefix_loss_path(loss, run.start)),
        );
        chunks.push(chunk.json);
    }
    if dialect.format == Format::OpenAiResponses && kind == DocumentKind::Request {
        openai_responses::restore_input_shape(transcript, &mut frame, &mut chunks);
    }
    Lowered {
        json: frame.assemble(chunks.iter().map(String::as_str)),
        losses,
    }
}

/// A chunk's loss, whose path begins with an index within the run, placed among all items.
#[must_use]
pub fn prefix_loss_path(mut loss: Loss, start: usize) -> Loss {
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
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(source) => Err(WireError::NotJson {
            line: source.line(),
            column: source.column(),
            source,
        }),
    }
}
