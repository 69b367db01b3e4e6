//! Compaction: a part of the history is stood for by an item, reversibly.
//!
//! A [`Compactor`] makes the text, the tree takes it as a compaction item, and the state entry `@cover` says
//! what it stands for on this branch. Nothing is deleted: taking the entry away, forking inside the span or
//! rewinding before the compaction brings the originals back.
//!
//! Not here: what a manifest or a summary says (`contexture-compile`), models over HTTP.

mod breaker;
mod compact;
mod compactor;
mod cover;
mod model;
mod native;
mod prepare;
mod provenance;
mod reported;
mod snapshot;
mod span;
mod trigger;

pub use breaker::CircuitBreakerPolicy;
pub(crate) use breaker::CircuitBreakers;
pub use compact::{CompactOptions, CompactSpan, Compacted, CompactionDraft};
pub use compactor::{CompactRequest, Compactor, CompactorError, GivenSummary, ManifestOnly};
pub use cover::CoverEntry;
pub(crate) use cover::Covers;
pub use model::ModelCompactor;
pub use prepare::{PrepareOptions, Prepared};
pub use trigger::{ReportedUsage, Trigger, UsagePreference};
