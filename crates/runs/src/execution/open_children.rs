//! What the open children of a run have spent, so that those at work at the same time share what is left of its budget.
//!
//! A child alone gets what is left as a budget of its own. Two at once would each get all of it, so each step of a child is
//! also checked against the sum. Not here: usage of children that were joined, which is the parent's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_ir::RunId;

use crate::limits::{Exceeded, RunBudget, RunUsage};

/// A parent's budget with what it and its open children have spent.
#[derive(Debug)]
pub(crate) struct OpenChildren {
    parent: RunId,
    budget: RunBudget,
    spent: Mutex<Spent>,
    /// Where the parent is itself an open child.
    above: Option<Arc<Self>>,
}

#[derive(Debug, Default)]
struct Spent {
    own: RunUsage,
    children: BTreeMap<RunId, RunUsage>,
}

impl OpenChildren {
    pub(crate) fn new(parent: RunId, budget: RunBudget, above: Option<Arc<Self>>) -> Self {
        Self {
            parent,
            // Children run within the time of their parent, and each has what is left of it as its own limit.
            budget: RunBudget {
                time: None,
                ..budget
            },
            spent: Mutex::default(),
            above,
        }
    }

    /// Notes what the parent has spent, joined children included.
    pub(crate) fn note_own(&self, usage: RunUsage) {
        self.lock().own = usage;
    }

    /// Forgets a child whose usage is the parent's from now on.
    pub(crate) fn remove(&self, child: RunId) {
        self.lock().children.remove(&child);
    }

    /// Notes what a child has spent, and checks that another step of it may begin.
    ///
    /// # Errors
    /// [`Exceeded`] if the parent or a run above it has used up its budget, with all that runs below it.
    pub(crate) fn check_next(&self, child: RunId, usage: RunUsage) -> Result<(), Exceeded> {
        let total = {
            let mut spent = self.lock();
            spent.children.insert(child, usage);
            let mut total = spent.own;
            spent.children.values().for_each(|one| total.roll_up(one));
            total
        };
        self.budget.check_next(&total)?;
        self.check_above(total)
    }

    /// Notes in the runs above what this run has spent with all that runs below it, and checks that they allow another step.
    ///
    /// # Errors
    /// [`Exceeded`] if one of them has used up its budget.
    pub(crate) fn check_above(&self, usage: RunUsage) -> Result<(), Exceeded> {
        match &self.above {
            Some(above) => above.check_next(self.parent, usage),
            None => Ok(()),
        }
    }

    /// Returns what the parent shares with its children; `None` for a root run.
    pub(crate) fn above(&self) -> Option<Arc<Self>> {
        self.above.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        // Each change is one assignment, so a panic in between leaves nothing half done.
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
