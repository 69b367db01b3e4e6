//! What a compile gives.

use contexture::Report;

/// What was compiled, in the form that was asked for.
#[derive(Debug)]
pub(crate) struct CompileOutput {
    /// A request, or the UI messages of one: JSON text.
    pub(crate) payload: String,
    /// What was sent, what was not, and why.
    pub(crate) report: Report,
}
