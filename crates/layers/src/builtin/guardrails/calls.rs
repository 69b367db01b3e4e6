//! A guard for calls that cannot run.

use std::collections::BTreeMap;

use contexture_ir::{FunctionCall, Raw, ToolDefinition};
use contexture_tools::{SchemaError, SchemaValidator};

use super::guard::{Guard, ModelAnswer};
use crate::contract::AnswerVerdict;

/// Rejects calls that cannot run, with feedback about the mistake: an unknown tool, the name of a skill instead of a
/// tool, arguments that are not JSON or do not match the tool's schema.
#[derive(Debug, Default)]
pub struct ToolCalls {
    tools: BTreeMap<String, Option<SchemaValidator>>,
    skills: Vec<String>,
}

impl ToolCalls {
    /// Creates a guard that knows these tools.
    ///
    /// # Errors
    /// If a schema is invalid.
    pub fn from_tools<'a>(
        tools: impl IntoIterator<Item = &'a ToolDefinition>,
    ) -> Result<Self, SchemaError> {
        let mut known = BTreeMap::new();
        for tool in tools {
            let parameters = match tool {
                ToolDefinition::Function(function) => function.parameters.as_ref(),
                _ => None,
            };
            let checker = parameters.map(SchemaValidator::new).transpose()?;
            known.insert(tool.name().to_owned(), checker);
        }
        Ok(Self {
            tools: known,
            skills: Vec::new(),
        })
    }

    /// Adds the names of skills, for better feedback.
    #[must_use]
    pub fn with_skills<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.skills = names.into_iter().map(Into::into).collect();
        self
    }

    fn call_error(&self, call: &FunctionCall) -> Option<String> {
        let name = &call.name;
        let Some(schema) = self.tools.get(name) else {
            if self.skills.contains(name) {
                return Some(format!(
                    "{name} is a skill, not a tool: read it with load_skill"
                ));
            }
            let there: Vec<&str> = self.tools.keys().map(String::as_str).collect();
            return Some(match there.as_slice() {
                [] => format!("there is no tool {name}, and no other: answer in words"),
                there => format!("there is no tool {name}; there are: {}", there.join(", ")),
            });
        };
        let written = match call.arguments.trim() {
            "" => "{}",
            written => written,
        };
        let Ok(arguments) = Raw::parse(written) else {
            return Some(format!("the arguments of {name} are not JSON"));
        };
        match schema.as_ref()?.check_arguments(&arguments) {
            Err(error) => Some(format!("the arguments of {name}: {error}")),
            Ok(findings) if findings.is_empty() => None,
            Ok(findings) => {
                let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
                let findings = findings.join("; ");
                Some(format!("the arguments of {name} do not fit: {findings}"))
            }
        }
    }
}

impl Guard for ToolCalls {
    fn check_answer(&self, answer: &ModelAnswer<'_>) -> AnswerVerdict {
        let flaws: Vec<String> = answer
            .function_calls()
            .filter_map(|call| self.call_error(call))
            .collect();
        if flaws.is_empty() {
            return AnswerVerdict::Pass;
        }
        let flaws = flaws.join("\n");
        AnswerVerdict::Retry {
            feedback: format!("Nothing was run. {flaws}\nCall again."),
        }
    }
}
