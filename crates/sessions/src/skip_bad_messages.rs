//! Documents in which some messages cannot be read: what is left without those, and a list of them.
//!
//! A document is read as a whole; only where that fails each of its messages is read alone.

use contexture_ir::Fields;
use contexture_wire::Format;
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::json::with_member;
use crate::session::Skipped;

/// The document without the messages that `fault` finds something wrong with. Nothing if it has no list of
/// messages, or none of them is at fault.
pub(crate) fn skip_bad_messages(
    text: &str,
    fault: impl Fn(&str) -> Option<SessionError>,
) -> Option<(String, Vec<Skipped>)> {
    // A text that is no object may be the list itself.
    let (key, list) = find_list(text).map_or((None, text), |(key, list)| (Some(key), list));
    let messages: Vec<&RawValue> = serde_json::from_str(list).ok()?;
    let (mut kept, mut skipped) = (Vec::new(), Vec::new());
    for (index, message) in messages.iter().enumerate() {
        // Each alone in a list of one. A fault that spans messages is not found this way.
        match fault(&format!("[{}]", message.get())) {
            None => kept.push(message.get()),
            Some(error) => skipped.push(Skipped {
                number: index + 1,
                what: error.to_string(),
            }),
        }
    }
    // Nothing to leave out: the fault is in the document itself.
    if skipped.is_empty() {
        return None;
    }
    let kept = format!("[{}]", kept.join(","));
    let document = match key {
        Some(key) => with_member(text, key, &kept)?,
        None => kept,
    };
    Some((document, skipped))
}

/// The list of messages of a document, and the member that holds it.
fn find_list(text: &str) -> Option<(&'static str, &str)> {
    let fields = Fields::parse(text).ok()?;
    let histories = Format::ALL.into_iter();
    let histories = histories.filter_map(|format| Some(format.spec().members()?.history));
    // Our own documents, and answers that are lists of items.
    let mut keys = histories.chain(["items", "output"]);
    keys.find_map(|key| Some((key, fields.get(&[key])?.get())))
}
