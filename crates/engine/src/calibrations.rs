//! What a handle knows of how models' tokens are counted.
//!
//! Not here: where it comes from, and when it is applied (`calibrating`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_compile::Calibration;

/// What a handle knows of models, by key.
#[derive(Debug, Default)]
pub(crate) struct Calibrations(Mutex<BTreeMap<String, Known>>);

/// What is known of one model, and as which version it is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) calibration: Calibration,
    pub(crate) version: Option<u64>,
}

impl Calibrations {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Known>> {
        // Each change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
