//! What a run spent on the side: what its layers asked of a model, and summaries. By who asked, kept with the run.
//!
//! Not here: answers of the run itself (`spending`).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_engine::{Engine, Ledger};
use contexture_ir::Usage;
use contexture_store::{StateChange, StateKey};

use super::entry::VERSION;
use super::spending::price;
use crate::usage::Spent;

/// What was spent, by who asked.
pub(crate) type Books = BTreeMap<String, Spent>;

/// The books of one run.
#[derive(Debug)]
pub(crate) struct Beside {
    engine: Engine,
    key: StateKey,
    books: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    books: Books,
    /// As it is stored.
    stored: Books,
    /// As it is about to be.
    given: Books,
}

impl Beside {
    pub(crate) fn new(engine: Engine, key: StateKey, stored: Books) -> Self {
        let books = Mutex::new(Open {
            books: stored.clone(),
            stored: stored.clone(),
            given: stored,
        });
        Self { engine, key, books }
    }

    pub(crate) fn books(&self) -> Books {
        self.open().books.clone()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // A map is whole whoever panicked beside it.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for Beside {
    fn count(&self, by: &str, model: &str, usage: &Usage) {
        let spent = price(self.engine.catalogue(), model, usage);
        let mut open = self.open();
        open.books.entry(by.to_owned()).or_default().add(&spent);
    }

    fn change(&self) -> Option<StateChange> {
        let mut open = self.open();
        open.given = open.books.clone();
        let new = open.given != open.stored;
        // Strings and numbers: nothing that could not be written.
        let books = serde_json::to_vec(&open.given).unwrap_or_default();
        new.then(|| StateChange::put(self.key.clone(), VERSION, books))
    }

    fn kept(&self) {
        let mut open = self.open();
        open.stored = open.given.clone();
    }
}
