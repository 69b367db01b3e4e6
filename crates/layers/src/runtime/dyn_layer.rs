//! Layers of different types behind one trait, so that a list can hold them.
//!
//! Each layer has its own type of state; here it is erased to [`AnyState`] and cast back by the adapter. Synchronous
//! methods catch panics here; asynchronous hooks are guarded by the hook runner, which also limits their time.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::Contribution;
use contexture_ir::{Item, Raw};

use crate::contract::{
    AnswerVerdict, ChildEnd, ChildResult, FunctionError, FunctionSpec, HookContext, Layer,
    LayerError, LayerSpec, ObservedItems, Projection, RecallInput, RunEnd, ToolGate, ToolRequest,
    catch_panic,
};

/// A state whose type only its layer knows.
pub(crate) type AnyState = Box<dyn Any + Send + Sync>;

#[async_trait]
pub(crate) trait DynLayer: Send + Sync {
    fn spec(&self) -> &LayerSpec;
    fn functions(&self) -> &[FunctionSpec];
    fn as_any(&self) -> &dyn Any;

    fn read_state(&self, version: u32, bytes: &[u8]) -> Result<AnyState, LayerError>;
    fn write_state(&self, state: &AnyState) -> Result<Arc<[u8]>, LayerError>;
    fn clone_state(&self, state: &AnyState) -> Result<AnyState, LayerError>;
    fn is_same_state(&self, one: &AnyState, other: &AnyState) -> bool;
    fn validate_state(&self, state: &AnyState) -> Result<(), LayerError>;
    fn export_state(&self, state: &AnyState) -> Result<Raw, LayerError>;

    async fn init(&self, context: &HookContext) -> Result<AnyState, LayerError>;
    async fn recall(
        &self,
        state: &AnyState,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError>;
    fn project_history(&self, state: &AnyState, to: &mut Projection) -> Result<(), LayerError>;
    async fn on_append(
        &self,
        state: &mut AnyState,
        items: Vec<Item>,
        context: &HookContext,
    ) -> Result<Vec<Item>, LayerError>;
    async fn after_model(
        &self,
        state: &mut AnyState,
        answer: &[Item],
        context: &HookContext,
    ) -> Result<AnswerVerdict, LayerError>;
    async fn before_tool(
        &self,
        state: &mut AnyState,
        call: &ToolRequest,
        context: &HookContext,
    ) -> Result<ToolGate, LayerError>;
    async fn observe(
        &self,
        state: &mut AnyState,
        seen: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError>;
    async fn on_spawn(
        &self,
        parent: &AnyState,
        child: &HookContext,
    ) -> Result<Option<AnyState>, LayerError>;
    async fn on_parent_update(
        &self,
        child: &mut AnyState,
        parent: &AnyState,
        context: &HookContext,
    ) -> Result<(), LayerError>;
    async fn on_return(
        &self,
        parent: &mut AnyState,
        child: &AnyState,
        end: &ChildEnd,
        context: &HookContext,
    ) -> Result<ChildResult, LayerError>;
    async fn on_complete(
        &self,
        state: &mut AnyState,
        end: &RunEnd,
        context: &HookContext,
    ) -> Result<(), LayerError>;
    async fn dispose(&self, state: &AnyState) -> Result<(), LayerError>;
    async fn call_function(
        &self,
        state: &mut AnyState,
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError>;
}

/// Adapts a [`Layer`] to [`DynLayer`]. Specification and functions are read once: they must not change while the list
/// is in use, because budgets and tool names were checked against them.
pub(crate) struct LayerAdapter<L> {
    pub(crate) layer: L,
    spec: LayerSpec,
    functions: Vec<FunctionSpec>,
}

impl<L: Layer> LayerAdapter<L> {
    pub(crate) fn new(layer: L) -> Self {
        Self {
            spec: layer.spec(),
            functions: layer.functions(),
            layer,
        }
    }
}

/// Casts a state to the type of its layer.
pub(crate) fn downcast_state<L: Layer>(state: &AnyState) -> Result<&L::State, LayerError> {
    state.downcast_ref().ok_or_else(wrong_state_type)
}

fn downcast_state_mut<L: Layer>(state: &mut AnyState) -> Result<&mut L::State, LayerError> {
    state.downcast_mut().ok_or_else(wrong_state_type)
}

fn wrong_state_type() -> LayerError {
    LayerError::from_message("the state is of another layer")
}

#[async_trait]
impl<L: Layer> DynLayer for LayerAdapter<L> {
    fn spec(&self) -> &LayerSpec {
        &self.spec
    }

    fn functions(&self) -> &[FunctionSpec] {
        &self.functions
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read_state(&self, version: u32, bytes: &[u8]) -> Result<AnyState, LayerError> {
        let unreadable = |reason: String| LayerError::State {
            stored: version,
            current: self.spec.version,
            reason,
        };
        catch_panic(|| {
            // Equal versions only: other versions, newer ones included, go to `migrate_state`, because only the layer
            // knows whether it can read them.
            let state: L::State = if version == self.spec.version {
                serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?
            } else {
                // Only the layer knows its other formats; it gets the stored JSON unchanged.
                let text =
                    std::str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
                let raw = Raw::parse(text).map_err(|error| unreadable(error.to_string()))?;
                self.layer.migrate_state(version, &raw)?
            };
            Ok(Box::new(state) as AnyState)
        })
    }

    fn write_state(&self, state: &AnyState) -> Result<Arc<[u8]>, LayerError> {
        let state = downcast_state::<L>(state)?;
        // Serialization is the layer's code: a panic must cost no more than this state.
        let bytes = catch_panic(|| serde_json::to_vec(state).map_err(LayerError::from_message))?;
        Ok(bytes.into())
    }

    fn clone_state(&self, state: &AnyState) -> Result<AnyState, LayerError> {
        let state = downcast_state::<L>(state)?;
        // Hooks work on this copy, so that a failed hook has changed nothing.
        catch_panic(|| Ok(Box::new(state.clone()) as AnyState))
    }

    fn is_same_state(&self, one: &AnyState, other: &AnyState) -> bool {
        // A state of another type counts as different, so the caller goes on to write it and gets the error there.
        let (Ok(one), Ok(other)) = (downcast_state::<L>(one), downcast_state::<L>(other)) else {
            return false;
        };
        // A comparison that panics counts as different: storing a state needlessly does no harm.
        catch_panic(|| Ok(one == other)).unwrap_or(false)
    }

    fn validate_state(&self, state: &AnyState) -> Result<(), LayerError> {
        let state = downcast_state::<L>(state)?;
        catch_panic(|| self.layer.validate_state(state))
    }

    fn export_state(&self, state: &AnyState) -> Result<Raw, LayerError> {
        let state = downcast_state::<L>(state)?;
        catch_panic(|| self.layer.export_state(state))
    }

    async fn init(&self, context: &HookContext) -> Result<AnyState, LayerError> {
        Ok(Box::new(self.layer.init(context).await?))
    }

    async fn recall(
        &self,
        state: &AnyState,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        self.layer.recall(downcast_state::<L>(state)?, call).await
    }

    fn project_history(&self, state: &AnyState, to: &mut Projection) -> Result<(), LayerError> {
        let state = downcast_state::<L>(state)?;
        catch_panic(|| {
            self.layer.project_history(state, to);
            Ok(())
        })
    }

    async fn on_append(
        &self,
        state: &mut AnyState,
        items: Vec<Item>,
        context: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        let state = downcast_state_mut::<L>(state)?;
        self.layer.on_append(state, items, context).await
    }

    async fn after_model(
        &self,
        state: &mut AnyState,
        answer: &[Item],
        context: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        let state = downcast_state_mut::<L>(state)?;
        self.layer.after_model(state, answer, context).await
    }

    async fn before_tool(
        &self,
        state: &mut AnyState,
        call: &ToolRequest,
        context: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        let state = downcast_state_mut::<L>(state)?;
        self.layer.before_tool(state, call, context).await
    }

    async fn observe(
        &self,
        state: &mut AnyState,
        seen: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let state = downcast_state_mut::<L>(state)?;
        self.layer.observe(state, seen, context).await
    }

    async fn on_spawn(
        &self,
        parent: &AnyState,
        child: &HookContext,
    ) -> Result<Option<AnyState>, LayerError> {
        let state = self
            .layer
            .on_spawn(downcast_state::<L>(parent)?, child)
            .await?;
        Ok(state.map(|state| -> AnyState { Box::new(state) }))
    }

    async fn on_parent_update(
        &self,
        child: &mut AnyState,
        parent: &AnyState,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let (child, parent) = (
            downcast_state_mut::<L>(child)?,
            downcast_state::<L>(parent)?,
        );
        self.layer.on_parent_update(child, parent, context).await
    }

    async fn on_return(
        &self,
        parent: &mut AnyState,
        child: &AnyState,
        end: &ChildEnd,
        context: &HookContext,
    ) -> Result<ChildResult, LayerError> {
        let (parent, child) = (
            downcast_state_mut::<L>(parent)?,
            downcast_state::<L>(child)?,
        );
        self.layer.on_return(parent, child, end, context).await
    }

    async fn on_complete(
        &self,
        state: &mut AnyState,
        end: &RunEnd,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let state = downcast_state_mut::<L>(state)?;
        self.layer.on_complete(state, end, context).await
    }

    async fn dispose(&self, state: &AnyState) -> Result<(), LayerError> {
        self.layer.dispose(downcast_state::<L>(state)?).await
    }

    async fn call_function(
        &self,
        state: &mut AnyState,
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let state = downcast_state_mut::<L>(state)?;
        self.layer
            .call_function(state, function, arguments, context)
            .await
    }
}
