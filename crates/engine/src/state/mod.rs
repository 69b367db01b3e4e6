//! TODO.

mod covers;
mod import_origin;
mod instructions;
mod list;
mod pins;

pub use covers::CoverEntry;
pub(crate) use covers::{Covers, encode_provenance, parse_provenance};
pub(crate) use import_origin::{IMPORT_KEY, ImportOrigin, node_key_base};
pub use instructions::Instructions;
pub(crate) use instructions::{
    INSTRUCTIONS_PREFIX, fragments_change, messages_change, require_data_fragments,
};
pub(crate) use list::{StateList, StateListEntry};
pub(crate) use pins::{Pin, Pins};
