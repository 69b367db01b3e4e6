//! openai_responses.

use contexture_ir::Transcript;

use crate::document::{Lifted, Lowered};
use crate::entry::Run;
use crate::error::WireError;
use crate::lower::{Chunk, Dialect, Envelope};

pub(crate) fn lift(_text: &str) -> Result<Lifted, WireError> {
    unimplemented!()
}

pub(crate) fn lower_run(_dialect: &Dialect, _run: &Run<'_, '_>) -> Chunk {
    unimplemented!()
}

pub(crate) fn envelope(_dialect: &Dialect, _request: &Transcript) -> Envelope {
    unimplemented!()
}

pub(crate) fn lower_response(_transcript: &Transcript) -> Lowered {
    unimplemented!()
}
