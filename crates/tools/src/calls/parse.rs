//! A call as it comes: an item of ours, or the JSON of a provider.
//!
//! Not here: what it means ([`crate::calls::resolve`]).

use contexture_ir::{Fields, FunctionCall, Raw};
use serde_json::value::RawValue;

use contexture_ir::truncate_chars;

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name the model called, as registered: where a target refused the name and wire wrote another, the host has
    /// put it back (`contexture_wire::ToolNameMap`).
    pub name: String,
    /// The group it named beside, where the format can (OpenAI's namespaces).
    pub group: Option<String>,
    /// The arguments, as text: JSON, or what was to become it.
    pub arguments: String,
}

/// Why some JSON is no call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a call: expected a name and arguments in the form of a function_call item, of OpenAI, Anthropic, Gemini or the \
     AI SDK, found {found}"
)]
pub struct CallError {
    /// The text, cut to 80 characters.
    pub found: String,
}

impl Call {
    /// A call of a name with arguments.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            group: None,
            arguments: arguments.into(),
        }
    }

    /// Reads a call in any of these forms: `{"name", "arguments"}` with arguments as text or object, also within
    /// `"function"` (OpenAI Chat) or `"functionCall"` (Gemini, `args`); `"input"` instead (Anthropic); `"toolName"` with
    /// `"input"` or `"args"` (AI SDK).
    pub fn from_json(text: &str) -> Result<Self, CallError> {
        // The whole text is quoted and not the part at fault: callers log this for people who know the
        // provider.
        let error = || CallError {
            found: truncate_chars(text, 80),
        };
        let outer = Fields::parse(text).map_err(|_| error())?;
        // Formats nest the call under a name of their own; without one the outer object is the call.
        let nested = outer.get(&["function", "functionCall", "function_call"]);
        let nested = nested.and_then(|inner| Fields::parse(inner.get()).ok());
        let fields = nested.unwrap_or(outer);
        let string = |value: &RawValue| serde_json::from_str::<String>(value.get()).ok();
        let name = fields.get(&["name", "toolName"]).and_then(string);
        let arguments = fields.get(&["arguments", "input", "args"]).map(|value| {
            // Anthropic and Gemini send an object, OpenAI sends JSON in a string. Either way the text of the
            // object is kept.
            let text = string(value);
            text.unwrap_or_else(|| value.get().to_owned())
        });
        Ok(Self {
            name: name.ok_or_else(error)?,
            group: fields.get(&["namespace"]).and_then(string),
            // No arguments at all are for the reader of arguments to judge, not for this one.
            arguments: arguments.unwrap_or_default(),
        })
    }
}

impl From<&FunctionCall> for Call {
    fn from(call: &FunctionCall) -> Self {
        Self {
            name: call.name.clone(),
            group: call.extra.get("namespace").and_then(Raw::as_string),
            arguments: call.arguments.clone(),
        }
    }
}
