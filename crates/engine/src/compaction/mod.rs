//! TODO.

mod auto_compact;
mod branch_snapshot;
mod compact;
mod compactor;
mod model;
mod native;
mod reported_usage;
mod span;
mod trigger;

pub(crate) use auto_compact::prepare_call;
pub use auto_compact::{PrepareOptions, Prepared};
pub use compact::{CompactOptions, CompactSpan, Compacted, CompactionDraft};
pub(crate) use compact::{
    compact_branch, draft_compaction, list_compactions, store_compaction, undo_compaction,
};
pub use compactor::{CompactRequest, Compactor, CompactorError, GivenSummary, ManifestOnly};
pub use model::ModelCompactor;
pub(crate) use native::adopt_compactions;
pub use trigger::{ReportedUsage, Trigger, UsagePreference};
