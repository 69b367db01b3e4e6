//! The calls that a state outside the tree remembers.
//!
//! Such a state is stored before the output of the call that changed it. A run that dies between the two makes the call
//! again when it is gone on with, and is given what it gave. Not here: storing it (`layer_store`).

use contexture_ir::Raw;
use serde::{Deserialize, Serialize};

/// A call that changed a state outside the tree, and what it gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SharedCall {
    pub(crate) call: String,
    pub(crate) result: Raw,
}

/// How a state outside the tree was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedAs {
    /// As which version; absent where there was none.
    pub(crate) version: Option<u64>,
    pub(crate) calls: Vec<SharedCall>,
}
