//! The trait that turns fragments into text, and the option all renderers share.

use std::fmt;

use contexture_ir::{Fragment, MAX_DEPTH};

/// Turns fragments into the text a model reads. Implement it for a format of your own.
///
/// An implementation must be a pure function of the list, skip fragments that carry messages
/// ([`Fragment::is_message`]), and let no name, key or value break out of the place it stands in.
/// The text has no trailing newline; no fragments give an empty text or an empty document.
pub trait Renderer: fmt::Debug + Send + Sync {
    /// The format's name, in lower case: `xml`.
    fn name(&self) -> &str;

    /// The text of these fragments, in this order.
    ///
    /// Fails on a tree deeper than [`MAX_DEPTH`](contexture_ir::MAX_DEPTH), and where the format
    /// cannot hold the data.
    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError>;
}

/// Whether fragments of one name are gathered under the plural of it, at the place of the first.
///
/// `<hint>a</hint><role>r</role><hint>b</hint>` becomes
/// `<hints><hint>a</hint><hint>b</hint></hints><roles><role>r</role></roles>`; a lone fragment is
/// gathered too. Arrays that are values in an object are never grouped: their key names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Each fragment where it stands.
    #[default]
    Off,
    /// Among the children of a fragment.
    Children,
    /// Among the children of a fragment and in the list itself.
    Everywhere,
}

impl Grouping {
    pub(crate) fn groups_children(self) -> bool {
        self != Self::Off
    }

    pub(crate) fn groups_top_level(self) -> bool {
        self == Self::Everywhere
    }
}

/// Fragments that could not be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The tree has too many levels.
    #[error("fragment `{name}` is nested more than {MAX_DEPTH} levels deep; flatten it")]
    TooDeep {
        /// The top-level fragment that holds it.
        name: String,
    },
    /// The format cannot hold the data, or a renderer of the application's own failed.
    #[error("cannot render the fragments as {format}")]
    Format {
        /// Name of the format.
        format: String,
        /// The writer's own account.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl RenderError {
    /// The error of a writer for `format`; what a renderer of your own returns.
    pub fn format(
        format: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Format {
            format: format.into(),
            source: source.into(),
        }
    }
}
