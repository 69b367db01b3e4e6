//! Fragments as TOML 1.0. What it parses to is [`DataOptions::document`] without its nulls, which TOML
//! does not have.
//!
//! A TOML document is a table. Where the document is an array, because a name repeats, it stands under
//! the key `fragments`. Integers from 2^63 up are written in full; a reader limited to 64 signed bits
//! must refuse them, says the specification, and does not round.

use std::borrow::Cow;

use contexture_ir::Fragment;

use crate::document::{DataOptions, DataValue, Nulls};
use crate::prepare::prepare_fragments;
use crate::renderer::RenderError;
use crate::renderer::Renderer;

/// Renders fragments as TOML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TomlRenderer {
    options: DataOptions,
}

impl TomlRenderer {
    /// A renderer with these options.
    #[must_use]
    pub fn new(options: DataOptions) -> Self {
        Self { options }
    }
}

impl Renderer for TomlRenderer {
    fn name(&self) -> &str {
        "toml"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let prepared = prepare_fragments(fragments)?;
        let document = match DataValue::new(&prepared, &self.options, Nulls::Drop) {
            table @ DataValue::Object(_) => table,
            // A TOML document is a table at the top; a list needs a key to stand under.
            list => DataValue::Object(vec![(Cow::Borrowed("fragments"), list)]),
        };
        let mut text =
            toml::to_string(&document).map_err(|source| RenderError::format("toml", source))?;
        // The renderer's contract: no trailing newline.
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }
}
