//! The state entry `@rules`: a JSON array of the names of standing rules that the host has dropped (version 1).
//!
//! It hangs off the path, so what was dropped rewinds and forks with it. Rules themselves are never stored: they are read from
//! the messages that state them. Not here: dropping (`append`).

use contexture_compile::RuleId;
use contexture_store::StateChange;
use serde::{Deserialize, Serialize};

use super::list::{StateList, StateListEntry};
use crate::error::EngineError;

/// The name of a rule that is not shown any more. A name that no rule of the path has does nothing there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct DroppedRule(pub(crate) RuleId);

impl StateListEntry for DroppedRule {
    const KEY: &'static str = "@rules";
    const VERSION: u32 = 1;
}

/// The rules that are dropped at a node.
pub(crate) type DroppedRules = StateList<DroppedRule>;

impl DroppedRules {
    /// Returns the names, in the order in which they were dropped.
    pub(crate) fn rule_ids(&self) -> Vec<RuleId> {
        self.entries.iter().map(|rule| rule.0.clone()).collect()
    }

    /// Returns the change that replaces the names that were read by these.
    pub(crate) fn change_to(&self, rules: Vec<RuleId>) -> Result<StateChange, EngineError> {
        let entries: Vec<DroppedRule> = rules.into_iter().map(DroppedRule).collect();
        self.replacement_change(&entries)
    }
}
