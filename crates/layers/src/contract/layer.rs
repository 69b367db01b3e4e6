//! The layer trait: a typed state, contributions to each call, and hooks.
//!
//! To add a hook: a method with a default here and in `runtime/dyn_layer.rs`, its name in `hook_outcome.rs`, its timeout in
//! `spec.rs`, the loop over all layers in `runtime/hook_runner.rs`; then the engine's `hooks/session.rs` (and
//! `hooks/replay.rs`, if it has to run again on newer state) and the place where it happens, mostly in the runs crate's
//! `steps/`.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::{Contribution, HistoryPolicy, Pass};
use contexture_ir::{Item, NodeId, Raw, ResponseId, Usage};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contract::decision::{
    AnswerVerdict, ChildEnd, ChildResult, RunEnd, ToolGate, ToolRequest,
};
use crate::contract::error::LayerError;
use crate::contract::function::{FunctionError, FunctionSpec};
use crate::contract::hook_context::HookContext;
use crate::contract::recall::RecallInput;
use crate::contract::spec::LayerSpec;

/// An owner of state and policy.
///
/// A hook that changes state is given a copy. If it succeeds, the copy becomes the state, stored in the transaction the
/// hook belongs to; if it fails, panics or times out, nothing has changed. A hook may run again on newer state after a
/// conflict with another writer, so its side effects must be safe to repeat.
///
/// ```
/// use async_trait::async_trait;
/// use contexture_compile::Contribution;
/// use contexture_ir::hint;
/// use contexture_layers::{Layer, LayerError, LayerId, LayerSpec, RecallInput};
///
/// /// Says how many turns there were.
/// struct Turns;
///
/// #[async_trait]
/// impl Layer for Turns {
///     type State = ();
///
///     fn spec(&self) -> LayerSpec {
///         LayerSpec::new(LayerId::new("turns").expect("a name"))
///     }
///
///     async fn recall(&self, (): &(), call: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
///         let turns = call.context.turns;
///         Ok(vec![call.contribution_from_fragments([hint(format!("This is turn {turns}."))])])
///     }
/// }
/// # use contexture_layers::Layers;
/// # Layers::new().with_layer(Turns)?;
/// # Ok::<(), contexture_layers::LayersError>(())
/// ```
#[async_trait]
pub trait Layer: Send + Sync + 'static {
    /// State of the layer. Equal states must serialize to equal JSON: maps in a fixed order, never in hash order.
    type State: Serialize + DeserializeOwned + Clone + Default + PartialEq + Send + Sync + 'static;

    /// Returns the layer's specification.
    fn spec(&self) -> LayerSpec;

    /// Reads a state that another version of the layer stored. Default: an error.
    ///
    /// # Errors
    /// For a version it does not know. The layer is then skipped, and its stored state stays as it is.
    fn migrate_state(&self, version: u32, stored: &Raw) -> Result<Self::State, LayerError> {
        let _ = stored;
        Err(LayerError::State {
            stored: version,
            current: self.spec().version,
            reason: "the layer has no migration from it".to_owned(),
        })
    }

    /// Checks a state before it is accepted, whether a hook, a function or a program made it. Default: every state is
    /// valid.
    ///
    /// # Errors
    /// What is wrong with the state, and what to do. The operation that made it fails, and the state stays unchanged.
    fn validate_state(&self, state: &Self::State) -> Result<(), LayerError> {
        let _ = state;
        Ok(())
    }

    /// Creates the first state. Default: [`Default`].
    async fn init(&self, context: &HookContext) -> Result<Self::State, LayerError> {
        let _ = context;
        Ok(Self::State::default())
    }

    /// Returns the layer's contributions to a call. It cannot change the state.
    async fn recall(
        &self,
        state: &Self::State,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError>;

    /// Changes how the history is shown. Default: no change.
    fn project_history(&self, state: &Self::State, projection: &mut Projection) {
        let _ = (state, projection);
    }

    /// Filters or changes items of a user, a tool or the program before they are appended. It is never called for
    /// answers of models. If the output of a tool is removed, its call is answered with a note that the output was
    /// withheld. Default: no change.
    async fn on_append(
        &self,
        state: &mut Self::State,
        items: Vec<Item>,
        context: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        let _ = (state, context);
        Ok(items)
    }

    /// Judges an answer before it is accepted. Default: accepts it.
    async fn after_model(
        &self,
        state: &mut Self::State,
        answer: &[Item],
        context: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        let _ = (state, answer, context);
        Ok(AnswerVerdict::Pass)
    }

    /// Judges a tool call before it runs, by whatever route. Called at least once: again for a call that waited for a
    /// person or was interrupted by a crash, when its run is resumed. Default: allows it.
    async fn before_tool(
        &self,
        state: &mut Self::State,
        call: &ToolRequest,
        context: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        let _ = (state, call, context);
        Ok(ToolGate::Allow)
    }

    /// Observes items that are being appended: the new state is stored in the same transaction. The context is that of
    /// the node they are appended to: an answer is not yet one of its `responses`. Default: does nothing.
    async fn observe(
        &self,
        state: &mut Self::State,
        seen: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let _ = (state, seen, context);
        Ok(())
    }

    /// Creates the first state in a child run, if the layer has none there; `None` leaves it out of the run. Default: a
    /// copy.
    async fn on_spawn(
        &self,
        parent: &Self::State,
        child: &HookContext,
    ) -> Result<Option<Self::State>, LayerError> {
        let _ = child;
        Ok(Some(parent.clone()))
    }

    /// Called when the parent's state changed while the child runs. Default: the child keeps its own state.
    async fn on_parent_update(
        &self,
        child: &mut Self::State,
        parent: &Self::State,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let _ = (child, parent, context);
        Ok(())
    }

    /// Called when a child run ended: may change the parent's state, and what the parent's model reads. Later layers are given
    /// what earlier ones made of the result. Default: both stay as they are.
    async fn on_return(
        &self,
        parent: &mut Self::State,
        child: &Self::State,
        end: &ChildEnd,
        context: &HookContext,
    ) -> Result<ChildResult, LayerError> {
        let _ = (parent, child, end, context);
        Ok(ChildResult::Keep)
    }

    /// Called when the run ended, however it ended. Default: does nothing.
    async fn on_complete(
        &self,
        state: &mut Self::State,
        end: &RunEnd,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let _ = (state, end, context);
        Ok(())
    }

    /// Releases resources, because the layer is no longer used in this run. Default: does nothing.
    async fn dispose(&self, state: &Self::State) -> Result<(), LayerError> {
        let _ = state;
        Ok(())
    }

    /// Returns its functions, always the same ones. Default: none.
    fn functions(&self) -> Vec<FunctionSpec> {
        Vec::new()
    }

    /// Runs one of its functions with arguments that match their schema.
    ///
    /// # Errors
    /// [`FunctionError`]; the state stays unchanged.
    async fn call_function(
        &self,
        state: &mut Self::State,
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let _ = (state, arguments, context);
        Err(FunctionError::Unknown {
            layer: self.spec().id,
            name: function.to_owned(),
        })
    }

    /// Exports the state for programs. Default: all of it, as JSON.
    ///
    /// # Errors
    /// If the state cannot be written.
    fn export_state(&self, state: &Self::State) -> Result<Raw, LayerError> {
        Raw::from_value(state).map_err(LayerError::from_message)
    }
}

/// Items that are being appended.
#[derive(Clone, Copy, Debug)]
pub struct ObservedItems<'a> {
    /// The items, oldest first.
    pub items: &'a [Item],
    /// Their nodes, in the same order.
    pub nodes: &'a [NodeId],
    /// The answer that the items are, if a model gave them.
    pub response: Option<ResponseId>,
    /// Usage of the answer, if the provider reported it.
    pub usage: Option<&'a Usage>,
}

/// How the history is shown. Layers change it one after the other; the tree keeps everything.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// The window, and rules for clearing, previews and trimming. It starts as the target's.
    pub policy: HistoryPolicy,
    /// Passes over the items. A call with passes is kept for replay as hashes only.
    pub passes: Vec<Arc<dyn Pass>>,
}
