//! Gemini `generateContent`, AI Studio and Vertex, requests and responses.
//!
//! Canonical form, to which everything that came in another shape carries a hint: camelCase names;
//! `{tools, systemInstruction: {parts}, contents: [{role, parts}], toolConfig, generationConfig, …}`;
//! all functions in one tool; schemas as JSON Schema (`parametersJsonSchema`, `responseJsonSchema`). The
//! model is named in the address, not in the body. Function responses stand in a content of their
//! own, right behind the calls, and are always objects: `{"result": text}`, `{"error": text}`, or the
//! text itself where it is a JSON object.
//!
//! One part becomes one item, neighbouring text and media become the parts of one message. A part
//! with `thought` is reasoning, never something said. A `thoughtSignature` stays with its part and
//! goes back on it, byte for byte. Signatures are never invented for calls that other models
//! made: whether a model wants the documented stand-in is not a question of the format.
//!
//! Calls without an id get one that begins with `gemini-call-`; ids of that form are never
//! written, neither on calls nor on responses, so both sides of a pair agree without knowing each
//! other. Pictures by address whose kind nobody states are said to be JPEG, files `application/octet-stream`.

mod arguments;
mod config;
mod encode;
mod ids;
mod media;
mod message_builder;
mod names;
mod output;
mod parse;
mod part;
mod prompt_cache;
mod proxy;
mod request;
mod response;
mod schema;
mod spec;
mod stream;
mod tools;

use contexture_ir::{Cancel, Error, Fields, Transcript};
use serde_json::value::RawValue;

use crate::model::conversion::DocumentKind;
use crate::model::conversion::Lifted;
use crate::model::error::WireError;
use crate::model::format::Format;

pub(crate) use self::spec::Gemini;

fn lift(text: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
    let text = text.trim();
    if text.starts_with('[') {
        let contents: &RawValue = serde_json::from_str(text).map_err(|_| wrong_shape())?;
        let items = parse::parse_contents(contents, cancel).map_err(invalid_value)?;
        return Ok(lifted_document(
            DocumentKind::Messages,
            Transcript {
                items,
                ..Transcript::default()
            },
        ));
    }
    let fields = Fields::parse(text).map_err(|_| wrong_shape())?;
    if fields.get(&["contents"]).is_some() {
        return Ok(lifted_document(
            DocumentKind::Request,
            request::lift_request(fields, cancel).map_err(invalid_value)?,
        ));
    }
    // A blocked prompt has no candidates, and a stream's last event may have usage only; both are
    // responses.
    let answer = [
        "candidates",
        "promptFeedback",
        "prompt_feedback",
        "usageMetadata",
        "usage_metadata",
    ];
    if fields.get(&answer).is_some() {
        return Ok(lifted_document(
            DocumentKind::Response,
            response::lift_response(fields).map_err(invalid_value)?,
        ));
    }
    Err(wrong_shape())
}

fn lifted_document(kind: DocumentKind, transcript: Transcript) -> Lifted {
    Lifted {
        kind,
        transcript,
        losses: Vec::new(),
    }
}

fn wrong_shape() -> WireError {
    WireError::WrongShape {
        format: Format::Gemini,
        expected: "a request with `contents`, a response with `candidates`, or an array of contents",
    }
}

fn invalid_value(source: Error) -> WireError {
    WireError::Invalid {
        format: Format::Gemini,
        source,
    }
}
