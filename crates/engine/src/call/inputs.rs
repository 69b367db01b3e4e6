//! The inputs of a call in two halves: what the tree gives, and what comes beside it.
//!
//! The first half can be read again at the same node at any time; the second is stored with the answer.

use std::borrow::Cow;
use std::sync::Arc;

use contexture_catalogue::Encoding;
use contexture_compile::{
    Cancel, CompileInput, CompileRequest, Contribution, Cover, GrowingPath, Pass, PathItem, Plan,
    RuleId,
};
use contexture_store::{NodeState, StateKey};
use contexture_tokens::counter_for;

use crate::error::EngineError;
use crate::path::StoredPath;
use crate::state::{Covers, DroppedRules, Pins};

/// What the tree gives to a call.
#[derive(Debug, Default)]
pub(crate) struct TreeInputs<'p> {
    pub(crate) items: Cow<'p, GrowingPath>,
    pub(crate) covers: Vec<Cover>,
    /// The standing rules that the host has dropped.
    pub(crate) dropped_rules: Vec<RuleId>,
    pub(crate) plan: Plan,
}

/// What a call is compiled from beside the tree.
#[derive(Debug)]
pub(crate) struct CallInputs {
    pub(crate) request: CompileRequest,
    pub(crate) contributions: Vec<Contribution>,
    pub(crate) encoding: Encoding,
    /// Passes of layers over the history. They are code, and not kept.
    pub(crate) passes: Vec<Arc<dyn Pass>>,
}

impl CallInputs {
    /// With what the tree gives, all that the call's payload depends on.
    pub(crate) fn compile_input<'a>(
        &'a self,
        given: &'a TreeInputs<'_>,
        passes: &'a [&'a dyn Pass],
        cancel: Option<&'a Cancel>,
    ) -> CompileInput<'a> {
        CompileInput {
            path: (&*given.items).into(),
            covers: &given.covers,
            dropped_rules: &given.dropped_rules,
            passes,
            contributions: &self.contributions,
            plan: &given.plan,
            request: &self.request,
            counter: counter_for(self.encoding),
            cancel,
        }
    }
}

/// What the keys of the state that decides about calls begin with: plans, compactions in effect, pins, dropped rules.
pub(crate) const DECISIONS: &str = "@";

impl<'p> TreeInputs<'p> {
    /// What the tree says at the end of a path, for a call with this plan.
    pub(crate) fn from_path(
        path: &'p StoredPath,
        state: &NodeState,
        plan_key: &str,
    ) -> Result<Self, EngineError> {
        let pinned = Pins::from_state(state)?.node_ids();
        // Borrowed where nothing is pinned, which is the rule: a long path is not copied for a call.
        let mut items = Cow::Borrowed(&path.items);
        if !pinned.is_empty() {
            let marked = path.items.iter().map(|item| PathItem {
                pinned: item.node.is_some_and(|node| pinned.contains(&node)),
                ..item.clone()
            });
            items = Cow::Owned(marked.collect());
        }
        Ok(Self {
            items,
            covers: Covers::from_state(state)?.covers_on_path(path),
            dropped_rules: DroppedRules::from_state(state)?.rule_ids(),
            plan: stored_plan(state, plan_key)?,
        })
    }
}

/// The plan of the last call that is on this path; a first call has an empty one.
fn stored_plan(state: &NodeState, key: &str) -> Result<Plan, EngineError> {
    let stored = state.loaded_value(&StateKey::new(key)?);
    // A plan is an optimisation: one that cannot be read is as good as none.
    let read = stored.and_then(|bytes| serde_json::from_slice(bytes).ok());
    Ok(read.unwrap_or_default())
}
