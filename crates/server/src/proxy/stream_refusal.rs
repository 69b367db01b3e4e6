//! Refusals inside a stream: some providers begin to answer, with status 200, and only then say that the request is too long.
//!
//! The head of such a stream is held until the model says something, so that another request can be sent in its place before the
//! client has seen a byte.

use std::time::Duration;

use axum::http::header::CONTENT_ENCODING;
use contexture::Format;
use contexture::models_http::PassthroughResponse;
use contexture::wire::{Accumulator, FrameReader, StreamEvent, TooLong};

use crate::proxy::capture::parse_answer::is_event_stream;

/// Longest head of a stream that is held, in bytes. The first events of a provider may repeat the request's tools.
const MAX_HEAD_BYTES: usize = 256 << 10;
/// Longest time that it is held. A request that is too long is refused at once, and a model may think for minutes.
const MAX_HEAD_WAIT: Duration = Duration::from_secs(10);

/// Reads what a stream says of the request's length before it says anything else; `None` if it does not begin with a refusal
/// for that. The stream stays as it came.
pub(super) async fn read_stream_refusal(
    format: Format,
    answer: &mut PassthroughResponse,
) -> Option<TooLong> {
    let is_packed = answer.headers.contains_key(CONTENT_ENCODING);
    if !answer.status.is_success() || is_packed || !is_event_stream(format, &answer.headers) {
        return None;
    }
    let mut head = StreamHead {
        frames: format.spec().frame_reader(),
        events: Accumulator::new(format).ok()?,
        refused: None,
    };
    let has_begun = |piece: &[u8]| head.push(piece);
    answer
        .body
        .peek_until(MAX_HEAD_BYTES, MAX_HEAD_WAIT, has_begun)
        .await;
    head.refused
}

/// The first events of a stream.
struct StreamHead {
    frames: Box<dyn FrameReader>,
    events: Accumulator,
    refused: Option<TooLong>,
}

impl StreamHead {
    /// Takes bytes of the stream; returns whether it is known how it begins.
    fn push(&mut self, bytes: &[u8]) -> bool {
        self.frames.push(bytes);
        loop {
            let frame = match self.frames.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return false,
                Err(_) => return true,
            };
            let Some(data) = frame.data else { continue };
            let Ok(events) = self.events.push(&data) else {
                return true;
            };
            for event in events {
                match event {
                    StreamEvent::Failed(failure) => {
                        self.refused = TooLong::from_failure(&failure);
                        return true;
                    }
                    StreamEvent::Started { .. } | StreamEvent::Usage(_) => {}
                    _ => return true,
                }
            }
            if self.events.is_complete() {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: Format, events: &[&str]) -> (Option<TooLong>, usize) {
        let mut head = StreamHead {
            frames: format.spec().frame_reader(),
            events: Accumulator::new(format).unwrap(),
            refused: None,
        };
        let mut read = 0;
        for event in events {
            read += 1;
            if head.push(format!("data: {event}\n\n").as_bytes()) {
                break;
            }
        }
        (head.refused, read)
    }

    #[test]
    fn refusals_of_every_format_are_found_behind_the_first_events() {
        let response = |status: &str, more: &str| {
            format!(
                r#"{{"id":"r","object":"response","status":"{status}","model":"gpt-5","output":[]{more}}}"#
            )
        };
        let begun = response("in_progress", "");
        let failed = response(
            "failed",
            r#","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}"#,
        );
        let responses = [
            format!(r#"{{"type":"response.created","response":{begun}}}"#),
            format!(r#"{{"type":"response.in_progress","response":{begun}}}"#),
            format!(r#"{{"type":"response.failed","response":{failed}}}"#),
        ];
        let responses = responses.each_ref().map(String::as_str);
        let error = r#"{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}"#;
        let chat = r#"{"error":{"code":400,"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."}}"#;
        let gemini = r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."}}"#;
        for (format, events) in [
            (Format::OpenAiResponses, &responses[..]),
            (Format::OpenAiResponses, &[responses[0], error]),
            (Format::OpenAiChat, &[chat]),
            (Format::Gemini, &[gemini]),
        ] {
            assert!(read(format, events).0.is_some(), "{format}: {events:?}");
        }
    }

    #[test]
    fn nothing_is_held_once_the_model_speaks() {
        let words =
            r#"{"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"Ba"}}]}"#;
        let late = r#"{"error":{"message":"maximum context length"}}"#;
        assert_eq!(read(Format::OpenAiChat, &[words, late]), (None, 1));
        let overloaded = r#"{"error":{"message":"The server is overloaded"}}"#;
        assert_eq!(read(Format::OpenAiChat, &[overloaded, words]), (None, 1));
    }
}
