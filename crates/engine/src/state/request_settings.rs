//! What an imported or ingested request asked beside its messages: tools, options, and the members of its own format.
//!
//! It hangs off the path like the leading messages, so a rewind takes the settings of the node it goes to. A compile uses
//! them for whatever its target does not say.

use contexture_ir::{Raw, RequestOptions, Transcript};
use contexture_store::{NodeState, StateChange};
use contexture_wire::{Dialect, DocumentKind, Format, lift, lower};

use super::instructions::{encode_json, state_key, stored_state_error};
use crate::error::EngineError;

const REQUEST: &str = "path/instructions/request";

const VERSION: u32 = 1;

/// The change that records a request's settings, replacing those of the request before it. Settings longer than
/// `max_bytes` are not kept.
pub(crate) fn settings_change(
    request: &Transcript,
    max_bytes: usize,
) -> Result<StateChange, EngineError> {
    let lasting = lasting_settings(request);
    let key = state_key(REQUEST)?;
    if lasting == Transcript::default() {
        return Ok(StateChange::remove_entry(key));
    }
    // As a document of items, which has a place for the members of every format.
    let json = lower(&Dialect::of(Format::Items), DocumentKind::Request, &lasting).json;
    let value = encode_json(&Raw::parse(json)?)?;
    if value.len() > max_bytes {
        tracing::warn!(
            bytes = value.len(),
            max_bytes,
            "the tools and options of a request are too long to be kept with its conversation"
        );
        return Ok(StateChange::remove_entry(key));
    }
    Ok(StateChange::put_entry(key, VERSION, value))
}

/// Returns the prefix of the keys under which settings are kept.
pub(crate) const fn settings_prefix() -> &'static str {
    REQUEST
}

/// Reads the settings that hang off a node; `None` if no request left any.
pub(crate) fn stored_settings(state: &NodeState) -> Result<Option<Transcript>, EngineError> {
    let Some(bytes) = state.loaded_value(&state_key(REQUEST)?) else {
        return Ok(None);
    };
    let error = |why: &dyn std::fmt::Display| stored_state_error(REQUEST, &why.to_string());
    let text = std::str::from_utf8(bytes).map_err(|why| error(&why))?;
    // A redacted value is empty.
    if text.is_empty() {
        return Ok(None);
    }
    let lifted = lift(Format::Items, text).map_err(|why| error(&why))?;
    Ok(Some(lifted.transcript))
}

/// Returns the settings of a request that hold for later calls too.
fn lasting_settings(request: &Transcript) -> Transcript {
    let mut extra = request.extra.clone();
    for (format, mut fields) in request.extra.wire_fields_by_format() {
        let format_spec = format.parse::<Format>().ok();
        let members = format_spec.and_then(|format| format.spec().members());
        let Some(members) = members else {
            continue;
        };
        // How one answer was sent is the business of whoever asked for it. A history that the provider keeps would come
        // twice, because a compile sends all of it.
        let of_one_call = members.stream.iter().map(|(name, _)| *name);
        for name in of_one_call.chain(members.provider_history.iter().copied()) {
            fields.remove(name);
        }
        extra.set_wire_fields(&format, fields);
    }
    Transcript {
        model: request.model.clone(),
        tools: request.tools.clone(),
        options: RequestOptions {
            stream: None,
            ..request.options.clone()
        },
        extra,
        ..Transcript::default()
    }
}
