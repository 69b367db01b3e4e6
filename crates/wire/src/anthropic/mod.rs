//! Anthropic Messages, requests and responses.
//!
//! Canonical form, to which everything that came in another shape carries a hint:
//! `{model, tools, system: [blocks], messages: [{role, content: [blocks]}], max_tokens, …}`; members in
//! that order, what changes from call to call last. Results of tools stand first in their message and
//! text results are strings. A run becomes one message unless items say that they began one of their
//! own. Blank text is never written into a request: the provider refuses it.
//!
//! One block becomes one item, neighbouring text and media become the parts of one message. Blocks
//! whose content only the provider understands (server tools, MCP, containers, …) are kept whole and in
//! order: as an extension item `anthropic:<type>` on the model's side, as an extension part elsewhere.
//!
//! Not here: whether a model accepts a feature (prefill, effort, mid-conversation system messages).
//! Item ids and statuses are bookkeeping of other formats and leave no loss; neither does a model name.

mod block;
mod choice;
mod detect;
mod encode;
mod media;
mod message_builder;
mod options;
mod parse;
mod prompt_cache;
mod proxy;
mod repair;
mod request;
mod response;
mod source;
mod spec;
mod stream;
mod tools;

use contexture_ir::{Cancel, Error, Fields, Transcript};
use serde_json::value::RawValue;

use crate::model::conversion::DocumentKind;
use crate::model::conversion::Lifted;
use crate::model::error::WireError;
use crate::model::format::Format;

pub(crate) use self::spec::Anthropic;

fn lift(text: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
    let text = text.trim();
    if text.starts_with('[') {
        let messages: &RawValue = serde_json::from_str(text).map_err(|_| wrong_shape())?;
        let items = parse::parse_messages(messages, cancel).map_err(invalid_value)?;
        return Ok(lifted_document(
            DocumentKind::Messages,
            Transcript {
                items,
                ..Transcript::default()
            },
        ));
    }
    let fields = Fields::parse(text).map_err(|_| wrong_shape())?;
    if fields.get(&["messages"]).is_some() {
        return Ok(lifted_document(
            DocumentKind::Request,
            request::lift_request(fields, cancel).map_err(invalid_value)?,
        ));
    }
    // An error body has a `type` of its own; it is no response that could be read.
    let is_message = fields
        .get(&["type"])
        .is_none_or(|kind| kind.get() == "\"message\"");
    let is_answer = fields
        .get(&["role"])
        .is_some_and(|role| role.get() == "\"assistant\"");
    if is_message && is_answer && fields.get(&["content"]).is_some() {
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
        format: Format::Anthropic,
        expected: "a request with `messages`, a response of type `message`, or an array of messages",
    }
}

fn invalid_value(source: Error) -> WireError {
    WireError::Invalid {
        format: Format::Anthropic,
        source,
    }
}
