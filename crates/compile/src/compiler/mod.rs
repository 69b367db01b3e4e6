//! The front for callers without a store: items or documents in, payloads or documents out.
//!
//! * `target` fills in a request from the catalogue ([`Target`]); `standalone` compiles lists of items ([`Compiler`]).
//! * `inline_manifests` puts manifests in the place of what does not fit, where no tree keeps the originals.
//! * `converter` writes documents of one format in another ([`Converter`]) and lists what the other cannot say.
//! * `item_verdicts` tells of each item of a path what became of it, from a finished report.
//!
//! Each call here is compiled for itself: there is no plan of a call before, so a history that no longer fits is cut anew each
//! time, and nothing is cleared for the sake of later calls.
//!
//! Not here: plans from call to call and stored compactions, which are the engine's; which format a document is of
//! (`contexture-sessions`).

mod converter;
mod inline_manifests;
mod item_verdicts;
mod standalone;
mod target;

pub use converter::{Converted, Converter};
pub use item_verdicts::{ItemVerdict, explain_items};
pub use standalone::Compiler;
pub use target::Target;
