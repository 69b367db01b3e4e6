//! The handle on one conversation.
//!
//! Cheap to clone, shared between tasks, `&self` throughout. The handle remembers three things of its
//! own: the branch it works on, and the fragments and the asides a program set on it. Everything else is read from
//! the store when asked, so two handles never disagree about what happened.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use contexture_compile::{CallContext, Scratch};
use contexture_ir::{BranchName, ConversationId, Fragment, Owner, Raw};
use contexture_layers::{Layers, RecallCache};
use contexture_store::{
    Conversation as Record, ConversationUpdate, Error as StoreError, MetadataChange, NodeState,
    PathEnd, ReadRequest, StateChange, Store, TitleChange,
};

use crate::calibrations::CalibrationCache;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::events::{EngineEvent, EngineEventKind};
use crate::instructions::{Instructions, PREFIX, fragments_change, require_data_fragments};
use crate::path::StoredPath;
use crate::seen::PathCache;
use crate::warm::HandleCache;

/// One conversation, seen from one branch.
#[derive(Clone)]
pub struct Conversation {
    inner: Arc<ConversationInner>,
}

struct ConversationInner {
    engine: Engine,
    owner: Owner,
    id: ConversationId,
    local: Mutex<HandleState>,
    cache: Arc<HandleCache>,
    calibrations: CalibrationCache,
    recall_cache: Mutex<RecallCache>,
    resource: OnceLock<Option<String>>,
}

/// What a handle remembers.
struct HandleState {
    branch: BranchName,
    /// `None` until `set` is called: then what the path carries counts.
    fragments: Option<Vec<Fragment>>,
    call_context: CallContext,
    layers: Layers,
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
            fragments: None,
            call_context: CallContext::new(),
            layers: engine.layers().clone(),
        });
        let warm = engine.handle_cache(&owner, &id);
        Self {
            inner: Arc::new(ConversationInner {
                engine,
                owner,
                id,
                local,
                cache: warm,
                calibrations: CalibrationCache::default(),
                recall_cache: Mutex::default(),
                resource: OnceLock::new(),
            }),
        }
    }

    /// The conversation's id.
    #[must_use]
    pub fn id(&self) -> &ConversationId {
        &self.inner.id
    }

    /// Whose it is.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.inner.owner
    }

    /// The branch this handle works on.
    #[must_use]
    pub fn branch(&self) -> BranchName {
        self.lock_state().branch.clone()
    }

    /// The engine it was opened from.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Replaces the handle's fragments: what the model is told before the history.
    ///
    /// They belong to the handle; each append also records the list on the path, so that a rewind
    /// brings back what was said at the time. Fragments with `persist: false` are not recorded.
    ///
    /// # Errors
    /// [`EngineError::NotData`] for a fragment that carries a message.
    pub fn set(&self, fragments: impl IntoIterator<Item = Fragment>) -> Result<(), EngineError> {
        let fragments: Vec<Fragment> = fragments.into_iter().collect();
        require_data_fragments(&fragments)?;
        self.lock_state().fragments = Some(fragments);
        Ok(())
    }

    /// Adds fragments behind those of the handle.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn add(&self, fragments: impl IntoIterator<Item = Fragment>) -> Result<(), EngineError> {
        let fragments: Vec<Fragment> = fragments.into_iter().collect();
        require_data_fragments(&fragments)?;
        self.lock_state()
            .fragments
            .get_or_insert_default()
            .extend(fragments);
        Ok(())
    }

    /// Removes the handle's fragments with this id and says how many there were.
    pub fn unset(&self, id: &str) -> usize {
        let mut local = self.lock_state();
        let Some(fragments) = &mut local.fragments else {
            return 0;
        };
        let before = fragments.len();
        fragments.retain(|fragment| fragment.id.as_deref() != Some(id));
        before - fragments.len()
    }

    /// The handle's fragments; empty until something is set.
    #[must_use]
    pub fn fragments(&self) -> Vec<Fragment> {
        self.lock_state().fragments.clone().unwrap_or_default()
    }

    /// Sets what is said beside the conversation with every compile of this handle: context, state,
    /// guardrails, the line about the window. It is not recorded on the path, but kept with each answer that
    /// was compiled with it.
    ///
    /// ```
    /// use contexture_compile::{Contribution, Placement};
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use contexture_engine::Engine;
    ///
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// let state = Contribution::state(&["ship it"], Placement::Tail)?;
    /// chat.update_call_context(|aside| {
    ///     aside.set_context("open_file", "src/main.rs");
    ///     aside.set_state(Some(state));
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update_call_context<T>(&self, change: impl FnOnce(&mut CallContext) -> T) -> T {
        // On a copy, so that a panic changes nothing and nothing waits for `change`.
        let mut aside = self.call_context();
        let out = change(&mut aside);
        self.lock_state().call_context = aside;
        out
    }

    /// The conversation's record: title, metadata, counts.
    pub async fn info(&self) -> Result<Record, EngineError> {
        Ok(self
            .store()
            .load_conversation(self.owner(), self.id())
            .await?)
    }

    /// Changes the title; `None` removes it.
    pub async fn set_title(&self, title: Option<&str>) -> Result<(), EngineError> {
        let title = TitleChange::Set(title.map(str::to_owned));
        let at = self.engine().now_ms();
        self.update_record(ConversationUpdate {
            title,
            ..ConversationUpdate::new(at)
        })
        .await
    }

    /// Sets or, with `None`, removes one metadata entry; others stay.
    pub async fn set_metadata(&self, key: &str, value: Option<Raw>) -> Result<(), EngineError> {
        let metadata = MetadataChange::Merge([(key.to_owned(), value)].into());
        let at = self.engine().now_ms();
        self.update_record(ConversationUpdate {
            metadata,
            ..ConversationUpdate::new(at)
        })
        .await
    }

    async fn update_record(&self, update: ConversationUpdate) -> Result<(), EngineError> {
        self.store()
            .update_conversation(self.owner(), self.id(), update)
            .await?;
        Ok(())
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.inner.engine.store().as_ref()
    }

    /// Tells whoever watches the engine.
    pub(crate) fn publish(&self, what: impl FnOnce() -> EngineEventKind) {
        self.engine().watchers().publish(|| EngineEvent {
            owner: self.owner().clone(),
            conversation: self.id().clone(),
            what: what(),
        });
    }

    pub(crate) fn set_branch(&self, branch: BranchName) {
        self.lock_state().branch = branch;
    }

    /// Where this handle stands.
    pub(crate) fn current_position(&self) -> PathEnd {
        PathEnd::Branch(self.branch())
    }

    /// What is said before the history: the handle's fragments if any were set, else what the path
    /// carries; imported leading messages in any case.
    pub(crate) async fn instructions_at_position(
        &self,
        at: PathEnd,
    ) -> Result<Instructions, EngineError> {
        self.instructions_from_state(&self.state_at(at, PREFIX).await?)
    }

    /// The same, of a state that was read.
    pub(crate) fn instructions_from_state(
        &self,
        state: &NodeState,
    ) -> Result<Instructions, EngineError> {
        let mut instructions = Instructions::from_state(state)?;
        if let Some(fragments) = self.lock_state().fragments.clone() {
            instructions.fragments = fragments;
        }
        Ok(instructions)
    }

    /// The state change that goes with every append of this handle.
    pub(crate) fn fragment_change(&self) -> Result<Option<StateChange>, EngineError> {
        self.lock_state()
            .fragments
            .as_deref()
            .map(fragments_change)
            .transpose()
    }

    pub(crate) async fn load_path(&self, request: ReadRequest) -> Result<StoredPath, EngineError> {
        StoredPath::load(self.store(), self.owner(), self.id(), request).await
    }

    /// What is said beside the conversation now.
    pub(crate) fn call_context(&self) -> CallContext {
        self.lock_state().call_context.clone()
    }

    pub(crate) fn calibration_cache(&self) -> &CalibrationCache {
        &self.inner.calibrations
    }

    /// Replaces the handle's layers. Their states are where they were: on the path, with the resource, with the owner.
    pub fn set_layers(&self, layers: Layers) {
        self.lock_state().layers = layers;
    }

    /// The handle's layers; the engine's until others are set.
    #[must_use]
    pub fn layers(&self) -> Layers {
        self.lock_state().layers.clone()
    }

    /// The conversation's resource. It never changes.
    pub(crate) async fn load_resource(&self) -> Result<Option<String>, EngineError> {
        if let Some(resource) = self.inner.resource.get() {
            return Ok(resource.clone());
        }
        let resource = self.info().await?.resource;
        Ok(self.inner.resource.get_or_init(|| resource).clone())
    }

    /// What layers said last. Whoever takes it puts it back.
    pub(crate) fn recall_cache(&self) -> MutexGuard<'_, RecallCache> {
        let recalled = self.inner.recall_cache.lock();
        recalled.unwrap_or_else(PoisonError::into_inner)
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

    fn lock_state(&self) -> MutexGuard<'_, HandleState> {
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

/// `NotFound` for a message.
pub(crate) fn message_not_found(id: &str) -> EngineError {
    StoreError::not_found(contexture_store::EntityKind::Message, id).into()
}
