//! Calling a compile off from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::refusal::Refusal;

/// Calls compiles off that were given it. Clones are the same; once cancelled it stays so.
///
/// A compile looks at it between its passes, and ends with [`Refusal::Cancelled`]. What its scratch learned
/// until then stays good.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Not cancelled yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// To be asked between passes.
    pub(crate) fn ensure_not_cancelled(cancel: Option<&Self>) -> Result<(), Refusal> {
        match cancel {
            Some(cancel) if cancel.is_cancelled() => Err(Refusal::Cancelled),
            _ => Ok(()),
        }
    }
}
