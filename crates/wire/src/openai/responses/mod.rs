//! OpenAI Responses, Azure's and other hosts' included.
//!
//! Our items have this format's shapes, so reading is nearly verbatim: members we do not type stay on
//! the item as its own, items of unknown types stay whole. Hints keep which of two equal shapes was
//! written: a message without a `type`, a string for content, an absent `detail`.
//!
//! Fields that are ours alone (`is_error`, `media_type`, `signature`, `format`, `ctx:*`, the status
//! `failed`) are not written. A model's message without an id of this provider is written in the short
//! form (`role`, `content` as one string), because the long form demands an id.
//!
//! Thoughts are written only if they are this provider's: format `openai-responses-v1` or none.
//!
//! Not here: that a thought needs the item it led to, and calls their outputs ([`crate::repair()`]).

mod encode;
mod encode_run;
mod extension;
mod parse;
mod part;
mod proxy;
mod repair;
mod request;
mod response;
mod spec;
mod stream;
mod tools;

use contexture_ir::{Cancel, Error, Fields, Transcript};

use self::spec::FORMAT;
pub(crate) use self::spec::Responses;
use crate::model::conversion::DocumentKind;
use crate::model::conversion::Lifted;
use crate::model::error::WireError;

const EXPECTED: &str = "a request with `input`, a response with `output` (an error body is neither), \
                        or an array of items";
/// Members that tell a request without `input`, whose history the provider keeps.
const REQUEST: [&str; 5] = [
    "input",
    "instructions",
    "previous_response_id",
    "conversation",
    "prompt",
];

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
        let mut transcript = Transcript::default();
        parse::parse_input(text, &mut transcript, cancel).map_err(invalid)?;
        return Ok(Lifted {
            kind: DocumentKind::Messages,
            transcript,
            losses: Vec::new(),
        });
    }
    let fields = Fields::parse(text).map_err(|_| wrong())?;
    // First, because a response repeats members of its request, `instructions` among them.
    if fields.get(&["output"]).is_some() {
        response::lift_response(fields).map_err(invalid)
    } else if REQUEST.iter().any(|name| fields.get(&[name]).is_some()) {
        request::lift_request(fields, cancel).map_err(invalid)
    } else {
        Err(wrong())
    }
}
