//! What is kept from one compile to the next to save work.
//!
//! A scratch decides nothing: compiling with an empty, a warm or another conversation's scratch gives
//! the same bytes.

use crate::blocks::Memo;
use crate::history::PreparedHistory;

/// What the memo may hold by default, in bytes of chunks and entries of counts.
const DEFAULT_BYTES: usize = 64 << 20;
/// How many histories are kept whole, newest first.
const FRONTS: usize = 4;

/// Saves work from one compile to the next: counts and lowered blocks by content, bounded, and the
/// newest few histories whole.
#[derive(Debug)]
pub struct Scratch {
    pub(crate) memo: Memo,
    histories: Vec<PreparedHistory>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::with_capacity(DEFAULT_BYTES)
    }
}

impl Scratch {
    /// An empty scratch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty scratch whose memo holds about so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            memo: Memo::new(bytes),
            histories: Vec::new(),
        }
    }

    /// Takes the first history out for which `fits` holds.
    pub(crate) fn take_prepared_history(
        &mut self,
        fits: impl FnMut(&PreparedHistory) -> bool,
    ) -> Option<PreparedHistory> {
        // Taken out, not borrowed: extending it consumes it, and a failed compile must not leave a
        // half-extended one behind.
        let at = self.histories.iter().position(fits)?;
        Some(self.histories.remove(at))
    }

    /// Keeps a history for the next compile.
    pub(crate) fn store_prepared_history(&mut self, front: PreparedHistory) {
        // A host serves several conversations with one scratch; the least recently used history goes.
        self.histories.truncate(FRONTS - 1);
        self.histories.insert(0, front);
    }
}
