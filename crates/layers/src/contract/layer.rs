//! The trait: a typed state, words for each call, and hooks for what happens.
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

use crate::contract::decision::{AnswerVerdict, ChildEnd, RunEnd, ToolGate, ToolRequest};
use crate::contract::error::LayerError;
use crate::contract::function::{FunctionError, FunctionSpec};
use crate::contract::hook_context::HookContext;
use crate::contract::recall::RecallInput;
use crate::contract::spec::LayerSpec;

/// An owner of state and policy.
///
/// A hook that changes state is given a copy. If it succeeds the copy becomes the state, stored in the transaction of
/// what the hook was about; if it fails, panics or is out of time, nothing happened. A hook may run again on newer state
/// when somebody else was faster, so what it does besides must bear repetition.
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
    /// What it keeps. Equal states must be written as equal JSON: maps in order, no hash order.
    type State: Serialize + DeserializeOwned + Clone + Default + PartialEq + Send + Sync + 'static;

    /// What it says of itself.
    fn spec(&self) -> LayerSpec;

    /// Reads a state that an earlier version of the layer stored. Default: it cannot.
    ///
    /// # Errors
    /// A version it does not know. The layer is skipped then; its stored state stays as it is.
    fn migrate_state(&self, version: u32, stored: &Raw) -> Result<Self::State, LayerError> {
        let _ = stored;
        Err(LayerError::State {
            stored: version,
            current: self.spec().version,
            reason: "the layer has no migration from it".to_owned(),
        })
    }

    /// Whether a state may be kept, whoever made it: a hook, a function, a program. Default: every one may.
    ///
    /// # Errors
    /// What is wrong with it, and what to do. What made it fails with that, and the state stays as it was.
    fn validate_state(&self, state: &Self::State) -> Result<(), LayerError> {
        let _ = state;
        Ok(())
    }

    /// The first state, where there is none. Default: [`Default`].
    async fn init(&self, context: &HookContext) -> Result<Self::State, LayerError> {
        let _ = context;
        Ok(Self::State::default())
    }

    /// What it says in a call. It changes nothing.
    async fn recall(
        &self,
        state: &Self::State,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError>;

    /// How the history is shown. Default: as the layers before it say.
    fn project_history(&self, state: &Self::State, projection: &mut Projection) {
        let _ = (state, projection);
    }

    /// Filters or changes items of a person, a tool or the program before they are appended. It is never called for
    /// answers of models. If the output of a tool is left out, its call is answered with a note that the output was
    /// withheld. Default: the same items.
    async fn on_append(
        &self,
        state: &mut Self::State,
        items: Vec<Item>,
        context: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        let _ = (state, context);
        Ok(items)
    }

    /// An answer, before it counts. Default: it is good.
    async fn after_model(
        &self,
        state: &mut Self::State,
        answer: &[Item],
        context: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        let _ = (state, answer, context);
        Ok(AnswerVerdict::Pass)
    }

    /// A call of a tool, before it runs, by whatever route. Asked at least once: again of a call that waited for a
    /// person or was cut off by a crash, when its run goes on. Default: it may.
    async fn before_tool(
        &self,
        state: &mut Self::State,
        call: &ToolRequest,
        context: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        let _ = (state, call, context);
        Ok(ToolGate::Allow)
    }

    /// What is being appended: the new state is stored in the same transaction. The context is that of the node it is
    /// appended to: an answer is not yet one of its `responses`. Default: nothing.
    async fn observe(
        &self,
        state: &mut Self::State,
        seen: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let _ = (state, seen, context);
        Ok(())
    }

    /// The first state in a child run, if the layer has none there; `None` leaves it out of the run. Default: a copy.
    async fn on_spawn(
        &self,
        parent: &Self::State,
        child: &HookContext,
    ) -> Result<Option<Self::State>, LayerError> {
        let _ = child;
        Ok(Some(parent.clone()))
    }

    /// The parent's state changed while the child runs. Default: the child goes on with its own.
    async fn on_parent_update(
        &self,
        child: &mut Self::State,
        parent: &Self::State,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let _ = (child, parent, context);
        Ok(())
    }

    /// A child run ended. Default: nothing of it comes back.
    async fn on_return(
        &self,
        parent: &mut Self::State,
        child: &Self::State,
        end: &ChildEnd,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let _ = (parent, child, end, context);
        Ok(())
    }

    /// The run ended, whatever way. Default: nothing.
    async fn on_complete(
        &self,
        state: &mut Self::State,
        end: &RunEnd,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let _ = (state, end, context);
        Ok(())
    }

    /// Nothing will be asked any more in this run: lets go of what it holds. Default: nothing.
    async fn dispose(&self, state: &Self::State) -> Result<(), LayerError> {
        let _ = state;
        Ok(())
    }

    /// Its functions, always the same ones. Default: none.
    fn functions(&self) -> Vec<FunctionSpec> {
        Vec::new()
    }

    /// Runs one of its functions on arguments that fit their schema.
    ///
    /// # Errors
    /// [`FunctionError`]; the state stays as it was then.
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

    /// What it shows of its state to programs. Default: all of it, as JSON.
    ///
    /// # Errors
    /// A state that cannot be written.
    fn export_state(&self, state: &Self::State) -> Result<Raw, LayerError> {
        Raw::from_value(state).map_err(LayerError::from_message)
    }
}

/// What is being appended.
#[derive(Clone, Copy, Debug)]
pub struct ObservedItems<'a> {
    /// The items, oldest first.
    pub items: &'a [Item],
    /// Their nodes, in the same order.
    pub nodes: &'a [NodeId],
    /// The answer they are, if a model gave them.
    pub response: Option<ResponseId>,
    /// What it used, if the provider said.
    pub usage: Option<&'a Usage>,
}

/// How the history is shown. Layers change it one after the other; the tree keeps everything.
#[derive(Clone, Debug, Default)]
pub struct Projection {
    /// The window, and what is cleared, previewed, cut. It starts as the target's.
    pub policy: HistoryPolicy,
    /// Passes over the items. A call with passes is kept for replay as hashes only.
    pub passes: Vec<Arc<dyn Pass>>,
}
