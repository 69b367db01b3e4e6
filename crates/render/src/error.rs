//! Why fragments could not be rendered.

use contexture_ir::MAX_DEPTH;

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
        /// The format.
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
