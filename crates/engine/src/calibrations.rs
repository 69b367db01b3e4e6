//! What a handle knows of how models' tokens are counted.
//!
//! Not here: where it comes from, and when it is applied (`calibrating`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_compile::Calibration;

/// What a handle knows of models, by key.
#[derive(Debug, Default)]
pub(crate) struct CalibrationCache(Mutex<BTreeMap<String, CachedCalibration>>);

/// What is known of one model, and as which version it is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedCalibration {
    pub(crate) calibration: Calibration,
    pub(crate) version: Option<u64>,
}

impl CalibrationCache {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CachedCalibration>> {
        // Each change is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
