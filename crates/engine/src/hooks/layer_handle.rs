//! Typed handles on layers, for programs.
//!
//! Each reads the state as it is stored now and changes it by compare-and-set: concurrent updates all count.

use std::marker::PhantomData;

use async_trait::async_trait;
use contexture_ir::{NodeId, Raw};
use contexture_layers::{HookContext, Layer, LayerError, LayerId, LayerStates, Layers};
use contexture_store::{AppendPoint, AppendRequest, StatePatch};

use super::open_session::{STALE_STATE_TRIES, open_session, publish_layer_events};
use super::session::LayerSession;
use crate::append::{append_with_copies, state_node};
use crate::error::EngineError;
use crate::handle::Conversation;

/// A layer of a conversation; see [`Conversation::layer`].
#[derive(Debug)]
pub struct LayerHandle<L> {
    chat: Conversation,
    id: LayerId,
    of: PhantomData<fn() -> L>,
}

/// A change of states, as it can be made again on newer ones.
#[async_trait]
trait LayerStateChange: Send {
    async fn apply_change(
        &mut self,
        layers: &Layers,
        states: &mut LayerStates,
        context: &HookContext,
    ) -> Result<(), EngineError>;
}

/// A call of a function.
struct FunctionCallChange<'a> {
    tool: &'a str,
    arguments: &'a Raw,
    result: Raw,
}

#[async_trait]
impl LayerStateChange for FunctionCallChange<'_> {
    async fn apply_change(
        &mut self,
        layers: &Layers,
        states: &mut LayerStates,
        context: &HookContext,
    ) -> Result<(), EngineError> {
        let called = layers.call_function(states, self.tool, self.arguments, context);
        self.result = called.await?;
        Ok(())
    }
}

/// A program's change of a state.
struct StateUpdate<L, T, F> {
    change: F,
    value: Option<T>,
    of: PhantomData<fn() -> L>,
}

#[async_trait]
impl<L, T, F> LayerStateChange for StateUpdate<L, T, F>
where
    L: Layer,
    T: Send,
    F: FnMut(&mut L::State, &HookContext) -> Result<T, LayerError> + Send,
{
    async fn apply_change(
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

/// Returns a handle on the layer of this type.
pub(crate) fn layer_handle<L: Layer>(chat: &Conversation) -> Result<LayerHandle<L>, EngineError> {
    let layers = chat.layers();
    let found = layers.layer_of_type::<L>();
    let (id, _) = found.ok_or_else(|| LayerError::from_message("there is no such layer"))?;
    Ok(LayerHandle {
        chat: chat.clone(),
        id: id.clone(),
        of: PhantomData,
    })
}

/// Calls a layer's function by the tool name that models use, and stores what it changed.
pub(crate) async fn call_layer_function(
    chat: &Conversation,
    tool: &str,
    arguments: &Raw,
) -> Result<Raw, EngineError> {
    let mut call = FunctionCallChange {
        tool,
        arguments,
        result: Raw::null(),
    };
    change_layers(chat, &mut call).await?;
    Ok(call.result)
}

/// Changes states and stores them; changes newer ones where another was faster.
async fn change_layers(
    chat: &Conversation,
    change: &mut dyn LayerStateChange,
) -> Result<(), EngineError> {
    let mut tries = STALE_STATE_TRIES;
    loop {
        tries -= 1;
        let mut session = open_session(chat, None).await?;
        let LayerSession {
            layers,
            states,
            context,
            ..
        } = &mut session;
        change.apply_change(layers, states, context).await?;
        // The change ran on the states that were read; after a conflict it runs again on newer ones.
        match store_changes(chat, &session).await {
            Err(error) if tries > 0 && error.is_stale_state() => continue,
            stored => stored?,
        }
        // Only after the store took it: events of a lost attempt tell of changes that never happened.
        publish_layer_events(chat, &session);
        return Ok(());
    }
}

/// Stores what was changed with a node of its own. A single state outside the tree needs none.
async fn store_changes(chat: &Conversation, session: &LayerSession) -> Result<(), EngineError> {
    let now = chat.engine().now_ms();
    let changes = session.tree_changes()?;
    let shared = session.shared_changes(now)?;
    let mut entries: Vec<_> = shared.into_iter().map(|(_, put)| put).collect();
    // One entry outside the tree is atomic by itself. Several, or one with a change on the tree, need an append
    // to be stored together.
    if changes.is_empty() && entries.len() <= 1 {
        if let Some((scope, put)) = entries.pop() {
            chat.store().put_entry(chat.owner(), &scope, put).await?;
        }
        return Ok(());
    }
    let node = NodeId::of_operation(&chat.engine().new_key(), 0);
    let at = AppendPoint::Tip {
        branch: chat.branch(),
    };
    let mut request = AppendRequest::new(at, vec![state_node(node, now)?], now);
    request.patch = StatePatch { changes, from: 0 };
    request.entries = entries;
    append_with_copies(chat, request).await?;
    Ok(())
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
        let session = open_session(&self.chat, None).await?;
        Ok(session.state::<L>()?.clone())
    }

    /// What the layer shows of its state.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn export_state(&self) -> Result<Raw, EngineError> {
        open_session(&self.chat, None)
            .await?
            .export_state(self.id.as_str())
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
        let mut updating = StateUpdate {
            change,
            value: None,
            of: PhantomData::<fn() -> L>,
        };
        change_layers(&self.chat, &mut updating).await?;
        let value = updating
            .value
            .ok_or_else(|| LayerError::from_message("nothing was changed"))?;
        Ok(value)
    }
}
