//! The front for callers without a store: items or documents in, payloads or documents out.
//!
//! `standalone` fills a request from the catalogue and compiles lists of items; `inline_manifests` puts manifests in the place
//! of what does not fit; `converter` writes documents of one format in another; `item_verdicts` tells of each item what a
//! report says of it; `native_compaction` is the parameter by which a provider compacts by itself.
//!
//! Not here: plans from call to call and stored compactions, which are the engine's.

pub(crate) mod converter;
pub(crate) mod inline_manifests;
pub(crate) mod item_verdicts;
pub(crate) mod native_compaction;
pub(crate) mod standalone;
