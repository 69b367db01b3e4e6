//! What is kept from one compile to the next to save work.
//!
//! A scratch decides nothing: compiling with an empty, a warm or another conversation's scratch gives
//! the same bytes.

use std::borrow::Cow;

use contexture_ir::ToolDefinition;
use contexture_wire::{Format, Loss, ToolRefusal, repair_tools};

use crate::blocks::Memo;
use crate::growing::PrefixHashes;
use crate::history::{PreparedHistory, TrimmedItems};
use crate::rewrite::PendingPreviews;
use crate::standing_rules::KnownRules;

/// What the memo may hold by default, in bytes of chunks and entries of counts.
const DEFAULT_BYTES: usize = 64 << 20;
/// How many histories are kept whole, newest first.
const FRONTS: usize = 4;

/// Saves work from one compile to the next: counts and lowered blocks by content, bounded, and the
/// newest few histories whole.
#[derive(Debug)]
pub struct Scratch {
    pub(crate) memo: Memo,
    histories: Vec<KnownHistory>,
    tools: Option<MendedTools>,
    /// How many items the last compile looked at.
    pub(crate) items_read: usize,
}

/// A history, with what compiles of it have found out and the next one need not find out again.
#[derive(Debug)]
pub(crate) struct KnownHistory {
    pub(crate) prepared: PreparedHistory,
    pub(crate) memo: HistoryMemo,
}

/// What follows from a history and the plan, kept for the next compile. It decides nothing: each of its values is found anew
/// where it is not of the same cut and the same payload.
#[derive(Debug, Default)]
pub(crate) struct HistoryMemo {
    /// Over the beginnings of what is sent.
    pub(crate) sent: PrefixHashes,
    /// Over the beginnings of the outline.
    pub(crate) outline: PrefixHashes,
    /// What the last cut left out.
    pub(crate) trimmed: Option<TrimmedItems>,
    /// What previews would save.
    pub(crate) previews: PendingPreviews,
    /// The standing rules that were shown.
    pub(crate) rules: Option<KnownRules>,
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
            items_read: 0,
        }
    }

    /// How many items of its path the last compile with it looked at: all where it knew nothing of the path, only the newest
    /// where the path has grown since the compile before.
    #[must_use]
    pub const fn items_read(&self) -> usize {
        self.items_read
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
    pub(crate) fn take_history(
        &mut self,
        fits: impl Fn(&PreparedHistory) -> bool,
    ) -> Option<KnownHistory> {
        // Taken out, not borrowed: extending it consumes it, and a failed compile must not leave a
        // half-extended one behind.
        let at = self.histories.iter().position(|one| fits(&one.prepared))?;
        Some(self.histories.remove(at))
    }

    /// Keeps a history for the next compile.
    pub(crate) fn store_history(&mut self, history: KnownHistory) {
        // A host serves several conversations with one scratch; the least recently used history goes.
        self.histories.truncate(FRONTS - 1);
        self.histories.insert(0, history);
    }
}
