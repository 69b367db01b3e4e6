//! The layers of a conversation at one head: their states as read, and as hooks left them.
//!
//! Hooks run here if their answers count; what they changed goes out with the append they were about.
//!
//! Not here: hooks without an answer (`replay`), reading and storing states.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{ContentHash, Item, Raw, RunId};
use contexture_layers::{
    AnswerVerdict, ChangedState, FunctionError, HookContext, HookOutcome, Layer, LayerError,
    LayerEvent, LayerId, LayerStates, Layers, ObservedItems, StateScope, ToolGate, ToolRequest,
};
use contexture_store::{StateChange, StateExpectation, StateKey};

use super::replay::LoggedHook;
use crate::error::EngineError;
use crate::handle::SideUsageTracker;

/// What the keys of layers' states on a path begin with.
const PATH: &str = "path/";

/// Where a run's own entries of state are.
#[must_use]
pub fn run_prefix(run: RunId) -> String {
    format!("run/{run}/")
}

/// The layers of a conversation at one head.
#[derive(Debug)]
pub struct LayerSession {
    pub(crate) layers: Layers,
    pub(crate) states: LayerStates,
    pub(crate) context: HookContext,
    /// As which version the states outside the tree were read; `None` where there was none.
    pub(crate) shared: BTreeMap<LayerId, Option<u64>>,
    /// What the layers were told since the last append.
    pub(crate) hook_log: Vec<LoggedHook>,
    pub(crate) outcomes: Vec<HookOutcome>,
    /// Where the layers' calls of a model are counted.
    pub(crate) tracker: Option<Arc<dyn SideUsageTracker>>,
}

/// The key of a layer's state on the tree; `None` for one outside it.
pub(crate) fn tree_state_key(
    scope: StateScope,
    layer: &LayerId,
    run: Option<RunId>,
) -> Result<Option<StateKey>, EngineError> {
    let key = match scope {
        StateScope::Path => format!("{PATH}{layer}"),
        // Without a run there is nothing that ends: the state is the path's.
        StateScope::Run => run.map_or_else(
            || format!("{PATH}{layer}"),
            |run| format!("{}{layer}", run_prefix(run)),
        ),
        StateScope::Resource | StateScope::Global => return Ok(None),
    };
    Ok(Some(StateKey::new(key)?))
}

impl LayerSession {
    /// Returns the context that every hook receives.
    #[must_use]
    pub const fn context(&self) -> &HookContext {
        &self.context
    }

    /// Returns the layers of the session.
    #[must_use]
    pub const fn layers(&self) -> &Layers {
        &self.layers
    }

    /// Takes the outcomes of the hooks that ran since the last call.
    pub(crate) fn take_outcomes(&mut self) -> Vec<HookOutcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// Takes the events that layers emitted since the last call.
    #[must_use]
    pub fn drain_events(&self) -> Vec<LayerEvent> {
        self.context.drain_events()
    }

    /// The state of the layer of this type.
    ///
    /// # Errors
    /// [`LayerError`] where there is no such layer, or its state cannot be had.
    pub fn state<L: Layer>(&self) -> Result<&L::State, LayerError> {
        self.layers.state::<L>(&self.states)
    }

    /// What a layer shows of its state to programs.
    ///
    /// # Errors
    /// [`EngineError::Layers`].
    pub fn export_state(&self, layer: &str) -> Result<Raw, EngineError> {
        Ok(self.layers.export_state(&self.states, layer)?)
    }

    /// Gives layers without a state their first one.
    pub(crate) async fn init_states(&mut self) -> Result<(), EngineError> {
        let outcomes = self
            .layers
            .init_states(&mut self.states, &self.context)
            .await?;
        self.outcomes.extend(outcomes);
        Ok(())
    }

    /// Asks the layers about items that are about to be appended.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn on_append(&mut self, items: Vec<Item>) -> Result<Vec<Item>, EngineError> {
        let running = self
            .layers
            .on_append(&mut self.states, items, &self.context);
        let (items, outcomes) = running.await?;
        self.outcomes.extend(outcomes);
        Ok(items)
    }

    /// Asks the layers about an answer of the model.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn after_model(&mut self, answer: &[Item]) -> Result<AnswerVerdict, EngineError> {
        let running = self
            .layers
            .after_model(&mut self.states, answer, &self.context);
        let (verdict, outcomes) = running.await?;
        self.outcomes.extend(outcomes);
        Ok(verdict)
    }

    /// Whether a call of a tool may run.
    pub async fn before_tool(&mut self, call: &ToolRequest) -> ToolGate {
        let running = self
            .layers
            .before_tool(&mut self.states, call, &self.context);
        let (gate, outcomes) = running.await;
        self.outcomes.extend(outcomes);
        // Logged although it has an answer: the call runs or not by that answer, so only the changes of state are
        // repeated.
        self.hook_log.push(LoggedHook::Tool(call.clone()));
        gate
    }

    /// Shows the layers what is being appended.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn observe(&mut self, seen: ObservedItems<'_>) -> Result<(), EngineError> {
        let shown = self.layers.observe(&mut self.states, seen, &self.context);
        let outcomes = shown.await?;
        self.outcomes.extend(outcomes);
        Ok(())
    }

    /// Calls a function. What it changed goes out with the next append.
    ///
    /// # Errors
    /// [`FunctionError`]; nothing changed then.
    pub async fn call_function(
        &mut self,
        tool: &str,
        arguments: &Raw,
    ) -> Result<Raw, FunctionError> {
        let called = self
            .layers
            .call_function(&mut self.states, tool, arguments, &self.context);
        called.await
    }

    /// Takes back what hooks changed of states outside the tree. For one whose states on the tree were read as of before
    /// those hooks, and which were stored since.
    pub fn revert_shared_changes(&mut self) {
        self.layers.revert_shared_changes(&mut self.states);
    }

    /// Ends the session: layers may release what they hold.
    pub async fn dispose(&mut self) {
        let outcomes = self.layers.dispose(&self.states).await;
        self.outcomes.extend(outcomes);
    }

    /// What is to be stored on the tree: each change replaces what was read, and fails if another was faster.
    ///
    /// # Errors
    /// A key that is none.
    pub fn tree_changes(&self) -> Result<Vec<StateChange>, EngineError> {
        let mut changes = Vec::new();
        for changed in self.layers.changed_states(&self.states) {
            let ChangedState {
                layer,
                scope,
                current: now,
                previous: before,
            } = changed;
            if let Some(key) = tree_state_key(scope, &layer, self.context.run)? {
                // A hash and not a version: state on the tree has no version of its own, and equal bytes are no conflict.
                let before = before.map(|stored| ContentHash::of(&stored.bytes));
                let expect = before.map_or(StateExpectation::Absent, StateExpectation::Hash);
                changes.push(
                    StateChange::put_entry(key, now.version, now.bytes).with_condition(expect),
                );
            }
        }
        Ok(changes)
    }
}
