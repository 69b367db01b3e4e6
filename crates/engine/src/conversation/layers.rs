//! The layers of a conversation: sessions for runs, typed handles for programs.

use std::sync::Arc;

use contexture_ir::Raw;
use contexture_layers::Layer;
use contexture_store::PathEnd;

use crate::error::EngineError;
use crate::handle::{Conversation, SideUsageTracker};
use crate::hooks::{
    LayerHandle, LayerSession, RunScope, call_layer_function, layer_handle, open_child_session,
    open_session, open_session_at, refresh_session, track_side_usage,
};

impl Conversation {
    /// Reads a session's states again, as they are stored at this branch's head now, and tells the layers again what
    /// they were told since the last append. For whoever finds that an append was made on older states
    /// ([`EngineError::is_stale_state`]): what layers were *asked* since then is to be asked again.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_ir::Raw;
    /// use contexture_layers::{Layers, builtin::memory::{Memory, Notes}};
    /// # use contexture_engine::Engine;
    ///
    /// let layers = Layers::new().with_layer(Memory::new())?;
    /// let chat = Engine::in_memory().with_layers(layers).conversation("c").open().await?;
    /// let mut session = chat.layer_session(None).await?;
    /// // Somebody else changes the layer's state meanwhile.
    /// chat.call_function("create_memory", &Raw::parse(r#"{"key":"tone","value":"brief"}"#)?).await?;
    /// chat.refresh_session(&mut session).await?;
    /// assert!(session.state::<Memory>()?.get("tone").is_some());
    /// # let _: &Notes = session.state::<Memory>()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's; the session is as it was then.
    pub async fn refresh_session(&self, session: &mut LayerSession) -> Result<(), EngineError> {
        refresh_session(self, session).await
    }

    /// Returns a handle on the layer of this type.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_ir::Raw;
    /// use contexture_layers::{Layers, builtin::memory::Memory};
    /// # use contexture_engine::Engine;
    ///
    /// let layers = Layers::new().with_layer(Memory::new())?;
    /// let chat = Engine::in_memory().with_layers(layers).conversation("c").open().await?;
    /// chat.call_function("create_memory", &Raw::parse(r#"{"key":"tone","value":"brief"}"#)?).await?;
    /// let notes = chat.layer::<Memory>()?.state().await?;
    /// assert!(notes.get("tone").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::LayerState`] where the handle has none.
    pub fn layer<L: Layer>(&self) -> Result<LayerHandle<L>, EngineError> {
        layer_handle(self)
    }

    /// Calls a layer's function by the tool name that models use, and stores what it changed.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_ir::Raw;
    /// use contexture_layers::{Layers, builtin::memory::Memory};
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    ///
    /// let layers = Layers::new().with_layer(Memory::new())?;
    /// let chat = Engine::in_memory().with_layers(layers).conversation("c").open().await?;
    /// chat.call_function("create_memory", &Raw::parse(r#"{"key":"tone","value":"brief"}"#)?).await?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::openai_chat("gpt-4o")).await?;
    /// assert!(call.payload.to_json().contains("brief"), "notes are part of every call");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Function`], or the store's.
    pub async fn call_function(&self, tool: &str, arguments: &Raw) -> Result<Raw, EngineError> {
        call_layer_function(self, tool, arguments).await
    }

    /// Opens the layers at this branch's head, for a run or for none.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_layers::{Layers, builtin::memory::Memory};
    /// # use contexture_engine::Engine;
    ///
    /// let layers = Layers::new().with_layer(Memory::new())?;
    /// let chat = Engine::in_memory().with_layers(layers).conversation("c").open().await?;
    /// let session = chat.layer_session(None).await?;
    /// assert!(session.state::<Memory>()?.get("tone").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn layer_session(&self, run: Option<RunScope>) -> Result<LayerSession, EngineError> {
        open_session(self, run).await
    }

    /// Opens the layers of a child run on this handle's branch; their first states come from the parent's.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::RunScope;
    /// use contexture_layers::{Layers, builtin::memory::Memory};
    /// # use contexture_engine::Engine;
    ///
    /// let layers = Layers::new().with_layer(Memory::new())?;
    /// let engine = Engine::in_memory().with_layers(layers);
    /// let chat = engine.conversation("c").open().await?;
    /// let parent = chat.layer_session(Some(RunScope { id: engine.new_run_id(), depth: 0 })).await?;
    /// let run = RunScope { id: engine.new_run_id(), depth: 1 };
    /// let child = chat.child_session(run, &parent).await?;
    /// assert!(!child.layers().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn child_session(
        &self,
        run: RunScope,
        parent: &LayerSession,
    ) -> Result<LayerSession, EngineError> {
        open_child_session(self, run, parent).await
    }

    /// Opens the layers at any place of the tree, for a run or for none.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_layers::{Layers, builtin::memory::Memory};
    /// use contexture_store::PathEnd;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    ///
    /// let layers = Layers::new().with_layer(Memory::new())?;
    /// let chat = Engine::in_memory().with_layers(layers).conversation("c").open().await?;
    /// let saved = chat.save([user("Hello")]).await?;
    /// let session = chat.layer_session_at(PathEnd::Node(saved.nodes[0]), None).await?;
    /// assert!(!session.layers().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn layer_session_at(
        &self,
        at: PathEnd,
        run: Option<RunScope>,
    ) -> Result<LayerSession, EngineError> {
        open_session_at(self, at, run).await
    }

    /// Counts model calls of the session's layers with this tracker from now on.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::{Arc, Mutex};
    ///
    /// use contexture_engine::{Engine, SideUsageTracker};
    /// use contexture_ir::Usage;
    /// use contexture_store::StateChange;
    ///
    /// #[derive(Debug, Default)]
    /// struct CallCounter(Mutex<Vec<String>>);
    ///
    /// impl SideUsageTracker for CallCounter {
    ///     fn record_call(&self, by: &str, _model: &str, _usage: &Usage) {
    ///         self.0.lock().unwrap().push(by.to_owned());
    ///     }
    ///     fn pending_change(&self) -> Option<StateChange> {
    ///         None
    ///     }
    ///     fn mark_stored(&self) {}
    /// }
    ///
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// let mut session = chat.layer_session(None).await?;
    /// let counter = Arc::new(CallCounter::default());
    /// chat.track_side_usage(&mut session, counter.clone());
    /// assert!(counter.0.lock().unwrap().is_empty(), "no layer has asked a model yet");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn track_side_usage(&self, session: &mut LayerSession, tracker: Arc<dyn SideUsageTracker>) {
        track_side_usage(self, session, tracker)
    }
}
