//! What an agent asks of the answer that would end its run: a type, and a verifier of the program's own.
//!
//! Not here: asking the model again (`crate::steps`), and rules that hold for every answer (the layer `Guardrails`).

use std::fmt;

use async_trait::async_trait;
use contexture_ir::{Fragment, Raw, hint};
use contexture_text::strip_code_fence;
use contexture_tools::SchemaValidator;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::turn::Turn;
use crate::context::RunContext;
use crate::tools::schema_of_type;

/// Judges the answer that would end a run: by a model, a test suite, a rule.
///
/// A judge that asks a model pays for itself: what it uses is not counted in the run's usage.
#[async_trait]
pub trait Verifier: Send + Sync {
    /// Judges the text of an answer that called no tool. After a crash it may be asked about the same answer again. An abort of
    /// the run cuts it off.
    ///
    /// # Errors
    /// If it cannot judge; the run then fails with [`RunError::StepFailed`](crate::RunError::StepFailed).
    async fn verify(
        &self,
        answer: &str,
        run: &RunContext,
    ) -> Result<Verdict, Box<dyn std::error::Error + Send + Sync>>;
}

/// Verdict of a [`Verifier`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run may end with the answer.
    Accepted,
    /// The model is asked again, with this feedback.
    Rejected {
        /// What is wrong, in words that the model can act on.
        feedback: String,
    },
}

/// The type of an agent's final answer.
#[derive(Clone)]
pub(crate) struct OutputType {
    schema: Raw,
    /// Reads the JSON as the type: it may refuse what no schema says.
    parse: fn(&str) -> Result<(), String>,
}

impl OutputType {
    /// Returns the type `T`; `None` if it has no schema, which no type that derives one lacks.
    pub(crate) fn of<T: DeserializeOwned + JsonSchema>() -> Option<Self> {
        Some(Self {
            schema: schema_of_type::<T>()?,
            parse: |json| match serde_json::from_str::<T>(json) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            },
        })
    }

    /// Tells the model what to answer with.
    pub(crate) fn instruction(&self) -> Fragment {
        hint(format!(
            "End with an answer that is JSON and nothing else, of this JSON Schema: {}",
            self.schema.get()
        ))
    }

    /// Returns what is wrong with an answer; `None` if it is of the type.
    pub(crate) fn find_fault(&self, answer: &str) -> Option<String> {
        let json = json_of_answer(answer);
        // In the parser's words: they say where, and do not repeat the text.
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(json) {
            return Some(error.to_string());
        }
        let raw = match Raw::parse(json) {
            Ok(raw) => raw,
            Err(error) => return Some(error.to_string()),
        };
        let faults =
            SchemaValidator::new(&self.schema).and_then(|schema| schema.check_arguments(&raw));
        match faults {
            Ok(faults) if !faults.is_empty() => {
                let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
                Some(faults.join("; "))
            }
            // A schema that cannot be checked does not make the answer wrong: the type decides.
            Ok(_) | Err(_) => (self.parse)(json).err(),
        }
    }
}

impl fmt::Debug for OutputType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputType({})", self.schema.get())
    }
}

/// A final answer that is not of the expected type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the final answer is not what was asked for: {reason}")]
pub struct OutputError {
    /// What was expected, and what was found.
    pub reason: String,
    /// The answer as received.
    pub raw: String,
}

/// The JSON of an answer: all of it, or what its only Markdown block holds.
fn json_of_answer(answer: &str) -> &str {
    strip_code_fence(answer).unwrap_or_else(|| answer.trim())
}

impl Turn {
    /// Reads the run's final value, or else the text of its last answer, as JSON of a type. An agent with
    /// [`with_output`](crate::Agent::with_output) ends with an answer of its type or with an error.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// use contexture_runs::{Agent, run_turn_with_text};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Weather {
    ///     /// In degrees Celsius.
    ///     temperature: f64,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let answers = ["It is warm.", r#"{"temperature":31.5}"#];
    /// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, answers));
    /// # let target = contexture_compile::Target::openai_chat("gpt-4o");
    /// let agent = Agent::new("guide", model.clone(), target).with_output::<Weather>();
    /// # let chat = contexture_engine::Engine::in_memory().conversation("trip").open().await?;
    /// let turn = run_turn_with_text(&chat, &agent, "How warm is it?").await?;
    /// assert_eq!(turn.output::<Weather>()?.temperature, 31.5);
    /// // "It is warm." was no JSON, so the model was asked again.
    /// assert_eq!(turn.usage.responses, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`OutputError`] if it is not of the type, such as of a turn that waits.
    pub fn output<T: DeserializeOwned>(&self) -> Result<T, OutputError> {
        let json = self.value.as_ref().map(Raw::get);
        let json = json.unwrap_or_else(|| json_of_answer(&self.text));
        serde_json::from_str(json).map_err(|error| OutputError {
            reason: format!("expected {}: {error}", std::any::type_name::<T>()),
            raw: json.to_owned(),
        })
    }
}
