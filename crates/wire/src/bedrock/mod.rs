//! Amazon Bedrock Converse, requests and responses.
//!
//! Canonical form: `{toolConfig, system: [blocks], messages: [{role, content: [blocks]}], inferenceConfig, …}`; members in
//! that order, which is the order of the provider's cache. The model and the wish for a stream are in the address; a
//! `modelId` in the body, as the AWS CLI writes it, is read and given back. Results of tools lead their message. A run
//! becomes one message unless items say that they began one of their own. Blank text is never written into a request:
//! the provider refuses it.
//!
//! A block is an object with one member that names its kind. One block becomes one item, neighbouring text and media
//! become the parts of one message. Blocks without a counterpart (server tools, search results, …) are kept whole and in
//! order: as an extension item `bedrock:<member>` on the model's side, as an extension part elsewhere. A `cachePoint` is
//! a block of its own, but says something of what stands before it and moves from call to call: it is stored with the
//! part, item or tool that it follows.
//!
//! Bytes are base64 text on the wire and stay that; an S3 location is a URL.
//!
//! Not here: which features a model accepts, signatures of requests, the model's name.

mod block;
mod detect;
mod encode;
mod event_stream;
mod media;
mod message;
mod options;
mod parse;
mod prompt_cache;
mod proxy;
mod request;
mod response;
mod spec;
mod stream;
mod tools;

use contexture_ir::{Cancel, Error, Fields, Transcript};
use serde_json::value::RawValue;

use crate::model::conversion::{DocumentKind, Lifted};
use crate::model::error::WireError;
use crate::model::format::Format;

pub(crate) use self::spec::Bedrock;

fn lift(text: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
    let text = text.trim();
    if text.starts_with('[') {
        let messages: &RawValue = serde_json::from_str(text).map_err(|_| wrong_shape())?;
        let items = parse::parse_messages(messages, cancel).map_err(invalid_value)?;
        let transcript = Transcript {
            items,
            ..Transcript::default()
        };
        return Ok(lifted_document(DocumentKind::Messages, transcript));
    }
    let fields = Fields::parse(text).map_err(|_| wrong_shape())?;
    let message = fields.get(&["output"]).and_then(|output| {
        let output = Fields::parse(output.get()).ok()?;
        output
            .get(&["message"])
            .filter(|message| message.get() != "null")
    });
    if message.is_some() {
        let transcript = response::lift_response(fields).map_err(invalid_value)?;
        return Ok(lifted_document(DocumentKind::Response, transcript));
    }
    // Only a prompt that the provider stores may have a request without messages, and it is called otherwise. A count of
    // tokens has the request inside `input`, and is no call of a model.
    if fields.get(&["messages"]).is_some() {
        let transcript = request::lift_request(fields, cancel).map_err(invalid_value)?;
        return Ok(lifted_document(DocumentKind::Request, transcript));
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
        format: Format::Bedrock,
        expected: "a request with `messages`, a response with `output.message`, or an array of messages",
    }
}

fn invalid_value(source: Error) -> WireError {
    WireError::Invalid {
        format: Format::Bedrock,
        source,
    }
}
