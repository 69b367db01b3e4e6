//! What the program has a say in: which notes are shown, which changes are made, who hears of them.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::notes::Note;
use crate::context::HookContext;
use crate::function::FunctionError;
use crate::panics::caught;
use crate::recall::Recall;

/// A note that is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry<'a> {
    /// Its key.
    pub key: &'a str,
    /// The note.
    pub note: &'a Note,
}

/// A change of the notes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// A note is made or changed.
    Set {
        /// Its key.
        key: &'a str,
        /// What it is then.
        note: &'a Note,
        /// What it was.
        old: Option<&'a Note>,
    },
    /// A note is deleted.
    Delete {
        /// Its key.
        key: &'a str,
        /// What it was.
        old: &'a Note,
    },
    /// A note's time is over.
    Expire {
        /// Its key.
        key: &'a str,
        /// What it was.
        old: &'a Note,
    },
}

impl Change<'_> {
    /// As the news tell it.
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

type Select = dyn for<'a> Fn(Vec<Entry<'a>>, &Recall<'_>) -> Vec<Entry<'a>> + Send + Sync;
type Allow = dyn Fn(&Change<'_>, &HookContext) -> Result<(), String> + Send + Sync;
type See = dyn Fn(&Change<'_>, &HookContext) + Send + Sync;

/// The program's functions; what is absent lets everything be.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    select: Option<Arc<Select>>,
    allow: Option<Arc<Allow>>,
    see: Option<Arc<See>>,
}

impl Hooks {
    pub(super) fn select(
        &mut self,
        select: impl for<'a> Fn(Vec<Entry<'a>>, &Recall<'_>) -> Vec<Entry<'a>> + Send + Sync + 'static,
    ) {
        self.select = Some(Arc::new(select));
    }

    pub(super) fn allow(
        &mut self,
        allow: impl Fn(&Change<'_>, &HookContext) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.allow = Some(Arc::new(allow));
    }

    pub(super) fn see(&mut self, see: impl Fn(&Change<'_>, &HookContext) + Send + Sync + 'static) {
        self.see = Some(Arc::new(see));
    }

    pub(super) fn selected<'a>(&self, there: Vec<Entry<'a>>, call: &Recall<'_>) -> Vec<Entry<'a>> {
        match &self.select {
            Some(select) => select(there, call),
            None => there,
        }
    }

    pub(super) fn may(
        &self,
        change: &Change<'_>,
        context: &HookContext,
    ) -> Result<(), FunctionError> {
        match &self.allow {
            Some(allow) => allow(change, context).map_err(FunctionError::Refused),
            None => Ok(()),
        }
    }

    pub(super) fn saw(&self, change: &Change<'_>, context: &HookContext) {
        if let Some(see) = &self.see {
            let seen = caught(|| {
                see(change, context);
                Ok(())
            });
            if let Err(error) = seen {
                tracing::warn!(%error, "who watches a memory failed");
            }
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("select", &self.select.is_some())
            .field("allow", &self.allow.is_some())
            .field("see", &self.see.is_some())
            .finish()
    }
}
