//! Strings of a document that no text can hold, because half of a surrogate pair stands in them.
//!
//! Such a document is read with U+FFFD in its place, and the items that show it keep the strings as they were written.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use contexture_ir::{DAMAGED, Item, Message, Raw, Transcript, replace_lone_surrogates};

use crate::model::json::json_array;

/// Keeps, with the items of a document that was read with replacements, the strings of it that were replaced.
pub(crate) fn keep_replaced_strings(json: &str, transcript: &mut Transcript) {
    let mut strings = ReplacedStrings::default();
    for text in string_literals(json) {
        if let Cow::Owned(shown) = replace_lone_surrogates(text)
            && let Ok(shown) = serde_json::from_str(&shown)
        {
            strings.0.entry(shown).or_default().push_back(text);
        }
    }
    for message in &mut transcript.instructions {
        let mut item = Item::Message(std::mem::replace(
            message,
            Message::new(message.role, vec![]),
        ));
        strings.keep_with(&mut item);
        if let Item::Message(kept) = item {
            *message = kept;
        }
    }
    for item in &mut transcript.items {
        strings.keep_with(item);
    }
}

/// The strings of a document that no text can hold, by what is shown of them.
#[derive(Default)]
struct ReplacedStrings<'a>(BTreeMap<String, VecDeque<&'a str>>);

impl ReplacedStrings<'_> {
    /// Moves those that an item shows to the item.
    fn keep_with(&mut self, item: &mut Item) {
        let json = item.to_json();
        let mut kept = Vec::new();
        for text in string_literals(&json) {
            let Ok(shown) = serde_json::from_str::<String>(text) else {
                continue;
            };
            kept.extend(self.take_original(&shown));
            // Arguments are JSON in a string.
            for inner in string_literals(&shown) {
                let inner = serde_json::from_str::<String>(inner);
                kept.extend(inner.ok().and_then(|inner| self.take_original(&inner)));
            }
        }
        if let (Some(extra), false) = (item.extra_mut(), kept.is_empty())
            && let Ok(mark) = Raw::parse(format!(r#"{{"strings":{}}}"#, json_array(kept)))
        {
            extra.set(DAMAGED, mark);
        }
    }

    /// The next string that is shown so, as a JSON string of its JSON: its halves are escaped twice.
    fn take_original(&mut self, shown: &str) -> Option<String> {
        if !shown.contains(char::REPLACEMENT_CHARACTER) {
            return None;
        }
        let original = self.0.get_mut(shown)?.pop_front()?;
        Some(contexture_ir::quote_json(original))
    }
}

/// The strings of a JSON text as they are written, quotes included.
fn string_literals(json: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + json.get(at..)?.find('"')?;
        let mut end = start + 1;
        loop {
            let found = end + json.get(end..)?.find(['"', '\\'])?;
            end = found + 1;
            match json.as_bytes().get(found) {
                Some(b'"') => break,
                // What is escaped ends nothing.
                _ => end += 1,
            }
        }
        at = end;
        json.get(start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_cut_out_as_they_are_written() {
        let json = r#"{"a\"":"","b":["\\","é"],"c":1}"#;
        let all: Vec<&str> = string_literals(json).collect();
        assert_eq!(
            all,
            [r#""a\"""#, r#""""#, r#""b""#, r#""\\""#, r#""é""#, r#""c""#]
        );
        assert_eq!(string_literals(r#""open"#).count(), 0);
    }
}
