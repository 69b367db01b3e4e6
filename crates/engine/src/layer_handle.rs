//! Typed handles on layers, for programs.
//!
//! Each reads the state as it is stored now, and changes it by compare-and-set: concurrent updates all count.

use std::marker::PhantomData;

use async_trait::async_trait;
use contexture_ir::{NodeId, Raw};
use contexture_layers::{HookContext, Layer, LayerError, LayerId, LayerStates, Layers};
use contexture_store::{AppendAt, Error as StoreError};

use crate::conversation::Conversation;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::layer_calls::SharedCall;
use crate::layer_session::LayerSession;
use crate::layer_store::{Again, TRIES};
use crate::state_node::state_node;

/// A layer of a conversation; see [`Conversation::layer`].
#[derive(Debug)]
pub struct LayerHandle<L> {
    chat: Conversation,
    id: LayerId,
    of: PhantomData<fn() -> L>,
}

/// A call of a function.
struct Calling<'a> {
    tool: &'a str,
    arguments: &'a Raw,
    result: Raw,
    /// Which call it is, if it must not be made twice.
    id: Option<NodeId>,
}

#[async_trait]
impl Again for Calling<'_> {
    async fn run(
        &mut self,
        layers: &Layers,
        states: &mut LayerStates,
        context: &HookContext,
    ) -> Result<(), EngineError> {
        let called = layers.call(states, self.tool, self.arguments, context);
        self.result = called.await?;
        Ok(())
    }

    fn call(&self) -> Option<SharedCall> {
        let id = self.id?;
        Some(SharedCall {
            call: id.to_string(),
            result: self.result.clone(),
        })
    }
}

/// A program's change of a state.
struct Updating<L, T, F> {
    change: F,
    value: Option<T>,
    of: PhantomData<fn() -> L>,
}

#[async_trait]
impl<L, T, F> Again for Updating<L, T, F>
where
    L: Layer,
    T: Send,
    F: FnMut(&mut L::State, &HookContext) -> Result<T, LayerError> + Send,
{
    async fn run(
        &mut self,
        layers: &Layers,
        states: &mut LayerStates,
        context: &HookContext,
    ) -> Result<(), EngineError> {
        let mut state = layers.state::<L>(states)?.clone();
        self.value = Some((self.change)(&mut state, context)?);
        layers.set_state::<L>(states, state)?;
        Ok(())
    }
}

impl Conversation {
    /// The layer of this type.
    ///
    /// # Errors
    /// [`EngineError::LayerState`] where the handle has none.
    pub fn layer<L: Layer>(&self) -> Result<LayerHandle<L>, EngineError> {
        let layers = self.layers();
        let found = layers.layer::<L>();
        let (id, _) = found.ok_or_else(|| LayerError::failed("there is no such layer"))?;
        Ok(LayerHandle {
            chat: self.clone(),
            id: id.clone(),
            of: PhantomData,
        })
    }

    /// Calls the function of a layer that models call by this name, and stores what it changed.
    ///
    /// # Errors
    /// [`EngineError::Function`], or the store's.
    pub async fn call_function(&self, tool: &str, arguments: &Raw) -> Result<Raw, EngineError> {
        let mut call = Calling {
            tool,
            arguments,
            result: Raw::null(),
            id: None,
        };
        self.change_layers(&mut call).await?;
        Ok(call.result)
    }

    /// Calls the function of a layer in a run: what it changed of states beside the tree is stored, the rest goes out
    /// with the run's next append. `id` is the call's node: one that has changed a state beside the tree, and whose
    /// output was never stored, gives what it gave then.
    ///
    /// # Errors
    /// [`EngineError::Function`], or the store's.
    pub async fn call_in(
        &self,
        session: &mut LayerSession,
        id: NodeId,
        tool: &str,
        arguments: &Raw,
    ) -> Result<Raw, EngineError> {
        if let Some(result) = session.given(id) {
            return Ok(result);
        }
        let result = session.call(tool, arguments).await?;
        let mut call = Calling {
            tool,
            arguments,
            result,
            id: Some(id),
        };
        self.put_shared(session, &mut call).await?;
        Ok(call.result)
    }

    /// Runs a hook that changes states, and stores them: with a node of their own, or beside the tree.
    async fn change_layers(&self, hook: &mut dyn Again) -> Result<(), EngineError> {
        let mut tries = TRIES;
        loop {
            let mut session: LayerSession = self.layer_session(None).await?;
            let LayerSession {
                layers,
                states,
                context,
                ..
            } = &mut session;
            hook.run(layers, states, context).await?;
            let changes = session.tree_changes()?;
            let mut stored = Ok(None);
            if !changes.is_empty() {
                let node = Engine::node_id(&self.engine().fresh_key(), 0);
                let node = state_node(node, self.engine().now_ms())?;
                let at = AppendAt::Tip {
                    branch: self.branch(),
                };
                let appended = self.append_seen(at, vec![node], &[], changes, None).await;
                stored = appended.map(|appended| appended.head);
            }
            tries -= 1;
            match stored {
                Err(EngineError::Store(StoreError::StateConflict { .. })) if tries > 0 => continue,
                Err(error) => return Err(error),
                Ok(head) => session.context.head = head.or(session.context.head),
            }
            self.put_shared(&mut session, hook).await?;
            self.tell_layers(&session);
            return Ok(());
        }
    }
}

impl<L: Layer> LayerHandle<L> {
    /// The layer's name.
    #[must_use]
    pub const fn id(&self) -> &LayerId {
        &self.id
    }

    /// The state as it is now.
    ///
    /// # Errors
    /// [`EngineError::LayerState`], or the store's.
    pub async fn state(&self) -> Result<L::State, EngineError> {
        let session = self.chat.layer_session(None).await?;
        Ok(session.state::<L>()?.clone())
    }

    /// What the layer shows of its state.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn data(&self) -> Result<Raw, EngineError> {
        self.chat.layer_session(None).await?.data(self.id.as_str())
    }

    /// Changes the state. `change` may run again on newer state where another was faster.
    ///
    /// # Errors
    /// What `change` gives, as [`EngineError::LayerState`]; nothing is changed then. Or the store's.
    pub async fn update<T>(
        &self,
        change: impl FnMut(&mut L::State, &HookContext) -> Result<T, LayerError> + Send,
    ) -> Result<T, EngineError>
    where
        T: Send,
    {
        let mut updating = Updating {
            change,
            value: None,
            of: PhantomData::<fn() -> L>,
        };
        self.chat.change_layers(&mut updating).await?;
        let value = updating
            .value
            .ok_or_else(|| LayerError::failed("nothing was changed"))?;
        Ok(value)
    }
}
