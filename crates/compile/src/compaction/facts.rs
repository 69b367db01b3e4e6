//! The facts of JSON: short values under the names they have there.
//!
//! `{"price": 523, "flight": {"number": "HAT017"}}` says `price: 523` and `number: HAT017`. The same name
//! anywhere gathers all its values, each once, in the order they came. Where a name itself carries a fact
//! (`{"payment_methods": {"card_77": …}}`), it is a value of the name above it.
//!
//! Not here: long strings, which are texts and read as such ([`super::words`]).

use contexture_ir::Fields;
use indexmap::{IndexMap, IndexSet};
use serde_json::value::RawValue;

use super::words::{Kind, kind};

/// Strings up to this length are values, longer ones texts, in bytes.
const SHORT: usize = 64;
/// What is nested deeper is read as a text.
const DEEPEST: usize = 24;

/// Values by name, both in the order they came.
pub(super) type Facts = IndexMap<String, IndexSet<String>>;

/// Reads a JSON object or array; `None` if the text is none. `text` is given what is no value.
pub(super) fn read(json: &str, facts: &mut Facts, text: &mut dyn FnMut(&str)) -> Option<()> {
    let json = json.trim();
    if !json.starts_with(['{', '[']) {
        return None;
    }
    let value: &RawValue = serde_json::from_str(json).ok()?;
    walk("", value.get(), 0, facts, text);
    Some(())
}

/// Numbers stay as they are written.
fn walk(name: &str, json: &str, depth: usize, facts: &mut Facts, text: &mut dyn FnMut(&str)) {
    match json.as_bytes().first() {
        Some(b'{' | b'[') if depth == DEEPEST => text(json),
        Some(b'{') => {
            let Ok(fields) = Fields::parse(json) else {
                return;
            };
            for (key, value) in fields.iter() {
                let value = value.get();
                let telling = matches!(
                    kind(key),
                    Some(Kind::Identifier | Kind::Number | Kind::Path)
                ) && value.starts_with(['{', '[']);
                if telling {
                    add(facts, name, key.to_owned());
                }
                walk(
                    if telling { name } else { key },
                    value,
                    depth + 1,
                    facts,
                    text,
                );
            }
        }
        Some(b'[') => {
            let values: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            for value in values {
                walk(name, value.get(), depth + 1, facts, text);
            }
        }
        Some(b'"') => {
            let value: String = serde_json::from_str(json).unwrap_or_default();
            let short = value.trim();
            if short.len() > SHORT || short.contains('\n') {
                text(short);
            } else if !short.is_empty() {
                add(facts, name, short.to_owned());
            }
        }
        Some(b'-' | b'0'..=b'9') => add(facts, name, json.to_owned()),
        _ => {}
    }
}

fn add(facts: &mut Facts, name: &str, value: String) {
    match facts.get_mut(name) {
        Some(values) => {
            values.insert(value);
        }
        None => {
            facts.insert(name.to_owned(), [value].into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_gather_under_their_names() {
        let mut facts = Facts::new();
        let mut texts = Vec::new();
        let json = r#"{"legs":[{"price":523,"to":"BOS"},{"price":501,"to":"BOS"}],
            "methods":{"card_77":{"amount":250.50}},"open":true,"none":null,"note":"a\nb"}"#;
        read(json, &mut facts, &mut |text| texts.push(text.to_owned())).unwrap();
        let said: Vec<String> = facts
            .iter()
            .map(|(name, values)| {
                format!(
                    "{name}: {}",
                    values.iter().cloned().collect::<Vec<_>>().join(" ")
                )
            })
            .collect();
        assert_eq!(
            said,
            [
                "price: 523 501",
                "to: BOS",
                "methods: card_77",
                "amount: 250.50"
            ]
        );
        assert_eq!(texts, ["a\nb"]);
    }

    #[test]
    fn what_is_no_json_is_none() {
        let deep = "[".repeat(100_000);
        let closed = format!("{deep}{}", "]".repeat(100_000));
        assert_eq!(read(&closed, &mut Facts::new(), &mut |_| {}), Some(()));
        for text in ["", "42", "\"a\"", "{", "[1,", deep.as_str()] {
            assert_eq!(
                read(text, &mut Facts::new(), &mut |_| {}),
                None,
                "{}",
                text.len()
            );
        }
    }
}
