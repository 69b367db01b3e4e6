//! Fragments as JSON. What it parses to is [`DataOptions::document`]: nothing is lost, nulls included.

use contexture_ir::Fragment;

use crate::document::{DataOptions, DataValue, Nulls};
use crate::prepare::prepare_fragments;
use crate::renderer::RenderError;
use crate::renderer::Renderer;

/// How JSON is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonOptions {
    /// What the document looks like.
    pub data: DataOptions,
    /// Two spaces a level and a line for each value, for people. Costs about a third more tokens.
    pub pretty: bool,
}

/// Renders fragments as JSON, on one line unless told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonRenderer {
    options: JsonOptions,
}

impl JsonRenderer {
    /// A renderer with these options.
    #[must_use]
    pub fn new(options: JsonOptions) -> Self {
        Self { options }
    }
}

impl Renderer for JsonRenderer {
    fn name(&self) -> &str {
        "json"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let prepared = prepare_fragments(fragments)?;
        let document = DataValue::new(&prepared, &self.options.data, Nulls::Keep);
        let written = if self.options.pretty {
            serde_json::to_string_pretty(&document)
        } else {
            serde_json::to_string(&document)
        };
        written.map_err(|source| RenderError::format("json", source))
    }
}
