//! Tools offered to a model, and which of them it may use.

use crate::raw::{Extra, Raw};

/// A tool offered to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolDefinition {
    /// A function the host runs.
    Function(FunctionTool),
    /// A provider's own tool (web search, code execution, …), verbatim.
    Provider(ProviderTool),
}

/// A function the host runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionTool {
    /// The name by which the model calls it.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// JSON Schema of its arguments, verbatim; absent means an object of anything.
    pub parameters: Option<Raw>,
    /// Whether arguments must follow the schema strictly; absent means the provider's default.
    pub strict: Option<bool>,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// A provider's own tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderTool {
    /// The format whose tool it is: `openai-responses`, `anthropic`, `gemini`, ….
    pub format: String,
    /// Its `type` or name in that format.
    pub kind: String,
    /// The whole object.
    pub raw: Raw,
}

impl ToolDefinition {
    /// The name by which the model calls it, or the provider's word for it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Function(tool) => &tool.name,
            Self::Provider(tool) => &tool.kind,
        }
    }
}

/// Which tools the model may or must use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model may call no tool.
    None,
    /// The model must call some tool.
    Required,
    /// The model must call this function.
    Function {
        /// Name of the function.
        name: String,
    },
    /// Something only one format can say, verbatim.
    Other {
        /// The format it belongs to.
        format: String,
        /// The whole value.
        raw: Raw,
    },
}
