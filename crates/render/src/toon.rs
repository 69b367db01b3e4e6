//! Fragments as TOON, the Token-Oriented Object Notation. What it parses to is
//! [`DataOptions::document`] without its nulls; floats without a fraction are read back as integers,
//! and `-0` as `0`, as the specification says.

use contexture_ir::Fragment;
use toon_format::{EncodeOptions, encode};

use crate::document::{DataOptions, DataValue, Nulls};
use crate::prepare::prepare_fragments;
use crate::renderer::RenderError;
use crate::renderer::Renderer;

/// The version of the TOON specification that is written. The notation is a working draft and moves.
pub const TOON_SPEC: &str = "4.4";

/// Renders fragments as TOON, in the version [`TOON_SPEC`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToonRenderer {
    options: DataOptions,
}

impl ToonRenderer {
    /// A renderer with these options.
    #[must_use]
    pub fn new(options: DataOptions) -> Self {
        Self { options }
    }
}

impl Renderer for ToonRenderer {
    fn name(&self) -> &str {
        "toon"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let prepared = prepare_fragments(fragments)?;
        let document = DataValue::new(&prepared, &self.options, Nulls::Drop);
        encode(&document, &EncodeOptions::default())
            .map_err(|source| RenderError::format("toon", source))
    }
}
