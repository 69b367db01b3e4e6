//! The layers of a conversation at one head: their states as read, and as hooks have left them.
//!
//! Hooks run here; what they changed goes out with the append they were about ([`Self::tree_changes`]) or beside the
//! tree (`layer_store`). Not here: reading and storing.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{ContentHash, Item, NodeId, Raw, RunId};
use contexture_layers::{
    Changed, ChildEnd, FunctionError, Gate, HookContext, Layer, LayerError, LayerEvent, LayerId,
    LayerStates, Layers, Observed, Outcome, RunEnd, Scope, ToolRequest, Verdict,
};
use contexture_store::{Expect, StateChange, StateKey};

use crate::error::EngineError;
use crate::layer_calls::SharedAs;
use crate::ledger::Ledger;

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
    /// How the states outside the tree were read.
    pub(crate) shared: BTreeMap<LayerId, SharedAs>,
    pub(crate) outcomes: Vec<Outcome>,
    /// Where the layers' calls of a model are counted.
    pub(crate) ledger: Option<Arc<dyn Ledger>>,
}

/// The key of a layer's state on the tree; `None` for one outside it.
pub(crate) fn tree_key(
    scope: Scope,
    layer: &LayerId,
    run: Option<RunId>,
) -> Result<Option<StateKey>, EngineError> {
    let key = match scope {
        Scope::Path => format!("{PATH}{layer}"),
        // Without a run there is nothing that ends: the state is the path's.
        Scope::Run => run.map_or_else(
            || format!("{PATH}{layer}"),
            |run| format!("{}{layer}", run_prefix(run)),
        ),
        Scope::Resource | Scope::Global => return Ok(None),
    };
    Ok(Some(StateKey::new(key)?))
}

impl LayerSession {
    /// What every hook is told.
    #[must_use]
    pub const fn context(&self) -> &HookContext {
        &self.context
    }

    /// The layers.
    #[must_use]
    pub const fn layers(&self) -> &Layers {
        &self.layers
    }

    /// What became of the hooks that ran since this was asked last.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// What layers told since this was asked last.
    #[must_use]
    pub fn take_told(&self) -> Vec<LayerEvent> {
        self.context.take_told()
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
    pub fn data(&self, layer: &str) -> Result<Raw, EngineError> {
        Ok(self.layers.data(&self.states, layer)?)
    }

    /// Whether a model's call of this name is a call of a layer's function.
    #[must_use]
    pub fn has_function(&self, tool: &str) -> bool {
        self.layers.function(tool).is_some()
    }

    /// Gives those layers a first state that have none.
    pub(crate) async fn init(&mut self) -> Result<(), EngineError> {
        let outcomes = self.layers.init(&mut self.states, &self.context).await?;
        self.outcomes.extend(outcomes);
        Ok(())
    }

    /// Asks the layers about items that are about to be appended.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn on_append(&mut self, items: Vec<Item>) -> Result<Vec<Item>, EngineError> {
        let asked = self
            .layers
            .on_append(&mut self.states, items, &self.context);
        let (items, outcomes) = asked.await?;
        self.outcomes.extend(outcomes);
        Ok(items)
    }

    /// What the layers say to an answer.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn after_model(&mut self, answer: &[Item]) -> Result<Verdict, EngineError> {
        let asked = self
            .layers
            .after_model(&mut self.states, answer, &self.context);
        let (verdict, outcomes) = asked.await?;
        self.outcomes.extend(outcomes);
        Ok(verdict)
    }

    /// Whether a call of a tool may run.
    pub async fn before_tool(&mut self, call: &ToolRequest) -> Gate {
        let asked = self
            .layers
            .before_tool(&mut self.states, call, &self.context);
        let (gate, outcomes) = asked.await;
        self.outcomes.extend(outcomes);
        gate
    }

    /// Shows the layers what is being appended.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn observe(&mut self, seen: Observed<'_>) -> Result<(), EngineError> {
        let shown = self.layers.observe(&mut self.states, seen, &self.context);
        let outcomes = shown.await?;
        self.outcomes.extend(outcomes);
        Ok(())
    }

    /// Calls a function. What it changed of states on the tree goes out with the next append.
    ///
    /// # Errors
    /// [`FunctionError`]; nothing changed then.
    pub async fn call(&mut self, tool: &str, arguments: &Raw) -> Result<Raw, FunctionError> {
        let called = self
            .layers
            .call(&mut self.states, tool, arguments, &self.context);
        called.await
    }

    /// What a call gave that has changed a state outside the tree.
    pub(crate) fn given(&self, call: NodeId) -> Option<Raw> {
        let call = call.to_string();
        let mut calls = self.shared.values().flat_map(|read| &read.calls);
        let found = calls.find(|one| one.call == call)?;
        Some(found.result.clone())
    }

    /// The first states of a child's layers.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn spawn_into(&self, child: &mut Self) -> Result<(), EngineError> {
        let spawned = self
            .layers
            .on_spawn(&self.states, &mut child.states, &child.context);
        let outcomes = spawned.await?;
        child.outcomes.extend(outcomes);
        Ok(())
    }

    /// Tells a running child's layers of this parent's states.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn update_child(&self, child: &mut Self) -> Result<(), EngineError> {
        let told = self
            .layers
            .on_parent_update(&mut child.states, &self.states, &child.context);
        let outcomes = told.await?;
        child.outcomes.extend(outcomes);
        Ok(())
    }

    /// Tells the layers how a child ended.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn on_return(&mut self, child: &Self, end: &ChildEnd) -> Result<(), EngineError> {
        let told = self
            .layers
            .on_return(&mut self.states, &child.states, end, &self.context);
        let outcomes = told.await?;
        self.outcomes.extend(outcomes);
        Ok(())
    }

    /// Tells the layers how the run ended.
    pub async fn on_complete(&mut self, end: &RunEnd) {
        let told = self
            .layers
            .on_complete(&mut self.states, end, &self.context);
        let outcomes = told.await;
        self.outcomes.extend(outcomes);
    }

    /// Lets the layers go.
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
        for changed in self.layers.changed(&self.states) {
            let Changed {
                layer,
                scope,
                now,
                before,
            } = changed;
            if let Some(key) = tree_key(scope, &layer, self.context.run)? {
                let before = before.map(|stored| ContentHash::of(&stored.bytes));
                let expect = before.map_or(Expect::Absent, Expect::Hash);
                changes.push(StateChange::put(key, now.version, now.bytes).expecting(expect));
            }
        }
        Ok(changes)
    }
}
