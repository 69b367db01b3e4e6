//! Documents read and written, as values.

use contexture_ir::Transcript;

use crate::format::DocumentKind;
use crate::loss::Loss;

/// A document read.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifted {
    /// What it was.
    pub kind: DocumentKind,
    /// What it says.
    pub transcript: Transcript,
    /// What could not be kept.
    pub losses: Vec<Loss>,
}

/// A document written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The JSON text.
    pub json: String,
    /// What could not be said.
    pub losses: Vec<Loss>,
}
