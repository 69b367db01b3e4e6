//! Fragments as XML: the default, and the form models are best acquainted with.
//!
//! A fragment is an element of its name; an object's key is an element; an item of an array is an
//! element of the singular of the array's name (`steps` → `step`). Two spaces a level; a text of
//! several lines stands on lines of its own, indented.
//!
//! ```text
//! <workflow>
//!   <task>Refund</task>
//!   <steps>
//!     <step>Look up the order</step>
//!     <step>Ask for the reason</step>
//!   </steps>
//! </workflow>
//! ```
//!
//! # The normal form
//!
//! [`XmlRenderer::normal_form`] gives the tree of elements that the text spells out. It differs from
//! the fragments in this, and in nothing else:
//!
//! * nulls, and arrays, objects and fragments that hold nothing, are left out;
//! * a top-level fragment over an array of one value is the fragment of that value; over one
//!   fragment, it holds that fragment's values directly, each under that fragment's name;
//! * a fragment as the value of a key stands under its own name, without the key;
//! * an array inside an array whose leaves are all texts is one text, joined by commas;
//! * numbers are printed as ECMAScript prints them.
//!
//! The leaves stand in the order of the data. In the text, `& < > " '` are entities, names that are
//! not XML names are made so (`name`), and characters that XML 1.0 has no form for are replaced
//! (`escape`).

mod escape;
mod name;
mod text;
mod tree;
mod walk;

pub use tree::XmlElement;

use contexture_ir::Fragment;

use crate::prepare::prepare_fragments;
use crate::renderer::RenderError;
use crate::renderer::{Grouping, Renderer};
use text::TextSink;
use tree::TreeSink;
use walk::{Sink, Walk};

/// How XML is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XmlOptions {
    /// Whether fragments of one name are gathered under its plural.
    pub group_fragments: Grouping,
}

/// Renders fragments as XML. See the crate documentation for an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XmlRenderer {
    options: XmlOptions,
}

impl XmlRenderer {
    /// A renderer with these options.
    #[must_use]
    pub fn new(options: XmlOptions) -> Self {
        Self { options }
    }

    /// The elements that [`Renderer::render`] writes, with names and texts before any escaping.
    pub fn normal_form(&self, fragments: &[Fragment]) -> Result<Vec<XmlElement>, RenderError> {
        let mut sink = TreeSink::default();
        self.walk_fragments(fragments, &mut sink)?;
        Ok(sink.into_elements())
    }

    fn walk_fragments(
        &self,
        fragments: &[Fragment],
        sink: &mut impl Sink,
    ) -> Result<(), RenderError> {
        Walk::new(sink, self.options.group_fragments).emit_list(&prepare_fragments(fragments)?);
        Ok(())
    }
}

impl Renderer for XmlRenderer {
    fn name(&self) -> &str {
        "xml"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let mut sink = TextSink::default();
        self.walk_fragments(fragments, &mut sink)?;
        Ok(sink.into_text())
    }
}
