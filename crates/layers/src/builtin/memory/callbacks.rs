//! Callbacks of the program: which notes are shown, which changes are allowed, who is notified.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::builtin::memory::notes::Note;
use crate::contract::{FunctionError, HookContext, RecallInput, catch_panic};

/// A stored note with its key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoteEntry<'a> {
    /// Key of the note.
    pub key: &'a str,
    /// The note itself, as stored.
    pub note: &'a Note,
}

/// A change of the notes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoteChange<'a> {
    /// A note is created or changed.
    Set {
        /// Key of the note.
        key: &'a str,
        /// The new note.
        note: &'a Note,
        /// The previous note, if there was one.
        old: Option<&'a Note>,
    },
    /// A note is deleted.
    Delete {
        /// Key of the note.
        key: &'a str,
        /// The deleted note.
        old: &'a Note,
    },
    /// A note has expired.
    Expire {
        /// Key of the note.
        key: &'a str,
        /// The expired note.
        old: &'a Note,
    },
}

impl NoteChange<'_> {
    /// Formats the change as the data of an event.
    pub(super) fn to_json(self) -> Value {
        match self {
            Self::Set { key, note, old } => {
                let old = old.map(|old| old.value.as_str());
                json!({"type": "set", "key": key, "value": note.value, "old": old})
            }
            Self::Delete { key, old } => json!({"type": "delete", "key": key, "old": old.value}),
            Self::Expire { key, old } => json!({"type": "expire", "key": key, "old": old.value}),
        }
    }
}

type NoteSelector =
    dyn for<'a> Fn(Vec<NoteEntry<'a>>, &RecallInput<'_>) -> Vec<NoteEntry<'a>> + Send + Sync;
type ChangeFilter = dyn Fn(&NoteChange<'_>, &HookContext) -> Result<(), String> + Send + Sync;
type ChangeWatcher = dyn Fn(&NoteChange<'_>, &HookContext) + Send + Sync;

/// The program's callbacks; an absent one restricts nothing.
#[derive(Clone, Default)]
pub(super) struct MemoryCallbacks {
    selector: Option<Arc<NoteSelector>>,
    filter: Option<Arc<ChangeFilter>>,
    watcher: Option<Arc<ChangeWatcher>>,
}

impl MemoryCallbacks {
    pub(super) fn set_selector(
        &mut self,
        select: impl for<'a> Fn(Vec<NoteEntry<'a>>, &RecallInput<'_>) -> Vec<NoteEntry<'a>>
        + Send
        + Sync
        + 'static,
    ) {
        self.selector = Some(Arc::new(select));
    }

    pub(super) fn set_filter(
        &mut self,
        allow: impl Fn(&NoteChange<'_>, &HookContext) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.filter = Some(Arc::new(allow));
    }

    pub(super) fn set_watcher(
        &mut self,
        see: impl Fn(&NoteChange<'_>, &HookContext) + Send + Sync + 'static,
    ) {
        self.watcher = Some(Arc::new(see));
    }

    pub(super) fn select_notes<'a>(
        &self,
        there: Vec<NoteEntry<'a>>,
        call: &RecallInput<'_>,
    ) -> Vec<NoteEntry<'a>> {
        match &self.selector {
            Some(select) => select(there, call),
            None => there,
        }
    }

    pub(super) fn check_change(
        &self,
        change: &NoteChange<'_>,
        context: &HookContext,
    ) -> Result<(), FunctionError> {
        match &self.filter {
            Some(allow) => allow(change, context).map_err(FunctionError::Refused),
            None => Ok(()),
        }
    }

    pub(super) fn notify_watcher(&self, change: &NoteChange<'_>, context: &HookContext) {
        if let Some(see) = &self.watcher {
            // An observer must not be able to fail the change that it is notified of.
            let seen = catch_panic(|| {
                see(change, context);
                Ok(())
            });
            if let Err(error) = seen {
                tracing::warn!(%error, "who watches a memory failed");
            }
        }
    }
}

impl fmt::Debug for MemoryCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("select", &self.selector.is_some())
            .field("allow", &self.filter.is_some())
            .field("see", &self.watcher.is_some())
            .finish()
    }
}
