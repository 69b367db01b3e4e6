//! Side usage: model calls by a run's layers and for its summaries, by source, stored with the run.
//!
//! Not here: answers of the run itself (`usage`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_engine::{Engine, SideUsageTracker};
use contexture_ir::Usage;
use contexture_store::{StateChange, StateKey};

use crate::execution::usage::model_call_usage;
use crate::limits::RunUsage;
use crate::record::RUN_STATE_VERSION;

/// Usage by source.
pub(crate) type SideUsageLog = BTreeMap<String, RunUsage>;

/// Tracks the side usage of one run.
#[derive(Debug)]
pub(crate) struct RunSideUsage {
    engine: Engine,
    key: StateKey,
    totals: Mutex<SideUsageTotals>,
}

#[derive(Debug)]
struct SideUsageTotals {
    current: SideUsageLog,
    /// Totals as they are stored now.
    stored: SideUsageLog,
    /// Totals as they will be stored if the append in progress succeeds.
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
        // A panic elsewhere cannot leave the map half changed, so a poisoned lock is still usable.
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
        // Snapshot: calls that finish during the append belong to the next one.
        open.pending = open.current.clone();
        let new = open.pending != open.stored;
        // Only strings and numbers, so this cannot fail.
        let books = serde_json::to_vec(&open.pending).unwrap_or_default();
        new.then(|| StateChange::put_entry(self.key.clone(), RUN_STATE_VERSION, books))
    }

    fn mark_stored(&self) {
        let mut open = self.lock_totals();
        open.stored = open.pending.clone();
    }
}
