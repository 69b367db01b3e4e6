//! How the body of an answer that was cut off says which of its pieces were not whole.
//!
//! Responses has a status for that. In the other formats the accumulator marks the native piece with one
//! member of ours, and lifting takes it away again: the item is `incomplete`, a call's arguments are the text
//! that came, and a block that only its provider understands becomes an item of ours, which nobody is sent.

use contexture_ir::{Extension, Extra, Fields, Item, Raw, Status, Transcript};

use crate::format::Format;
use crate::json::Object;

/// The mark: `true`, or the text of unfinished arguments.
pub(crate) const MARK: &str = "ctx:unfinished";
/// The reason to finish of an answer that was cut off.
pub(crate) const INCOMPLETE: &str = "incomplete";
/// Where formats nest a native piece in an item of their own.
const NATIVE: [&str; 2] = ["block", "call"];
/// The mark of a Chat message, by the place where its own members are kept.
const PLACES: [&str; 2] = [MARK, "answer.ctx:unfinished"];

/// The mark of a piece that has no arguments.
pub(crate) fn mark() -> Raw {
    Raw::parse("true").unwrap_or_else(|_| Raw::null())
}

/// Takes the marks away and says what they mean.
pub(crate) fn settle(format: Format, transcript: &mut Transcript) {
    for item in &mut transcript.items {
        let own = item.extra_mut().and_then(|extra| taken(format, extra));
        let marked = own.is_some() | said(format, item);
        match item {
            Item::Message(message) if marked => message.status = Some(Status::Incomplete),
            Item::FunctionCall(call) => {
                if let Some(mark) = own {
                    call.status = Some(Status::Incomplete);
                    if let Some(text) = mark.as_string() {
                        call.arguments = text;
                    }
                }
            }
            Item::Reasoning(reasoning) if own.is_some() => {
                reasoning.status = Some(Status::Incomplete);
            }
            Item::Extension(extension) => withdraw(extension),
            _ => {}
        }
    }
}

/// Whether one of a message's parts was marked.
fn said(format: Format, item: &mut Item) -> bool {
    let mut any = false;
    let Item::Message(message) = item else {
        return any;
    };
    for part in &mut message.content {
        any |= part
            .extra_mut()
            .is_some_and(|extra| taken(format, extra).is_some());
    }
    any
}

fn taken(format: Format, extra: &mut Extra) -> Option<Raw> {
    if extra.is_empty() {
        return None;
    }
    let mut wire = extra.wire(format.as_str());
    let mark = PLACES.into_iter().find_map(|place| wire.remove(place))?;
    extra.set_wire(format.as_str(), wire);
    Some(mark)
}

/// A provider's own piece that was not whole: kept, but nobody is sent it.
fn withdraw(item: &mut Extension) {
    let marked = |raw: &Raw| {
        let fields = raw.fields()?;
        let native = fields.get(&NATIVE)?;
        Fields::parse(native.get()).ok()?.get(&[MARK]).map(drop)
    };
    if marked(&item.raw).is_none() {
        return;
    }
    let mut object = Object::new();
    object.string("type", MARK).raw("item", item.raw.get());
    if let Ok(raw) = Raw::parse(object.finish()) {
        item.kind = MARK.to_owned();
        item.raw = raw;
    }
}
