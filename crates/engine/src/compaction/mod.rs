//! Compaction: an item stands for a part of the history, reversibly.
//!
//! Terms: a *span* is the part of a path that is replaced; a *summary* is the text of a [`Compactor`], usually a model; a
//! *manifest* is the list of facts that is made without a model and goes beside every summary; a *cover* is the state
//! entry that says which compaction stands for which nodes on this branch.
//!
//! Nothing is deleted. Removing the cover, forking inside the span or rewinding before the compaction brings the originals
//! back. A span never separates a call from its output and never overlaps an earlier cover in part.
//!
//! A compactor that fails costs nothing but its summary: the manifest alone stands for the span, and the reason is told.
//!
//! A compaction gains at least 30 % of what it covers, is never repeated before something was added, and leaves room for some
//! steps; no item of n is summarised more than log₂(n) times. The laws are `contexture_compile::compaction`'s, which also
//! hold for callers who keep the history themselves. Where nothing can be gained, the report and an event say why.
//! * `compact`: choose a span, summarise it, store the result, take it back;
//! * `auto_compact`, `strategy`, `trigger`, `reported_usage`: compact before a call that has grown too large;
//! * `compactor`, `model`, `summarise`: what writes summaries, and when it is asked; `background`: before a compaction is due;
//! * `branch_snapshot`, `span`: the branch as compaction sees it, and where it can be cut;
//! * `notice`: what a model is told before a cut, and how it asks for one;
//! * `native`: compactions that a provider made.
//!
//! The space that a compaction frees is counted with the tokens of the target's model; what the provider reported for the
//! last call scales these counts, as only the provider knows how it counts.
//! Not here: the texts of manifests and summaries (`contexture-compile`), models over HTTP.

mod auto_compact;
mod background;
mod branch_snapshot;
mod compact;
mod compactor;
mod model;
mod native;
mod notice;
mod reported_usage;
mod span;
mod strategy;
mod summarise;
mod trigger;

pub use auto_compact::{AnsweredRequest, PrepareOptions, Prepared};
pub(crate) use auto_compact::{prepare_call, summarise_behind};
pub use background::{BackgroundSummary, SummaryModel, SummaryPayer};
pub use compact::{CompactOptions, CompactSpan, Compacted, CompactionDraft};
pub(crate) use compact::{
    compact_branch, draft_compaction, list_compactions, store_compaction, undo_compaction,
};
pub use compactor::{CompactRequest, Compactor, CompactorError, GivenSummary, ManifestOnly};
pub use model::ModelCompactor;
pub(crate) use native::adopt_compactions;
pub use notice::NoticePolicy;
pub use strategy::Strategy;
pub use trigger::{ReportedUsage, Trigger, UsagePreference};
