//! The front for callers without a store: items or documents in, payloads or documents out.
//!
//! `standalone` fills a request from the catalogue and compiles lists of items; `inline_manifests` puts manifests in the place
//! of what does not fit; `converter` writes documents of one format in another; `item_verdicts` tells of each item what a
//! report says of it; `native_compaction` is the parameter by which a provider compacts by itself.
//!
//! Not here: plans from call to call and stored compactions, which are the engine's.

mod converter;
mod inline_manifests;
mod item_verdicts;
mod native_compaction;
mod standalone;

pub use converter::{Converted, Converter};
pub use item_verdicts::{ItemVerdict, explain_items};
pub use native_compaction::NativeCompaction;
pub use standalone::{Compiler, Target};
