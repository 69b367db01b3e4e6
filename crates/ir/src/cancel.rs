//! Calling off long work from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls off the work that was given it: reading, redacting, compiling. Clones are the same; once cancelled it stays so.
///
/// Work looks at it before each message or item that it reads, counts or writes, and between its steps, and then ends with
/// [`Cancelled`], or the error of its crate that says the same. One message is read and counted to its end. Work never gives
/// another result than it would have given otherwise.
///
/// ```
/// use contexture_ir::Cancel;
///
/// let cancel = Cancel::new();
/// // Kept by another thread, say: one that notices that nobody waits any more.
/// let elsewhere = cancel.clone();
/// assert!(cancel.check().is_ok());
/// elsewhere.cancel();
/// assert!(cancel.check().is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// Work was called off: nobody waits for it any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("cancelled: nobody waits for it any more")]
pub struct Cancelled;

/// Cancels work when it is dropped; see [`Cancel::cancel_on_drop`].
#[derive(Debug)]
pub struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Cancel {
    /// Creates one that is not cancelled yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls the work off; it ends at its next look.
    pub fn cancel(&self) {
        // Relaxed suffices: no other memory is published with the flag, and work that sees it a little later is still
        // cancelled.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns a guard that cancels the work when it is dropped: of whoever waits for the result. After the work has ended
    /// that changes nothing.
    #[must_use]
    pub fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    /// Looks whether it was cancelled, to be left with `?`.
    ///
    /// # Errors
    /// [`Cancelled`] if it was.
    pub fn check(&self) -> Result<(), Cancelled> {
        match self.is_cancelled() {
            true => Err(Cancelled),
            false => Ok(()),
        }
    }

    /// Looks at the cancellation of work that may have none.
    ///
    /// # Errors
    /// [`Cancelled`] if it has one, and it was cancelled.
    pub fn check_optional(cancel: Option<&Self>) -> Result<(), Cancelled> {
        cancel.map_or(Ok(()), Self::check)
    }
}
