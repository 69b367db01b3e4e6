//! Reads facts from JSON: short values with their names.
//!
//! `{"price": 523, "flight": {"number": "HAT017"}}` gives `price: 523` and `number: HAT017`. All values of one name are
//! collected, each once, in the order in which they occur. A name that carries a fact itself (`{"payment_methods":
//! {"card_77": …}}`) is a value of the name above it.
//!
//! Not here: long strings, which are read as text ([`contexture_text::fact_words`]).

use contexture_ir::Fields;
use indexmap::{IndexMap, IndexSet};
use serde_json::value::RawValue;

use contexture_text::fact_words::{FactKind, classify_word};

/// Maximum length of a string that is a value, in bytes; longer strings are texts.
const SHORT: usize = 64;
/// Nesting depth from which JSON is read as a text.
const DEEPEST: usize = 24;

/// Values by name, both in the order in which they occur.
pub(crate) type ValuesByName = IndexMap<String, IndexSet<String>>;

/// Reads a JSON object or array; `None` if the text is neither. Calls `text` with everything that is not a value.
pub(crate) fn collect_json_facts(
    json: &str,
    facts: &mut ValuesByName,
    text: &mut dyn FnMut(&str),
) -> Option<()> {
    let json = json.trim();
    if !json.starts_with(['{', '[']) {
        return None;
    }
    let value: &RawValue = serde_json::from_str(json).ok()?;
    walk_json("", value.get(), 0, facts, text);
    Some(())
}

/// Collects the facts of one JSON value. Numbers stay as they are written.
fn walk_json(
    name: &str,
    json: &str,
    depth: usize,
    facts: &mut ValuesByName,
    text: &mut dyn FnMut(&str),
) {
    match json.as_bytes().first() {
        // Bounds the recursion: hostile output may be nested arbitrarily deep.
        Some(b'{' | b'[') if depth == DEEPEST => text(json),
        Some(b'{') => walk_object(name, json, depth, facts, text),
        Some(b'[') => {
            let values: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            for value in values {
                walk_json(name, value.get(), depth + 1, facts, text);
            }
        }
        Some(b'"') => {
            let value: String = serde_json::from_str(json).unwrap_or_default();
            let short = value.trim();
            // Long strings are prose or code, whose words are read one by one.
            if short.len() > SHORT || short.contains('\n') {
                text(short);
            } else if !short.is_empty() {
                add_value(facts, name, short.to_owned());
            }
        }
        Some(b'-' | b'0'..=b'9') => add_value(facts, name, json.to_owned()),
        _ => {}
    }
}

fn walk_object(
    name: &str,
    json: &str,
    depth: usize,
    facts: &mut ValuesByName,
    text: &mut dyn FnMut(&str),
) {
    let Ok(fields) = Fields::parse(json) else {
        return;
    };
    for (key, value) in fields.iter() {
        let value = value.get();
        let is_fact_key = matches!(
            classify_word(key),
            Some(FactKind::Identifier | FactKind::Number | FactKind::Path)
        ) && value.starts_with(['{', '[']);
        // The key itself is a value, such as an id that names its record.
        if is_fact_key {
            add_value(facts, name, key.to_owned());
        }
        let name = if is_fact_key { name } else { key };
        walk_json(name, value, depth + 1, facts, text);
    }
}

fn add_value(facts: &mut ValuesByName, name: &str, value: String) {
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
        let mut facts = ValuesByName::new();
        let mut texts = Vec::new();
        let json = r#"{"legs":[{"price":523,"to":"BOS"},{"price":501,"to":"BOS"}],
            "methods":{"card_77":{"amount":250.50}},"open":true,"none":null,"note":"a\nb"}"#;
        collect_json_facts(json, &mut facts, &mut |text| texts.push(text.to_owned())).unwrap();
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
        assert_eq!(
            collect_json_facts(&closed, &mut ValuesByName::new(), &mut |_| {}),
            Some(())
        );
        for text in ["", "42", "\"a\"", "{", "[1,", deep.as_str()] {
            assert_eq!(
                collect_json_facts(text, &mut ValuesByName::new(), &mut |_| {}),
                None,
                "{}",
                text.len()
            );
        }
    }
}
