//! What is kept from one compile to the next to save work.
//!
//! A scratch decides nothing: compiling with an empty, a warm or another conversation's scratch gives
//! the same bytes.

use std::borrow::Cow;

use contexture_ir::ToolDefinition;
use contexture_wire::{Format, Loss, ToolRefusal, repair_tools};

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
    tools: Option<MendedTools>,
}

/// What repair made of the tools of the last request.
#[derive(Debug)]
struct MendedTools {
    target: Format,
    limit: Option<usize>,
    given: Vec<ToolDefinition>,
    mended: Option<ChangedTools>,
}

/// Tools that had to be changed, and what was lost of them.
pub(crate) type ChangedTools = (Vec<ToolDefinition>, Vec<Loss>);

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
            tools: None,
        }
    }

    /// The tools as a target takes them; `None` if it takes them as they are.
    ///
    /// # Errors
    /// They cannot be offered together.
    pub(crate) fn repair_tools(
        &mut self,
        target: Format,
        tools: &[ToolDefinition],
        limit: Option<usize>,
    ) -> Result<Option<ChangedTools>, ToolRefusal> {
        // Reading all schemas anew would cost a warm compile as much as everything else.
        if let Some(known) = &self.tools
            && (known.target, known.limit) == (target, limit)
            && known.given == tools
        {
            return Ok(known.mended.clone());
        }
        let repaired = repair_tools(target, tools, limit)?;
        let mended = match repaired.tools {
            Cow::Borrowed(_) => None,
            Cow::Owned(changed) => Some((changed, repaired.losses)),
        };
        self.tools = Some(MendedTools {
            target,
            limit,
            given: tools.to_vec(),
            mended: mended.clone(),
        });
        Ok(mended)
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
