//! Truncation marks: how the body of an answer that was cut off shows which of its pieces are incomplete.
//!
//! Responses has a status for that. In the other formats the accumulator marks the native piece with one
//! member of ours, and lifting takes it away again: the item is `incomplete`, a call's arguments are the text
//! that came, and a block that only its provider understands becomes an item of ours, which nobody is sent.
//!
//! Not here: why an answer ended, which each format's `response.rs` reads.

use contexture_ir::{Extension, Extra, Fields, Item, Raw, Status, Transcript};

use crate::model::format::Format;
use crate::model::json::ObjectWriter;

/// The mark: `true`, or the text of unfinished arguments.
pub(crate) const MARK: &str = "ctx:unfinished";
/// Our own finish reason for an answer whose stream broke off; no provider sends it.
pub(crate) const INCOMPLETE: &str = "incomplete";
/// Where formats nest a native piece in an item of their own.
const NATIVE: [&str; 2] = ["block", "call"];
/// The keys under which the mark of a Chat message may be stored.
const PLACES: [&str; 2] = [MARK, "answer.ctx:unfinished"];

/// The mark of a piece that has no arguments.
pub(crate) fn truncation_mark() -> Raw {
    Raw::parse("true").unwrap_or_else(|_| Raw::null())
}

/// Removes the marks and sets the status of the items they stood on.
pub(crate) fn take_truncation_marks(format: Format, transcript: &mut Transcript) {
    for item in &mut transcript.items {
        let own = item
            .extra_mut()
            .and_then(|extra| remove_mark(format, extra));
        // Not `||`: the marks of the parts have to be removed in any case.
        let marked = own.is_some() | has_truncated_part(format, item);
        match item {
            Item::Message(message) if marked => message.status = Some(Status::Incomplete),
            Item::FunctionCall(call) => {
                if let Some(mark) = own {
                    call.status = Some(Status::Incomplete);
                    // Half a JSON object is no valid `input`, so the body has `{}` there and the
                    // mark has the text that came.
                    if let Some(text) = mark.as_string() {
                        call.arguments = text;
                    }
                }
            }
            Item::Reasoning(reasoning) if own.is_some() => {
                reasoning.status = Some(Status::Incomplete);
            }
            // An extension carries the native piece whole, and the mark stands inside that.
            Item::Extension(extension) => mark_incomplete(extension),
            _ => {}
        }
    }
}

/// Whether one of a message's parts was marked.
fn has_truncated_part(format: Format, item: &mut Item) -> bool {
    let mut any = false;
    let Item::Message(message) = item else {
        return any;
    };
    for part in &mut message.content {
        any |= part
            .extra_mut()
            .is_some_and(|extra| remove_mark(format, extra).is_some());
    }
    any
}

fn remove_mark(format: Format, extra: &mut Extra) -> Option<Raw> {
    // Most items carry nothing; reading their fields would cost a parse for each.
    if extra.is_empty() {
        return None;
    }
    let mut wire = extra.wire_fields(format.as_str());
    let mark = PLACES.into_iter().find_map(|place| wire.remove(place))?;
    extra.set_wire_fields(format.as_str(), wire);
    Some(mark)
}

/// Wraps a provider's own piece that was cut off: it stays in the history, but no provider is sent it.
fn mark_incomplete(item: &mut Extension) {
    let marked = |raw: &Raw| {
        let fields = raw.fields()?;
        let native = fields.get(&NATIVE)?;
        Fields::parse(native.get()).ok()?.get(&[MARK]).map(drop)
    };
    if marked(&item.raw).is_none() {
        return;
    }
    let mut object = ObjectWriter::new();
    object.string("type", MARK).raw("item", item.raw.get());
    if let Ok(raw) = Raw::parse(object.finish()) {
        // Writers leave out what is called `ctx:…`, so no provider is sent half a piece.
        item.kind = MARK.to_owned();
        item.raw = raw;
    }
}
