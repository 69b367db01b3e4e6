//! Parses the captured copy of a model's answer: all of it, or as far as it came.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use contexture::ir::Transcript;
use contexture::models_http::{BodyStream, decompress_stream, event_data};
use contexture::wire::{Accumulator, DocumentKind, StreamEvent};
use contexture::{Format, lift};
use futures_util::StreamExt as _;
use serde_json::value::RawValue;

use crate::proxy::capture::tee::{BodyEnd, CapturedBody};
use crate::proxy::failure::ProxyFailure;

/// Longest answer that is read, decompressed, in bytes.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Reads a model's answer; `None` if nothing came that could be stored. The events of a stream are published as they come.
///
/// # Errors
/// It cannot be parsed, or came faster than it could be read.
pub(crate) async fn capture_answer(
    format: Format,
    headers: &HeaderMap,
    captured: CapturedBody,
    publish: impl FnMut(Vec<StreamEvent>) + Send,
) -> Result<Option<Transcript>, ProxyFailure> {
    let (pieces, ended) = captured.into_pieces();
    let pieces = decompress_stream(headers, pieces)
        .map_err(|error| ProxyFailure::from_error("answer", &error))?;
    let text = match is_event_stream(format, headers) {
        true => accumulate_stream(format, pieces, publish).await?,
        false => read_document(format, pieces).await?,
    };
    let text = match (ended.get(), text) {
        // Pieces in the middle are missing, so what is there must not be stored as the answer.
        (Some(BodyEnd::Lost), _) => {
            let why = "it came faster than it could be stored";
            return Err(ProxyFailure::new("answer", why));
        }
        (_, None) => return Ok(None),
        (_, Some(text)) => text,
    };
    parse_answer(format, &text)
}

/// Parses the document of an answer; `None` if it is another document.
///
/// # Errors
/// It cannot be read.
pub(crate) fn parse_answer(format: Format, text: &str) -> Result<Option<Transcript>, ProxyFailure> {
    let lifted = lift(format, text).map_err(|error| ProxyFailure::from_error("answer", &error))?;
    Ok((lifted.kind == DocumentKind::Response).then_some(lifted.transcript))
}

/// Whether an answer is a stream, as the format frames it.
pub(crate) fn is_event_stream(format: Format, headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let profile = format.spec().http();
    profile
        .zip(kind)
        .is_some_and(|(profile, kind)| profile.framing.is_content_type(kind))
}

/// Accumulates a stream of events into the document of its answer.
async fn accumulate_stream(
    format: Format,
    pieces: BodyStream,
    mut publish: impl FnMut(Vec<StreamEvent>) + Send,
) -> Result<Option<String>, ProxyFailure> {
    let mut accumulator = new_accumulator(format)?;
    let mut events = Box::pin(event_data(format, pieces));
    let mut any = false;
    // A stream that breaks off is stored as far as it came: the client has seen that much.
    while let Some(Ok(data)) = events.next().await {
        // The end mark of Chat Completions is no JSON. Whatever follows it is read too: the answer ends with its stream.
        if data == "[DONE]" {
            continue;
        }
        let pushed = accumulator.push(&data);
        publish(pushed.map_err(|error| ProxyFailure::from_error("answer", &error))?);
        any = true;
    }
    Ok(any.then(|| finish_document(&accumulator)))
}

/// Reads an answer that is one document.
async fn read_document(
    format: Format,
    mut pieces: BodyStream,
) -> Result<Option<String>, ProxyFailure> {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = pieces.next().await {
        if body.len().saturating_add(piece.len()) > MAX_ANSWER_BYTES {
            let why = format!("it is longer than {MAX_ANSWER_BYTES} bytes");
            return Err(ProxyFailure::new("answer", why));
        }
        body.extend_from_slice(&piece);
    }
    let Ok(text) = String::from_utf8(body) else {
        return Err(ProxyFailure::new("answer", "it is not UTF-8"));
    };
    complete_document(format, text)
}

/// Returns the document of a body, if it is complete. Some providers stream into an array where no events are asked for.
///
/// # Errors
/// Something in the array is no answer.
pub(crate) fn complete_document(
    format: Format,
    text: String,
) -> Result<Option<String>, ProxyFailure> {
    let edits = format.spec().proxy();
    if !edits.is_some_and(|edits| edits.is_event_array(&text)) {
        // Unlike a stream, a document that broke off cannot be repaired.
        let is_whole = serde_json::from_str::<&RawValue>(&text).is_ok();
        return Ok(is_whole.then_some(text));
    }
    let Ok(chunks) = serde_json::from_str::<Vec<&RawValue>>(&text) else {
        return Ok(None);
    };
    let mut accumulator = new_accumulator(format)?;
    for chunk in chunks {
        let pushed = accumulator.push(chunk.get());
        pushed.map_err(|error| ProxyFailure::from_error("answer", &error))?;
    }
    Ok(Some(finish_document(&accumulator)))
}

/// Creates the accumulator for the events of an answer.
///
/// # Errors
/// The format has no streams.
pub(crate) fn new_accumulator(format: Format) -> Result<Accumulator, ProxyFailure> {
    let accumulator = Accumulator::new(format);
    accumulator.map_err(|error| ProxyFailure::from_error("answer", &error))
}

fn finish_document(accumulator: &Accumulator) -> String {
    accumulator
        .finish()
        .unwrap_or_else(|_| accumulator.finish_incomplete())
}
