//! Where calls of models are counted that are made on the side of a run: by its layers, and for summaries.
//!
//! Not here: what they cost, and the answers of the run itself (`contexture-runs`).

use std::fmt;

use contexture_ir::Usage;
use contexture_store::StateChange;

/// Counts calls of models that are made on the side of a run. What it has counted is stored with what is appended next.
pub trait SideUsageTracker: fmt::Debug + Send + Sync {
    /// A model has answered. `by` is the layer that asked, or [`COMPACTION`].
    fn record_call(&self, by: &str, model: &str, usage: &Usage);

    /// What is to be stored; nothing where all is stored.
    fn pending_change(&self) -> Option<StateChange>;

    /// What [`pending_change`](Self::pending_change) gave last is stored.
    fn mark_stored(&self);
}

/// Who asks for summaries.
pub const COMPACTION: &str = "compaction";
