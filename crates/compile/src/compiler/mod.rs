//! The front for callers without a store: items or documents in, payloads or documents out.
//!
//! * `target` fills in a request from the catalogue ([`Target`]); `standalone` compiles lists of items ([`Compiler`]).
//! * `inline_manifests` puts manifests in the place of what does not fit, where no tree keeps the originals.
//! * `converter` writes documents of one format in another ([`Converter`]) and lists what the other cannot say.
//! * `item_verdicts` tells of each item of a path what became of it, from a finished report.
//!
//! * `document_plan` is what a caller carries from one call to the next ([`DocumentPlan`]). Without it each call is compiled for
//!   itself: a history that no longer fits is cut anew each time, and nothing is cleared for the sake of later calls.
//!
//! Not here: stored plans and compactions, which are the engine's; which format a document is of
//! (`contexture-sessions`).

mod converter;
mod document_plan;
mod inline_manifests;
mod item_verdicts;
mod standalone;
mod target;

pub use converter::{Converted, Converter};
pub use document_plan::DocumentPlan;
pub use item_verdicts::{ItemVerdict, explain_items};
pub use standalone::Compiler;
pub use target::Target;
