//! OpenAI Chat Completions, and the many hosts that speak it.
//!
//! One native message becomes one or more items: thoughts, what is said, calls. Items of the model
//! that follow each other become one native message again, as far as one can hold them; where a
//! document cut them differently a hint on the first item says so.
//!
//! What Chat cannot say, and what is done about it (each is reported as a loss):
//! * pictures and files in a tool's output go into a user message after the outputs (order);
//! * text that follows a call is written before it, in the same message (order);
//! * thoughts are written only if they came from a Chat host (`reasoning_content`, `reasoning`,
//!   `reasoning_details`), in the field they came in;
//! * whether a tool failed, ids and statuses of items, other providers' items have no place.
//!
//! A message of which nothing is left is not written, unless it came empty from a Chat document.
//!
//! Not here: pairing of calls and outputs ([`crate::repair()`]).

mod assistant_message;
mod content;
mod custom;
mod encode;
mod message;
mod message_boundary;
mod parse_calls;
mod part;
mod proxy;
mod repair;
mod request;
mod response;
mod spec;
mod stream;
mod tools;

use contexture_ir::{Cancel, Error, Fields};
use serde_json::value::RawValue;

use self::spec::FORMAT;
use crate::model::conversion::DocumentKind;
use crate::model::conversion::Lifted;
use crate::model::error::WireError;

const EXPECTED: &str = "a request with `messages`, a response with `choices` (an error body is neither), \
                        or an array of messages";

pub(crate) use self::spec::Chat;

fn lift(text: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError> {
    let wrong = || WireError::WrongShape {
        format: FORMAT,
        expected: EXPECTED,
    };
    let invalid = |source: Error| WireError::Invalid {
        format: FORMAT,
        source,
    };
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    if text.starts_with('[') {
        let messages: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| wrong())?;
        let mut reader = message::TranscriptParser::default();
        reader.parse_messages(&messages, cancel).map_err(invalid)?;
        let (transcript, losses) = reader.finish();
        return Ok(Lifted {
            kind: DocumentKind::Messages,
            transcript,
            losses,
        });
    }
    let fields = Fields::parse(text).map_err(|_| wrong())?;
    if fields.get(&["messages"]).is_some() {
        request::lift_request(fields, cancel).map_err(invalid)
    } else if fields.get(&["choices"]).is_some() {
        response::lift_response(fields).map_err(invalid)
    } else {
        Err(wrong())
    }
}
