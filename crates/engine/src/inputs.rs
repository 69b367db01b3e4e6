//! What goes into a call beside the tree.

use contexture_catalogue::Encoding;
use contexture_compile::{CompileRequest, Contribution};

/// What a call was compiled from beside the tree.
#[derive(Debug)]
pub(crate) struct CallInputs {
    pub(crate) request: CompileRequest,
    pub(crate) contributions: Vec<Contribution>,
    pub(crate) encoding: Encoding,
}
