//! A model's answer, heard and read: whole, or as far as it came.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use contexture::client::{Pieces, event_data, unpacked};
use contexture::ir::Transcript;
use contexture::wire::{Accumulator, StreamEvent};
use contexture::{Format, Kind, lift};
use futures_util::StreamExt as _;
use serde_json::value::RawValue;

use crate::proxy::matching::Miss;
use crate::proxy::tee::{Ended, Heard};

/// The longest answer that is read, unpacked.
pub(crate) const MOST: usize = 64 << 20;

/// What a model answered; `None` if nothing came that could be kept. Of a stream it is told what each event says.
///
/// # Errors
/// It cannot be read, or was not heard to its end.
pub(crate) async fn hear(
    format: Format,
    headers: &HeaderMap,
    heard: Heard,
    tell: impl FnMut(Vec<StreamEvent>) + Send,
) -> Result<Option<Transcript>, Miss> {
    let (pieces, ended) = heard.split();
    let pieces = unpacked(headers, pieces).map_err(|error| Miss::of("answer", &error))?;
    let text = match is_events(headers) {
        true => streamed(format, pieces, tell).await?,
        false => whole(format, pieces).await?,
    };
    let text = match (ended.get(), text) {
        (Some(Ended::Lost), _) => {
            let why = "it came faster than it could be stored";
            return Err(Miss::new("answer", why));
        }
        (_, None) => return Ok(None),
        (_, Some(text)) => text,
    };
    read(format, &text)
}

/// What an answer's document says; `None` if it is another document.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read(format: Format, text: &str) -> Result<Option<Transcript>, Miss> {
    let lifted = lift(format, text).map_err(|error| Miss::of("answer", &error))?;
    Ok((lifted.kind == Kind::Response).then_some(lifted.transcript))
}

/// Whether an answer comes as events.
pub(crate) fn is_events(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

/// The response that a stream of events comes to.
async fn streamed(
    format: Format,
    pieces: Pieces,
    mut tell: impl FnMut(Vec<StreamEvent>) + Send,
) -> Result<Option<String>, Miss> {
    let mut accumulator = accumulator(format)?;
    let mut events = Box::pin(event_data(pieces));
    let mut any = false;
    // What breaks off is kept as far as it came.
    while let Some(Ok(data)) = events.next().await {
        if data == "[DONE]" {
            break;
        }
        let pushed = accumulator.push(&data);
        tell(pushed.map_err(|error| Miss::of("answer", &error))?);
        any = true;
    }
    Ok(any.then(|| finished(&accumulator)))
}

/// A body in one piece.
async fn whole(format: Format, mut pieces: Pieces) -> Result<Option<String>, Miss> {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = pieces.next().await {
        if body.len().saturating_add(piece.len()) > MOST {
            let why = format!("it is longer than {MOST} bytes");
            return Err(Miss::new("answer", why));
        }
        body.extend_from_slice(&piece);
    }
    let Ok(text) = String::from_utf8(body) else {
        return Err(Miss::new("answer", "it is not UTF-8"));
    };
    document(format, text)
}

/// The document of a body, if it is whole. Gemini streams into an array where no events are asked for.
///
/// # Errors
/// Something in the array is no answer.
pub(crate) fn document(format: Format, text: String) -> Result<Option<String>, Miss> {
    if format != Format::Gemini || !text.trim_start().starts_with('[') {
        // A document that broke off says nothing.
        let is_whole = serde_json::from_str::<&RawValue>(&text).is_ok();
        return Ok(is_whole.then_some(text));
    }
    let Ok(chunks) = serde_json::from_str::<Vec<&RawValue>>(&text) else {
        return Ok(None);
    };
    let mut accumulator = accumulator(format)?;
    for chunk in chunks {
        let pushed = accumulator.push(chunk.get());
        pushed.map_err(|error| Miss::of("answer", &error))?;
    }
    Ok(Some(finished(&accumulator)))
}

/// Where the events of an answer come together.
///
/// # Errors
/// The format has no streams.
pub(crate) fn accumulator(format: Format) -> Result<Accumulator, Miss> {
    let accumulator = Accumulator::new(format);
    accumulator.map_err(|error| Miss::of("answer", &error))
}

fn finished(accumulator: &Accumulator) -> String {
    accumulator
        .finish()
        .unwrap_or_else(|_| accumulator.finish_incomplete())
}
