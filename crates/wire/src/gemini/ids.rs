//! Ids of calls: the provider may leave them out, items may not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How the ids begin that we give to calls without one.
const SYNTHETIC: &str = "gemini-call-";

/// Whether the id is one of ours, which the provider never saw.
pub(super) fn is_synthetic(id: &str) -> bool {
    id.starts_with(SYNTHETIC)
}

/// Gives ids to calls and finds the call a response answers.
#[derive(Default)]
pub(super) struct CallIdTracker {
    /// What stands between the prefix and the number: a response's id and a hyphen.
    scope: String,
    next_number: usize,
    /// Ids of calls by name, oldest first.
    open: BTreeMap<String, VecDeque<String>>,
    answered: BTreeSet<String>,
}

impl CallIdTracker {
    /// Ids within one response, distinct from those of others.
    pub(super) fn for_response(id: Option<&str>) -> Self {
        // Ids are numbered from the start of each response; the response's id keeps those of two
        // responses apart.
        let scope = id.map(|id| format!("{id}-")).unwrap_or_default();
        Self {
            scope,
            ..Self::default()
        }
    }

    /// The id of a call.
    pub(super) fn assign_call_id(&mut self, name: &str, id: Option<String>) -> String {
        let id = id
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| self.make_id());
        // An id that was answered earlier may be used again by a newer call, which is open.
        self.answered.remove(&id);
        self.open
            .entry(name.to_owned())
            .or_default()
            .push_back(id.clone());
        id
    }

    /// The id of the call that a response answers: its own, else the oldest open call of that name.
    pub(super) fn answered_call_id(&mut self, name: &str, id: Option<&str>) -> String {
        if let Some(id) = id {
            self.answered.insert(id.to_owned());
            return id.to_owned();
        }
        if let Some(queue) = self.open.get_mut(name) {
            // Calls of this name that were answered by id are passed over.
            while let Some(id) = queue.pop_front() {
                if !self.answered.remove(&id) {
                    return id;
                }
            }
        }
        self.make_id()
    }

    fn make_id(&mut self) -> String {
        let id = format!("{SYNTHETIC}{}{}", self.scope, self.next_number);
        self.next_number += 1;
        id
    }
}
