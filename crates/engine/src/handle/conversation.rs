//! The fields and getters of a conversation's handle.
//!
//! A handle is cheap to clone, shared between tasks, and takes `&self` throughout. It remembers its branch, its layers,
//! the fragments, the renderer and the call context that a program set. Everything else is read from the store.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use contexture_compile::{CallContext, Scratch};
use contexture_ir::{BranchName, ConversationId, Owner};
use contexture_layers::{Layers, RecallCache};
use contexture_render::{Renderer, XmlRenderer};
use contexture_store::{AppendRequest, PathEnd, Store};

use super::engine::Engine;
use super::events::{EngineEvent, EngineEventKind};
use super::fragments::HandleFragments;
use super::handle_cache::{CalibrationCache, HandleCache};
use super::read_path::PathCache;
use crate::claim_fence::HandleFence;

/// One conversation, seen from one branch.
#[derive(Clone)]
pub struct Conversation {
    pub(crate) inner: Arc<ConversationInner>,
    /// The fence that appends name; `None` unless this handle belongs to a claim.
    fence: Option<HandleFence>,
    /// What this handle has of its own instead of what it shares; `None` for most handles.
    own: Option<Arc<OwnSettings>>,
}

/// What an agent sees of a conversation in its own way, on a handle that shares everything else.
struct OwnSettings {
    layers: Option<Layers>,
    renderer: Option<Arc<dyn Renderer>>,
    /// Its layers may have the ids of others of the conversation, so what they recalled is kept apart.
    recall_cache: Mutex<RecallCache>,
}

pub(crate) struct ConversationInner {
    pub(crate) engine: Engine,
    pub(crate) owner: Owner,
    pub(crate) id: ConversationId,
    pub(crate) local: Mutex<HandleState>,
    pub(crate) cache: Arc<HandleCache>,
    pub(crate) calibrations: CalibrationCache,
    pub(crate) recall_cache: Mutex<RecallCache>,
    pub(crate) resource: OnceLock<Option<String>>,
}

/// What a program set on a handle.
pub(crate) struct HandleState {
    pub(crate) branch: BranchName,
    pub(crate) fragments: HandleFragments,
    pub(crate) renderer: Arc<dyn Renderer>,
    pub(crate) call_context: CallContext,
    pub(crate) layers: Layers,
}

impl Conversation {
    pub(crate) fn new(
        engine: Engine,
        owner: Owner,
        id: ConversationId,
        branch: BranchName,
    ) -> Self {
        let local = Mutex::new(HandleState {
            branch,
            fragments: HandleFragments::default(),
            renderer: Arc::new(XmlRenderer::default()),
            call_context: CallContext::new(),
            layers: engine.layers().clone(),
        });
        // Shared with other handles on this conversation where the engine keeps caches, else of this handle alone.
        let cache = engine.handle_cache(&owner, &id);
        Self {
            inner: Arc::new(ConversationInner {
                engine,
                owner,
                id,
                local,
                cache,
                calibrations: CalibrationCache::default(),
                recall_cache: Mutex::default(),
                resource: OnceLock::new(),
            }),
            fence: None,
            own: None,
        }
    }

    /// Returns a handle that shares everything with this one, and whose appends name a fence.
    pub(crate) fn with_fence(&self, fence: HandleFence) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            fence: Some(fence),
            own: self.own.clone(),
        }
    }

    /// Returns a handle with layers and a renderer of its own that shares everything else with this one: its branch, its
    /// fragments, its call context, its claim. What is absent is shared as well, so a handle that has layers of its own keeps them when
    /// only a renderer is given. For agents that work on one conversation, each in
    /// its own way.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_layers::{Layers, builtin::memory::Memory};
    /// # use contexture_engine::Engine;
    ///
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// let own = chat.with_own_settings(Some(Layers::new().with_layer(Memory::new())?), None);
    /// assert!(!own.layers().is_empty());
    /// assert!(chat.layers().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_own_settings(
        &self,
        layers: Option<Layers>,
        renderer: Option<Arc<dyn Renderer>>,
    ) -> Self {
        if layers.is_none() && renderer.is_none() {
            return self.clone();
        }
        let before = self.own.as_deref();
        let own = OwnSettings {
            layers: layers.or_else(|| before?.layers.clone()),
            renderer: renderer.or_else(|| before?.renderer.clone()),
            recall_cache: Mutex::default(),
        };
        Self {
            own: Some(Arc::new(own)),
            ..self.clone()
        }
    }

    /// Names the fence of this handle's claim in an append to the claimed branch.
    pub(crate) fn apply_fence(&self, request: &mut AppendRequest) {
        if let Some(fence) = &self.fence {
            fence.apply(request);
        }
    }

    /// Returns the conversation's id.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("support-42").open().await?;
    /// assert_eq!(chat.id().as_str(), "support-42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> &ConversationId {
        &self.inner.id
    }

    /// Returns the owner.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("support-42").open().await?;
    /// assert_eq!(chat.owner().as_str(), "local");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.inner.owner
    }

    /// Returns the branch this handle works on.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("support-42").open().await?;
    /// assert_eq!(chat.branch().as_str(), "main");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn branch(&self) -> BranchName {
        self.lock_state().branch.clone()
    }

    /// Returns the engine that opened it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("support-42").open().await?;
    /// // Another conversation in the same store, without carrying the engine along.
    /// let other = chat.engine().conversation("support-43").open().await?;
    /// assert_ne!(chat.id(), other.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.inner.engine.store().as_ref()
    }

    /// Publishes an event to the watchers of the engine.
    pub(crate) fn publish(&self, what: impl FnOnce() -> EngineEventKind) {
        self.engine().watchers().publish(|| EngineEvent {
            owner: self.owner().clone(),
            conversation: self.id().clone(),
            kind: what(),
        });
    }

    pub(crate) fn set_branch(&self, branch: BranchName) {
        self.lock_state().branch = branch;
    }

    /// Returns the end of this handle's branch.
    pub(crate) fn current_position(&self) -> PathEnd {
        PathEnd::Branch(self.branch())
    }

    /// Returns the call context of this handle.
    pub(crate) fn call_context(&self) -> CallContext {
        self.lock_state().call_context.clone()
    }

    pub(crate) fn calibration_cache(&self) -> &CalibrationCache {
        &self.inner.calibrations
    }

    /// Replaces the handle's layers. Their states are where they were: on the path, with the resource, with the owner.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_layers::{Layers, builtin::memory::Memory};
    /// # use contexture_engine::Engine;
    ///
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.set_layers(Layers::new().with_layer(Memory::new())?);
    /// assert!(!chat.layers().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_layers(&self, layers: Layers) {
        self.lock_state().layers = layers;
    }

    /// The handle's layers; the engine's until others are set.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// assert!(chat.layers().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn layers(&self) -> Layers {
        let own = self.own.as_ref().and_then(|own| own.layers.clone());
        own.unwrap_or_else(|| self.lock_state().layers.clone())
    }

    /// Sets what writes fragments as text: those of the handle and those of its layers, in [`resolve`](Self::resolve) as in
    /// [`compile`](Self::compile). Default: XML.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::Arc;
    ///
    /// use contexture_render::MarkdownRenderer;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::hint;
    ///
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.set([hint("Be brief.")])?;
    /// assert_eq!(chat.resolve().await?.system_prompt, "<hint>Be brief.</hint>");
    /// chat.set_renderer(Arc::new(MarkdownRenderer::default()));
    /// assert!(!chat.resolve().await?.system_prompt.contains("<hint>"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_renderer(&self, renderer: Arc<dyn Renderer>) {
        self.lock_state().renderer = renderer;
    }

    /// Returns what writes fragments as text.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// assert_eq!(chat.renderer().name(), "xml");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn renderer(&self) -> Arc<dyn Renderer> {
        let own = self.own.as_ref().and_then(|own| own.renderer.clone());
        own.unwrap_or_else(|| Arc::clone(&self.lock_state().renderer))
    }

    /// Locks what layers recalled in the last call.
    pub(crate) fn recall_cache(&self) -> MutexGuard<'_, RecallCache> {
        let cache = match &self.own {
            Some(own) if own.layers.is_some() => &own.recall_cache,
            _ => &self.inner.recall_cache,
        };
        cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn path_cache(&self) -> &PathCache {
        &self.inner.cache.path_cache
    }

    /// Lends the memory of earlier compiles of this handle.
    pub(crate) fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        // What a panic left half done in a memo is at worst missing from it.
        work(
            &mut self
                .inner
                .cache
                .scratch
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    pub(crate) fn lock_state(&self) -> MutexGuard<'_, HandleState> {
        // A panic while the lock was held cannot leave a half-written value: each change is one
        // assignment.
        self.inner
            .local
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("owner", self.owner())
            .field("id", self.id())
            .field("branch", &self.branch())
            .finish_non_exhaustive()
    }
}
