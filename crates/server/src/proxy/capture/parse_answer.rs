//! Parses the captured copy of a model's answer: all of it, or as far as it came.

use std::borrow::Cow;

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use contexture::ir::{DAMAGED, Item, Raw, Transcript, replace_lone_surrogates};
use contexture::models_http::{BodyStream, decompress_stream, event_data};
use contexture::wire::{Accumulator, DocumentKind, StreamEvent};
use contexture::{Format, Owner, lift};
use futures_util::StreamExt as _;
use serde_json::json;
use serde_json::value::RawValue;

use crate::proxy::capture::tee::{BodyEnd, CapturedBody};
use crate::proxy::failure::{ProxyFailure, count_damaged, count_missed};
use crate::state::App;
use crate::state::call_log::CallRecorder;
use crate::state::request_outcomes::OutcomeRecorder;
use crate::state::work_pool::HEAVY_BYTES;

/// Longest answer that is read, decompressed, in bytes.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 << 20;

/// A model's answer as far as it came.
#[derive(Default)]
pub(crate) struct CapturedText {
    /// Its document; `None` if nothing came that could be stored.
    text: Option<String>,
    /// The bytes of it that are not UTF-8, with what stands around them.
    damaged: Vec<u8>,
}

/// A model's answer that was parsed.
pub(crate) struct ParsedAnswer {
    pub(crate) transcript: Transcript,
    /// Whether it is so long that storing it is heavy work, too.
    pub(crate) is_heavy: bool,
}

/// Reads a model's answer; `None` if nothing came that could be stored. The events of a stream are published as they come. An
/// answer that is damaged, or of which the provider sent nothing whole, is recorded in the outcome. A long one is parsed where
/// heavy work is done.
///
/// # Errors
/// It cannot be parsed, or came faster than it could be read.
pub(crate) async fn capture_answer(
    (app, owner): (&App, &Owner),
    format: Format,
    headers: &HeaderMap,
    captured: CapturedBody,
    (outcome, call): (&OutcomeRecorder, &CallRecorder),
    publish: impl FnMut(Vec<StreamEvent>) + Send,
) -> Result<Option<ParsedAnswer>, ProxyFailure> {
    let (pieces, ended) = captured.into_pieces();
    let pieces = decompress_stream(headers, pieces)
        .map_err(|error| ProxyFailure::from_error("answer", &error))?;
    let CapturedText { text, damaged } = match is_event_stream(format, headers) {
        true => accumulate_stream(format, pieces, publish).await?,
        false => {
            let body = read_body(pieces).await?;
            let length = body.len();
            run_if_heavy((app, owner), length, move || complete_body(format, body)).await?
        }
    };
    let text = match (ended.get(), text) {
        // Pieces in the middle are missing, so what is there must not be stored as the answer.
        (Some(BodyEnd::Lost), _) => {
            let why = "it came faster than it could be stored";
            return Err(ProxyFailure::new("answer", why));
        }
        (Some(BodyEnd::Broken), None) => {
            let why = "the provider broke off before anything whole had come";
            count_missed(outcome, &ProxyFailure::new("answer", why));
            return Ok(None);
        }
        (_, None) => return Ok(None),
        (_, Some(text)) => text,
    };
    let length = text.len();
    let parse = move || parse_answer(format, &text);
    let mut answer = run_if_heavy((app, owner), length, parse).await?;
    if let Some(answer) = answer.as_mut().filter(|_| !damaged.is_empty()) {
        mark_damaged(answer, &damaged);
        call.set_damaged();
        count_damaged(outcome, "parts of it are no text; U+FFFD stands for them");
    }
    Ok(answer.map(|transcript| ParsedAnswer {
        transcript,
        is_heavy: length > HEAVY_BYTES,
    }))
}

/// Runs work on so many bytes: where heavy work is done if they are many, else in place.
async fn run_if_heavy<T: Send + 'static>(
    (app, owner): (&App, &Owner),
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match length > HEAVY_BYTES {
        true => app.work_pool().run(owner, |_| async { work() }).await,
        false => work(),
    }
}

/// Keeps the bytes of a damaged answer with the item that shows what is left of them.
fn mark_damaged(answer: &mut Transcript, bytes: &[u8]) {
    let shows_damage = |item: &Item| item.to_json().contains(char::REPLACEMENT_CHARACTER);
    let place = answer.items.iter().position(shows_damage);
    let item = answer.items.get_mut(place.unwrap_or_default());
    let mark = Raw::from_value(&json!({ "base64": STANDARD.encode(bytes) }));
    if let (Some(extra), Ok(mark)) = (item.and_then(Item::extra_mut), mark) {
        extra.set(DAMAGED, mark);
    }
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
) -> Result<CapturedText, ProxyFailure> {
    let mut accumulator = new_accumulator(format)?;
    let mut events = Box::pin(event_data(format, pieces));
    let mut any = false;
    let mut damaged = Vec::new();
    // A stream that breaks off is stored as far as it came: the client has seen that much.
    while let Some(Ok(event)) = events.next().await {
        // Bounded as the answer itself is: the accumulator refuses more.
        match replace_lone_surrogates(&event.text) {
            Cow::Owned(_) if event.damaged.is_none() => damaged.extend(event.text.bytes()),
            _ => damaged.extend(event.damaged.iter().flatten()),
        }
        // The end mark of Chat Completions is no JSON. Whatever follows it is read too: the answer ends with its stream.
        if event.text == "[DONE]" {
            continue;
        }
        let pushed = accumulator.push(&event.text);
        publish(pushed.map_err(|error| ProxyFailure::from_error("answer", &error))?);
        any = true;
    }
    Ok(CapturedText {
        text: any.then(|| finish_document(&accumulator)),
        damaged,
    })
}

/// Reads the body of an answer that is one document.
async fn read_body(mut pieces: BodyStream) -> Result<Vec<u8>, ProxyFailure> {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = pieces.next().await {
        if body.len().saturating_add(piece.len()) > MAX_ANSWER_BYTES {
            let why = format!("it is longer than {MAX_ANSWER_BYTES} bytes");
            return Err(ProxyFailure::new("answer", why));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn complete_body(format: Format, body: Vec<u8>) -> Result<CapturedText, ProxyFailure> {
    let (text, damaged) = match String::from_utf8(body) {
        Ok(text) => (text, Vec::new()),
        Err(error) => {
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            (text, error.into_bytes())
        }
    };
    Ok(CapturedText {
        text: complete_document(format, text)?,
        damaged,
    })
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
