//! Functions of layers, which models call as tools and programs through handles.

use contexture_ir::{FunctionTool, Raw, ToolDefinition};
use contexture_tools::SchemaValidator;

use crate::contract::error::LayerError;
use crate::contract::layer_id::LayerId;

/// A function of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSpec {
    /// Its name within the layer.
    pub name: &'static str,
    /// The name by which models call it: 1 to 64 bytes of letters, digits, `-` and `_`. Never change it: it is stored
    /// in histories.
    pub tool: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input: Raw,
    /// JSON Schema of its result; absent means anything.
    pub output: Option<Raw>,
    /// What to do with a call that a crash may have interrupted. Runs do not read it yet: such a function is called
    /// again.
    pub rerun: Rerun,
    /// Whether models are offered it. Default yes.
    pub offered_to: OfferedTo,
}

/// Whether models are offered a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfferedTo {
    /// Models are offered the function.
    #[default]
    Model,
    /// Only programs may call it.
    Host,
}

/// What to do with a call that was started and whose result is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rerun {
    /// Run it again: repeating the call has no further effect.
    #[default]
    Repeat,
    /// Ask a person.
    Ask,
    /// Tell the model that it is unknown whether it ran.
    Unknown,
}

impl FunctionSpec {
    /// Creates a function of a layer, with a tool named `<layer>_<name>`.
    #[must_use]
    pub fn new(layer: &LayerId, name: &'static str, description: &str, input: Raw) -> Self {
        Self {
            name,
            tool: format!("{layer}_{name}"),
            description: description.to_owned(),
            input,
            output: None,
            rerun: Rerun::Repeat,
            offered_to: OfferedTo::Model,
        }
    }

    /// Sets another tool name.
    #[must_use]
    pub fn with_tool_name(mut self, tool: impl Into<String>) -> Self {
        self.tool = tool.into();
        self
    }

    /// Returns the definition that models are offered.
    #[must_use]
    pub(crate) fn tool_definition(&self) -> ToolDefinition {
        ToolDefinition::Function(FunctionTool {
            name: self.tool.clone(),
            description: Some(self.description.clone()),
            parameters: Some(self.input.clone()),
            ..FunctionTool::default()
        })
    }

    /// Returns what is wrong with the name or a schema, if anything is.
    pub(crate) fn validation_error(&self) -> Option<String> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        let named = (1..=64).contains(&self.tool.len()) && self.tool.bytes().all(allowed);
        if !named {
            return Some("its tool name must be 1 to 64 bytes of letters, digits, - and _".into());
        }
        let schemas = [Some(&self.input), self.output.as_ref()];
        let mut flaws = schemas
            .into_iter()
            .flatten()
            .filter_map(|schema| SchemaValidator::new(schema).err());
        flaws.next().map(|flaw| flaw.to_string())
    }
}

/// Why a function gave no result. The texts may be shown to the model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// There is no such function.
    #[error("{layer} has no function {name:?}")]
    Unknown {
        /// Name of the layer.
        layer: LayerId,
        /// Name of the function.
        name: String,
    },
    /// The arguments do not match their schema.
    #[error("the arguments do not fit: {reason}")]
    Arguments {
        /// What is wrong, and where.
        reason: String,
    },
    /// The layer refused the call.
    #[error("{0}")]
    Refused(String),
    /// The result does not match the function's own schema: a bug of the layer.
    #[error("the result does not fit its schema: {reason}")]
    Result {
        /// What is wrong, and where.
        reason: String,
    },
    /// The layer failed.
    #[error(transparent)]
    Layer(#[from] LayerError),
}
