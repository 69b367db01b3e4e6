//! Reads facts from JSON: short values with their names.
//!
//! `{"price": 523, "flight": {"number": "HAT017"}}` gives `price: 523` and `number: HAT017`. All values of one name are
//! collected, each once, in the order in which they occur. A name that carries a fact itself (`{"payment_methods":
//! {"card_77": …}}`) is a value of the name above it.
//!
//! Not here: long strings, which are read as text ([`contexture_text::fact_words`]).

use contexture_ir::Fields;
use indexmap::IndexMap;
use serde_json::value::RawValue;

use contexture_text::fact_words::{FactKind, classify_word};

/// Maximum length of a string that is a value, in bytes; longer strings are texts.
const SHORT: usize = 64;
/// Nesting depth from which JSON is read as a text.
const DEEPEST: usize = 24;

/// Values by name, both in the order in which they occur, each value with the first item that holds it.
pub(crate) type ValuesByName = IndexMap<String, IndexMap<String, usize>>;

/// Reads a JSON object or array, which is of the item `index`; `None` if the text is neither. Calls `text` with everything
/// that is not a value.
pub(crate) fn collect_json_facts(
    json: &str,
    index: usize,
    facts: &mut ValuesByName,
    text: &mut dyn FnMut(&str),
) -> Option<()> {
    let json = json.trim();
    if !json.starts_with(['{', '[']) {
        return None;
    }
    let value: &RawValue = serde_json::from_str(json).ok()?;
    JsonWalk { index, facts, text }.walk("", value.get(), 0);
    Some(())
}

struct JsonWalk<'w> {
    index: usize,
    facts: &'w mut ValuesByName,
    text: &'w mut dyn FnMut(&str),
}

impl JsonWalk<'_> {
    /// Collects the facts of one JSON value. Numbers stay as they are written.
    fn walk(&mut self, name: &str, json: &str, depth: usize) {
        match json.as_bytes().first() {
            // Bounds the recursion: hostile output may be nested arbitrarily deep.
            Some(b'{' | b'[') if depth == DEEPEST => (self.text)(json),
            Some(b'{') => self.walk_object(name, json, depth),
            Some(b'[') => {
                let values: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
                for value in values {
                    self.walk(name, value.get(), depth + 1);
                }
            }
            Some(b'"') => {
                let value: String = serde_json::from_str(json).unwrap_or_default();
                let short = value.trim();
                // Long strings are prose or code, whose words are read one by one.
                if short.len() > SHORT || short.contains('\n') {
                    (self.text)(short);
                } else if !short.is_empty() {
                    self.add_value(name, short.to_owned());
                }
            }
            Some(b'-' | b'0'..=b'9') => self.add_value(name, json.to_owned()),
            _ => {}
        }
    }

    fn walk_object(&mut self, name: &str, json: &str, depth: usize) {
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
                self.add_value(name, key.to_owned());
            }
            let name = if is_fact_key { name } else { key };
            self.walk(name, value, depth + 1);
        }
    }

    fn add_value(&mut self, name: &str, value: String) {
        let index = self.index;
        match self.facts.get_mut(name) {
            Some(values) => {
                values.entry(value).or_insert(index);
            }
            None => {
                self.facts.insert(name.to_owned(), [(value, index)].into());
            }
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
        collect_json_facts(json, 0, &mut facts, &mut |text| texts.push(text.to_owned())).unwrap();
        let said: Vec<String> = facts
            .iter()
            .map(|(name, values)| {
                format!(
                    "{name}: {}",
                    values.keys().cloned().collect::<Vec<_>>().join(" ")
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
            collect_json_facts(&closed, 0, &mut ValuesByName::new(), &mut |_| {}),
            Some(())
        );
        for text in ["", "42", "\"a\"", "{", "[1,", deep.as_str()] {
            assert_eq!(
                collect_json_facts(text, 0, &mut ValuesByName::new(), &mut |_| {}),
                None,
                "{}",
                text.len()
            );
        }
    }
}
