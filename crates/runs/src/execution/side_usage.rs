//! What a run spent on the side: what its layers asked of a model, and summaries. By who asked, kept with the run.
//!
//! Not here: answers of the run itself (`spending`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_engine::{Engine, SideUsageTracker};
use contexture_ir::Usage;
use contexture_store::{StateChange, StateKey};

use crate::execution::usage::model_call_usage;
use crate::limits::RunUsage;
use crate::record::RUN_STATE_VERSION;

/// What was spent, by who asked.
pub(crate) type SideUsageLog = BTreeMap<String, RunUsage>;

/// The books of one run.
#[derive(Debug)]
pub(crate) struct RunSideUsage {
    engine: Engine,
    key: StateKey,
    totals: Mutex<SideUsageTotals>,
}

#[derive(Debug)]
struct SideUsageTotals {
    current: SideUsageLog,
    /// As it is stored.
    stored: SideUsageLog,
    /// As it is about to be.
    pending: SideUsageLog,
}

impl RunSideUsage {
    pub(crate) fn new(engine: Engine, key: StateKey, stored: SideUsageLog) -> Self {
        let books = Mutex::new(SideUsageTotals {
            current: stored.clone(),
            stored: stored.clone(),
            pending: stored,
        });
        Self {
            engine,
            key,
            totals: books,
        }
    }

    pub(crate) fn totals_by_source(&self) -> SideUsageLog {
        self.lock_totals().current.clone()
    }

    fn lock_totals(&self) -> MutexGuard<'_, SideUsageTotals> {
        // A map is whole whoever panicked beside it.
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SideUsageTracker for RunSideUsage {
    fn record_call(&self, by: &str, model: &str, usage: &Usage) {
        let spent = model_call_usage(self.engine.catalogue(), model, usage);
        let mut open = self.lock_totals();
        open.current.entry(by.to_owned()).or_default().add(&spent);
    }

    fn pending_change(&self) -> Option<StateChange> {
        let mut open = self.lock_totals();
        open.pending = open.current.clone();
        let new = open.pending != open.stored;
        // Strings and numbers: nothing that could not be written.
        let books = serde_json::to_vec(&open.pending).unwrap_or_default();
        new.then(|| StateChange::put_entry(self.key.clone(), RUN_STATE_VERSION, books))
    }

    fn mark_stored(&self) {
        let mut open = self.lock_totals();
        open.stored = open.pending.clone();
    }
}
