//! A guard for answers that must be JSON.

use contexture_ir::Raw;
use contexture_text::strip_code_fence;
use contexture_tools::{SchemaError, SchemaValidator};

use super::guard::{Guard, ModelAnswer};
use crate::contract::AnswerVerdict;

/// Requires the final answer to be JSON, optionally of a schema. An answer that calls tools is not final.
///
/// A Markdown fence around the JSON is removed; any other answer is rejected with feedback.
#[derive(Debug)]
pub struct JsonOutput {
    schema: Option<SchemaValidator>,
}

impl JsonOutput {
    /// Accepts any valid JSON.
    #[must_use]
    pub const fn any_json() -> Self {
        Self { schema: None }
    }

    /// Accepts JSON that matches this schema.
    ///
    /// # Errors
    /// If the schema is invalid.
    pub fn with_schema(schema: &Raw) -> Result<Self, SchemaError> {
        let schema = Some(SchemaValidator::new(schema)?);
        Ok(Self { schema })
    }

    /// Returns what is wrong with a text.
    fn json_error(&self, text: &str) -> Option<String> {
        let json = match Raw::parse(text.trim()) {
            Ok(json) => json,
            Err(_) => {
                // The parser's message, which does not contain the text.
                let error = serde_json::from_str::<serde_json::Value>(text).err();
                return Some(error.map_or_else(String::new, |error| error.to_string()));
            }
        };
        match self.schema.as_ref()?.check_arguments(&json) {
            Err(error) => Some(error.to_string()),
            Ok(findings) if findings.is_empty() => None,
            Ok(findings) => {
                let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
                Some(findings.join("; "))
            }
        }
    }
}

impl Guard for JsonOutput {
    fn check_answer(&self, answer: &ModelAnswer<'_>) -> AnswerVerdict {
        if answer.function_calls().next().is_some() {
            return AnswerVerdict::Pass;
        }
        let text = answer.assistant_text();
        let Some(flaw) = self.json_error(&text) else {
            return AnswerVerdict::Pass;
        };
        let inner = strip_code_fence(&text).filter(|inner| self.json_error(inner).is_none());
        if let Some(inner) = inner {
            let mended =
                answer.with_replaced_text(|part| strip_code_fence(part).unwrap_or(part).to_owned());
            if (ModelAnswer { items: &mended }).assistant_text().trim() == inner {
                return AnswerVerdict::Fix(mended);
            }
        }
        AnswerVerdict::Retry {
            feedback: format!(
                "Your answer must be JSON and nothing else, as asked. What is wrong with it: {flaw}. Answer again."
            ),
        }
    }
}
