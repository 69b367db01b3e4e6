//! Tombstones: what is left of an item whose content had to go.
//!
//! A tombstone keeps what the items around it need: the kind, the role, the function's name, the
//! `call_id` by which calls and outputs pair, the status. Everything that was said is gone, and so
//! are provider's ids and opaque fields, which lead back to it. The field [`REDACTED`] says so:
//! nothing is ever recognised by the placeholder's text.
//!
//! Not here: which items are to be redacted, and the store's own columns.

use crate::item::Part;
use crate::item::{Compaction, Extension, Item, Output, Reasoning};
use crate::raw::{Extra, Raw, quote_json};

/// The field that marks a tombstone; its value is `true`.
// A field and not a text: placeholders can be typed by anybody, and a model could forge one.
pub const REDACTED: &str = "ctx:redacted";

/// What stands where text stood, so that the item stays one that providers accept.
const PLACEHOLDER: &str = "[redacted]";

/// What stands for an item that could not be read.
const UNREADABLE: &str = "ctx:unreadable";

impl Item {
    /// The item's tombstone. The tombstone of a tombstone is itself.
    #[must_use]
    pub fn tombstone(&self) -> Self {
        // Built first, since every branch but one needs it.
        let mut extra = Extra::new();
        if let Ok(yes) = Raw::parse("true") {
            extra.set(REDACTED, yes);
        }
        match self {
            Self::Message(message) => {
                let mut item = crate::Message::text(message.role, PLACEHOLDER);
                // The status stays: a cut-off item is repaired differently from a complete one.
                item.status = message.status;
                item.extra = extra;
                Self::Message(item)
            }
            Self::FunctionCall(call) => {
                // Name and `call_id` stay, because an output without its call is refused by providers. `{}` is
                // the shortest valid arguments.
                let mut item = crate::FunctionCall::new(&call.call_id, &call.name, "{}");
                item.status = call.status;
                item.extra = extra;
                Self::FunctionCall(item)
            }
            Self::FunctionCallOutput(output) => {
                let text = Output::Text(PLACEHOLDER.to_owned());
                let mut item = crate::FunctionCallOutput::new(&output.call_id, text);
                item.is_error = output.is_error;
                item.status = output.status;
                item.extra = extra;
                Self::FunctionCallOutput(item)
            }
            // Nothing but the status: summaries, thoughts and sealed forms all lead back to what was said.
            Self::Reasoning(reasoning) => Self::Reasoning(Reasoning {
                status: reasoning.status,
                extra,
                ..Reasoning::default()
            }),
            // A compaction without a summary would leave a gap that nothing explains; the placeholder stands in
            // it.
            Self::Compaction(_) => Self::Compaction(Compaction {
                summary: vec![Part::SummaryText(crate::TextPart::new(PLACEHOLDER))],
                extra,
                ..Compaction::default()
            }),
            Self::Extension(extension) => tombstone_of(&extension.kind),
        }
    }

    /// Whether this is a tombstone.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        match self {
            // An extension has no parsed extra fields, so the mark is looked up in its JSON.
            Self::Extension(extension) => extension
                .raw
                .fields()
                .is_some_and(|fields| fields.get(&[REDACTED]).is_some()),
            item => item
                .extra()
                .is_some_and(|extra| extra.get(REDACTED).is_some()),
        }
    }
}

/// The JSON of the tombstone of the item with this JSON. What cannot be read leaves a tombstone of
/// the type `ctx:unreadable`.
#[must_use]
pub fn tombstone_json(json: &str) -> String {
    let tombstone = match Item::parse(json) {
        // Redaction must never fail: a row that no version can read is replaced as well.
        Ok(item) => item.tombstone(),
        Err(_) => tombstone_of(UNREADABLE),
    };
    tombstone.to_json()
}

fn tombstone_of(kind: &str) -> Item {
    let json = format!(r#"{{"type":{},"{REDACTED}":true}}"#, quote_json(kind));
    let raw = Raw::parse(json);
    debug_assert!(raw.is_ok(), "a quoted string is JSON");
    Item::Extension(Extension {
        kind: kind.to_owned(),
        // No id: a provider's id leads back to what was redacted.
        id: None,
        raw: raw.unwrap_or_else(|_| Raw::null()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tombstones_keep_shape_and_nothing_else() {
        let check = |json: &str, expected: &str| {
            let tombstone = tombstone_json(json);
            assert_eq!(tombstone, expected, "{json}");
            assert!(!tombstone.contains("secret"), "{tombstone}");
            assert_eq!(tombstone_json(&tombstone), tombstone);
            assert!(Item::parse(&tombstone).unwrap().is_tombstone());
        };
        check(
            r#"{"type":"message","id":"secret","role":"user","content":"secret","x":"secret"}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"[redacted]"}],"ctx:redacted":true}"#,
        );
        check(
            r#"{"type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"secret"},{"type":"refusal","refusal":"secret"}]}"#,
            r#"{"type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"[redacted]"}],"ctx:redacted":true}"#,
        );
        check(
            r#"{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"q\":\"secret\"}"}"#,
            r#"{"type":"function_call","call_id":"c1","name":"look","arguments":"{}","ctx:redacted":true}"#,
        );
        check(
            r#"{"type":"function_call_output","call_id":"c1","output":"secret","is_error":true}"#,
            r#"{"type":"function_call_output","call_id":"c1","output":"[redacted]","is_error":true,"ctx:redacted":true}"#,
        );
        check(
            r#"{"type":"reasoning","id":"secret","summary":[{"type":"summary_text","text":"secret"}],"encrypted_content":"secret"}"#,
            r#"{"type":"reasoning","summary":[],"ctx:redacted":true}"#,
        );
        check(
            r#"{"type":"compaction","summary":[{"type":"summary_text","text":"secret"}],"encrypted_content":"secret"}"#,
            r#"{"type":"compaction","summary":[{"type":"summary_text","text":"[redacted]"}],"ctx:redacted":true}"#,
        );
        check(
            r#"{"type":"acme:note","id":"secret","text":"secret"}"#,
            r#"{"type":"acme:note","ctx:redacted":true}"#,
        );
        for unreadable in ["secret", "", "[1]", r#"{"no":"type"}"#, "{"] {
            check(
                unreadable,
                r#"{"type":"ctx:unreadable","ctx:redacted":true}"#,
            );
        }
    }

    #[test]
    fn a_text_that_looks_like_a_tombstone_is_none() {
        let item = Item::parse(r#"{"type":"message","role":"user","content":"[redacted]"}"#);
        assert!(!item.unwrap().is_tombstone());
    }
}
