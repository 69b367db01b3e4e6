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
    /// # Errors
    /// [`EngineError::Layers`], or the store's; the session is as it was then.
    pub async fn refresh_session(&self, session: &mut LayerSession) -> Result<(), EngineError> {
        refresh_session(self, session).await
    }

    /// Returns a handle on the layer of this type.
    ///
    /// # Errors
    /// [`EngineError::LayerState`] where the handle has none.
    pub fn layer<L: Layer>(&self) -> Result<LayerHandle<L>, EngineError> {
        layer_handle(self)
    }

    /// Calls a layer's function by the tool name that models use, and stores what it changed.
    ///
    /// # Errors
    /// [`EngineError::Function`], or the store's.
    pub async fn call_function(&self, tool: &str, arguments: &Raw) -> Result<Raw, EngineError> {
        call_layer_function(self, tool, arguments).await
    }

    /// Opens the layers at this branch's head, for a run or for none.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's.
    pub async fn layer_session(&self, run: Option<RunScope>) -> Result<LayerSession, EngineError> {
        open_session(self, run).await
    }

    /// Opens the layers of a child run on this handle's branch; their first states come from the parent's.
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
    pub fn track_side_usage(&self, session: &mut LayerSession, tracker: Arc<dyn SideUsageTracker>) {
        track_side_usage(self, session, tracker)
    }
}
