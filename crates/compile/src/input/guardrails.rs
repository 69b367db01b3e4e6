//! How the model is to answer: a tag around it, a rule for its form, the beginning of it.
//!
//! Everything stands at the tail, as text of its own. The beginning of an answer is given only to models that
//! continue one; the others are told to begin so, with the same characters.
//!
//! Not here: schemas that a provider enforces (`RequestOptions::response_format`).

use contexture_catalogue::Capabilities;
use contexture_ir::{Item, Message, Role};

use crate::input::contribution::{Band, Content, Contribution};

/// The source of the rules.
const RULES: &str = "guardrails";
/// The source of the beginning of the answer.
const PREFILL: &str = "prefill";

/// How the model is to answer. Nothing is asked by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guardrails {
    /// The name of the XML element that holds the whole answer.
    pub output_tag: Option<String>,
    /// A rule for the form of the answer, in words.
    pub format: Option<String>,
    /// The first characters of the answer.
    pub prefill: Option<String>,
}

/// Why guardrails cannot be said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardrailError {
    /// The tag is no name of an XML element.
    #[error("output tag {tag:?}: expected a letter or `_`, then letters, digits, `-`, `_` or `.`")]
    BadTag {
        /// Tag that cannot be used.
        tag: String,
    },
}

impl Guardrails {
    /// Checks that they can be said to any model.
    ///
    /// # Errors
    /// An output tag that is no name.
    ///
    /// ```
    /// use contexture_compile::Guardrails;
    ///
    /// let guardrails = Guardrails { output_tag: Some("a b".to_owned()), ..Guardrails::default() };
    /// assert!(guardrails.check().is_err());
    /// ```
    pub fn check(&self) -> Result<(), GuardrailError> {
        self.output_tag.as_deref().map_or(Ok(()), validate_tag)
    }

    /// The contributions for a model that can do so much, in the order they are to stand in.
    ///
    /// # Errors
    /// An output tag that is no name.
    pub fn build_contributions(
        &self,
        capabilities: &Capabilities,
    ) -> Result<Vec<Contribution>, GuardrailError> {
        let mut rules = Vec::new();
        if let Some(tag) = &self.output_tag {
            validate_tag(tag)?;
            rules.push(format!(
                "Put the whole answer into one XML element named {tag}: it begins with <{tag}> and ends with </{tag}>, \
                 and nothing stands before or behind it."
            ));
        }
        rules.extend(non_blank(self.format.as_ref()).cloned());
        let prefill = non_blank(self.prefill.as_ref());
        let continued = prefill.filter(|_| capabilities.prefill);
        if let (Some(text), None) = (prefill, continued) {
            // In quotes, so that it is clear where the characters begin and end.
            let quoted = serde_json::Value::from(text.as_str());
            rules.push(format!(
                "Begin the answer with exactly these characters, given as a JSON string: {quoted}"
            ));
        }
        let mut out = Vec::new();
        if !rules.is_empty() {
            out.push(Contribution::tail(RULES, rules.join("\n\n")).into_pinned());
        }
        out.extend(continued.map(|text| {
            let message = Item::from(Message::text(Role::Assistant, text.as_str()));
            let content = Content::Items(vec![message]);
            Contribution {
                order: i32::MAX,
                ..Contribution::new(PREFILL, Band::Tail, content).into_pinned()
            }
        }));
        Ok(out)
    }
}

fn non_blank(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.trim().is_empty())
}

fn validate_tag(tag: &str) -> Result<(), GuardrailError> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let other = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if tag.starts_with(first) && tag.chars().all(other) {
        Ok(())
    } else {
        Err(GuardrailError::BadTag {
            tag: tag.chars().take(80).collect(),
        })
    }
}
