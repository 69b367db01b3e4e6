//! A layer of whatever type, so that a list can hold many.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::Contribution;
use contexture_ir::{Item, Raw};

use crate::context::HookContext;
use crate::decision::{ChildEnd, Gate, RunEnd, ToolRequest, Verdict};
use crate::error::LayerError;
use crate::function::{FunctionError, FunctionSpec};
use crate::history::Projection;
use crate::layer::{Layer, Observed};
use crate::panics::caught;
use crate::recall::Recall;
use crate::spec::LayerSpec;

/// A state of a type only its layer knows.
pub(crate) type AnyState = Box<dyn Any + Send + Sync>;

#[async_trait]
pub(crate) trait Erased: Send + Sync {
    fn spec(&self) -> &LayerSpec;
    fn functions(&self) -> &[FunctionSpec];
    fn as_any(&self) -> &dyn Any;

    fn read(&self, version: u32, bytes: &[u8]) -> Result<AnyState, LayerError>;
    fn write(&self, state: &AnyState) -> Result<Arc<[u8]>, LayerError>;
    fn copy(&self, state: &AnyState) -> Result<AnyState, LayerError>;
    fn same(&self, one: &AnyState, other: &AnyState) -> bool;
    fn check(&self, state: &AnyState) -> Result<(), LayerError>;
    fn data(&self, state: &AnyState) -> Result<Raw, LayerError>;

    async fn init(&self, context: &HookContext) -> Result<AnyState, LayerError>;
    async fn recall(
        &self,
        state: &AnyState,
        call: &Recall<'_>,
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
    ) -> Result<Verdict, LayerError>;
    async fn before_tool(
        &self,
        state: &mut AnyState,
        call: &ToolRequest,
        context: &HookContext,
    ) -> Result<Gate, LayerError>;
    async fn observe(
        &self,
        state: &mut AnyState,
        seen: &Observed<'_>,
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
    ) -> Result<(), LayerError>;
    async fn on_complete(
        &self,
        state: &mut AnyState,
        end: &RunEnd,
        context: &HookContext,
    ) -> Result<(), LayerError>;
    async fn dispose(&self, state: &AnyState) -> Result<(), LayerError>;
    async fn call(
        &self,
        state: &mut AnyState,
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError>;
}

/// A layer, with what it says of itself asked once.
pub(crate) struct Held<L> {
    pub(crate) layer: L,
    spec: LayerSpec,
    functions: Vec<FunctionSpec>,
}

impl<L: Layer> Held<L> {
    pub(crate) fn new(layer: L) -> Self {
        Self {
            spec: layer.spec(),
            functions: layer.functions(),
            layer,
        }
    }
}

/// The state as the type its layer knows.
pub(crate) fn typed<L: Layer>(state: &AnyState) -> Result<&L::State, LayerError> {
    state.downcast_ref().ok_or_else(foreign)
}

fn typed_mut<L: Layer>(state: &mut AnyState) -> Result<&mut L::State, LayerError> {
    state.downcast_mut().ok_or_else(foreign)
}

fn foreign() -> LayerError {
    LayerError::failed("the state is of another layer")
}

#[async_trait]
impl<L: Layer> Erased for Held<L> {
    fn spec(&self) -> &LayerSpec {
        &self.spec
    }

    fn functions(&self) -> &[FunctionSpec] {
        &self.functions
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn read(&self, version: u32, bytes: &[u8]) -> Result<AnyState, LayerError> {
        let unreadable = |why: String| LayerError::State {
            stored: version,
            current: self.spec.version,
            why,
        };
        caught(|| {
            let state: L::State = if version == self.spec.version {
                serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?
            } else {
                let text =
                    std::str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
                let raw = Raw::parse(text).map_err(|error| unreadable(error.to_string()))?;
                self.layer.migrate(version, &raw)?
            };
            Ok(Box::new(state) as AnyState)
        })
    }

    fn write(&self, state: &AnyState) -> Result<Arc<[u8]>, LayerError> {
        let state = typed::<L>(state)?;
        let bytes = caught(|| serde_json::to_vec(state).map_err(LayerError::failed))?;
        Ok(bytes.into())
    }

    fn copy(&self, state: &AnyState) -> Result<AnyState, LayerError> {
        let state = typed::<L>(state)?;
        caught(|| Ok(Box::new(state.clone()) as AnyState))
    }

    fn same(&self, one: &AnyState, other: &AnyState) -> bool {
        let (Ok(one), Ok(other)) = (typed::<L>(one), typed::<L>(other)) else {
            return false;
        };
        // One that cannot tell is stored once too often.
        caught(|| Ok(one == other)).unwrap_or(false)
    }

    fn check(&self, state: &AnyState) -> Result<(), LayerError> {
        let state = typed::<L>(state)?;
        caught(|| self.layer.check(state))
    }

    fn data(&self, state: &AnyState) -> Result<Raw, LayerError> {
        let state = typed::<L>(state)?;
        caught(|| self.layer.data(state))
    }

    async fn init(&self, context: &HookContext) -> Result<AnyState, LayerError> {
        Ok(Box::new(self.layer.init(context).await?))
    }

    async fn recall(
        &self,
        state: &AnyState,
        call: &Recall<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        self.layer.recall(typed::<L>(state)?, call).await
    }

    fn project_history(&self, state: &AnyState, to: &mut Projection) -> Result<(), LayerError> {
        let state = typed::<L>(state)?;
        caught(|| {
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
        let state = typed_mut::<L>(state)?;
        self.layer.on_append(state, items, context).await
    }

    async fn after_model(
        &self,
        state: &mut AnyState,
        answer: &[Item],
        context: &HookContext,
    ) -> Result<Verdict, LayerError> {
        let state = typed_mut::<L>(state)?;
        self.layer.after_model(state, answer, context).await
    }

    async fn before_tool(
        &self,
        state: &mut AnyState,
        call: &ToolRequest,
        context: &HookContext,
    ) -> Result<Gate, LayerError> {
        let state = typed_mut::<L>(state)?;
        self.layer.before_tool(state, call, context).await
    }

    async fn observe(
        &self,
        state: &mut AnyState,
        seen: &Observed<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let state = typed_mut::<L>(state)?;
        self.layer.observe(state, seen, context).await
    }

    async fn on_spawn(
        &self,
        parent: &AnyState,
        child: &HookContext,
    ) -> Result<Option<AnyState>, LayerError> {
        let state = self.layer.on_spawn(typed::<L>(parent)?, child).await?;
        Ok(state.map(|state| -> AnyState { Box::new(state) }))
    }

    async fn on_parent_update(
        &self,
        child: &mut AnyState,
        parent: &AnyState,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let (child, parent) = (typed_mut::<L>(child)?, typed::<L>(parent)?);
        self.layer.on_parent_update(child, parent, context).await
    }

    async fn on_return(
        &self,
        parent: &mut AnyState,
        child: &AnyState,
        end: &ChildEnd,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let (parent, child) = (typed_mut::<L>(parent)?, typed::<L>(child)?);
        self.layer.on_return(parent, child, end, context).await
    }

    async fn on_complete(
        &self,
        state: &mut AnyState,
        end: &RunEnd,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        let state = typed_mut::<L>(state)?;
        self.layer.on_complete(state, end, context).await
    }

    async fn dispose(&self, state: &AnyState) -> Result<(), LayerError> {
        self.layer.dispose(typed::<L>(state)?).await
    }

    async fn call(
        &self,
        state: &mut AnyState,
        function: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let state = typed_mut::<L>(state)?;
        self.layer.call(state, function, arguments, context).await
    }
}
