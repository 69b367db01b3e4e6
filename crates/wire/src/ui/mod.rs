//! ui.

use contexture_ir::Transcript;

use crate::document::{Lifted, Lowered};
use crate::error::WireError;
use crate::format::Kind;

pub(crate) fn lift(_text: &str) -> Result<Lifted, WireError> {
    unimplemented!()
}

pub(crate) fn lower(_kind: Kind, _transcript: &Transcript) -> Lowered {
    unimplemented!()
}
