//! The handle on one conversation.
//!
//! Cheap to clone, shared between tasks, `&self` throughout. The handle remembers three things of its
//! own: the branch it works on, and the fragments and the asides a program set on it. Everything else is read from
//! the store when asked, so two handles never disagree about what happened.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use contexture_compile::{Aside, Scratch};
use contexture_ir::{BranchName, ConversationId, Fragment, Owner, Raw};
use contexture_layers::{Layers, Recalled};
use contexture_store::{
    At, Conversation as Record, ConversationUpdate, Error as StoreError, MetadataChange,
    ReadRequest, State, StateChange, Store, TitleChange,
};

use crate::calibrations::Calibrations;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::events::{EngineEvent, Happened};
use crate::instructions::{Instructions, PREFIX, check_data, record_fragments};
use crate::path::Path;
use crate::seen::Seen;
use crate::warm::Warm;

/// One conversation, seen from one branch.
#[derive(Clone)]
pub struct Conversation {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    owner: Owner,
    id: ConversationId,
    local: Mutex<Local>,
    warm: Arc<Warm>,
    calibrations: Calibrations,
    recalled: Mutex<Recalled>,
    resource: OnceLock<Option<String>>,
}

/// What a handle remembers.
struct Local {
    branch: BranchName,
    /// `None` until `set` is called: then what the path carries counts.
    fragments: Option<Vec<Fragment>>,
    aside: Aside,
    layers: Layers,
}

impl Conversation {
    pub(crate) fn new(
        engine: Engine,
        owner: Owner,
        id: ConversationId,
        branch: BranchName,
    ) -> Self {
        let local = Mutex::new(Local {
            branch,
            fragments: None,
            aside: Aside::new(),
            layers: engine.layers().clone(),
        });
        let warm = engine.warm(&owner, &id);
        Self {
            inner: Arc::new(Inner {
                engine,
                owner,
                id,
                local,
                warm,
                calibrations: Calibrations::default(),
                recalled: Mutex::default(),
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
        self.local().branch.clone()
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
        check_data(&fragments)?;
        self.local().fragments = Some(fragments);
        Ok(())
    }

    /// Adds fragments behind those of the handle.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn add(&self, fragments: impl IntoIterator<Item = Fragment>) -> Result<(), EngineError> {
        let fragments: Vec<Fragment> = fragments.into_iter().collect();
        check_data(&fragments)?;
        self.local()
            .fragments
            .get_or_insert_default()
            .extend(fragments);
        Ok(())
    }

    /// Removes the handle's fragments with this id and says how many there were.
    pub fn unset(&self, id: &str) -> usize {
        let mut local = self.local();
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
        self.local().fragments.clone().unwrap_or_default()
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
    /// chat.aside(|aside| {
    ///     aside.set_context("open_file", "src/main.rs");
    ///     aside.set_state(Some(state));
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn aside<T>(&self, change: impl FnOnce(&mut Aside) -> T) -> T {
        // On a copy, so that a panic changes nothing and nothing waits for `change`.
        let mut aside = self.aside_now();
        let out = change(&mut aside);
        self.local().aside = aside;
        out
    }

    /// The conversation's record: title, metadata, counts.
    pub async fn record_of(&self) -> Result<Record, EngineError> {
        Ok(self.store().conversation(self.owner(), self.id()).await?)
    }

    /// Changes the title; `None` removes it.
    pub async fn set_title(&self, title: Option<&str>) -> Result<(), EngineError> {
        let title = TitleChange::Set(title.map(str::to_owned));
        let at = self.engine().now_ms();
        self.update(ConversationUpdate {
            title,
            ..ConversationUpdate::at(at)
        })
        .await
    }

    /// Sets or, with `None`, removes one metadata entry; others stay.
    pub async fn set_metadata(&self, key: &str, value: Option<Raw>) -> Result<(), EngineError> {
        let metadata = MetadataChange::Merge([(key.to_owned(), value)].into());
        let at = self.engine().now_ms();
        self.update(ConversationUpdate {
            metadata,
            ..ConversationUpdate::at(at)
        })
        .await
    }

    async fn update(&self, update: ConversationUpdate) -> Result<(), EngineError> {
        self.store()
            .update_conversation(self.owner(), self.id(), update)
            .await?;
        Ok(())
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.inner.engine.store().as_ref()
    }

    /// Tells whoever watches the engine.
    pub(crate) fn tell(&self, what: impl FnOnce() -> Happened) {
        self.engine().watchers().tell(|| EngineEvent {
            owner: self.owner().clone(),
            conversation: self.id().clone(),
            what: what(),
        });
    }

    pub(crate) fn set_branch(&self, branch: BranchName) {
        self.local().branch = branch;
    }

    /// Where this handle stands.
    pub(crate) fn here(&self) -> At {
        At::Branch(self.branch())
    }

    /// What is said before the history: the handle's fragments if any were set, else what the path
    /// carries; imported leading messages in any case.
    pub(crate) async fn instructions(&self, at: At) -> Result<Instructions, EngineError> {
        self.instructions_in(&self.state_at(at, PREFIX).await?)
    }

    /// The same, of a state that was read.
    pub(crate) fn instructions_in(&self, state: &State) -> Result<Instructions, EngineError> {
        let mut instructions = Instructions::read(state)?;
        if let Some(fragments) = self.local().fragments.clone() {
            instructions.fragments = fragments;
        }
        Ok(instructions)
    }

    /// The state change that goes with every append of this handle.
    pub(crate) fn fragment_change(&self) -> Result<Option<StateChange>, EngineError> {
        self.local()
            .fragments
            .as_deref()
            .map(record_fragments)
            .transpose()
    }

    pub(crate) async fn path(&self, request: ReadRequest) -> Result<Path, EngineError> {
        Path::load(self.store(), self.owner(), self.id(), request).await
    }

    /// What is said beside the conversation now.
    pub(crate) fn aside_now(&self) -> Aside {
        self.local().aside.clone()
    }

    pub(crate) fn calibrations(&self) -> &Calibrations {
        &self.inner.calibrations
    }

    /// Replaces the handle's layers. Their states are where they were: on the path, with the resource, with the owner.
    pub fn set_layers(&self, layers: Layers) {
        self.local().layers = layers;
    }

    /// The handle's layers; the engine's until others are set.
    #[must_use]
    pub fn layers(&self) -> Layers {
        self.local().layers.clone()
    }

    /// The conversation's resource. It never changes.
    pub(crate) async fn resource(&self) -> Result<Option<String>, EngineError> {
        if let Some(resource) = self.inner.resource.get() {
            return Ok(resource.clone());
        }
        let resource = self.record_of().await?.resource;
        Ok(self.inner.resource.get_or_init(|| resource).clone())
    }

    /// What layers said last. Whoever takes it puts it back.
    pub(crate) fn recalled(&self) -> MutexGuard<'_, Recalled> {
        let recalled = self.inner.recalled.lock();
        recalled.unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn seen(&self) -> &Seen {
        &self.inner.warm.seen
    }

    /// Lends the memory of earlier compiles of this handle.
    pub(crate) fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        // What a panic left half done in a memo is at worst missing from it.
        work(
            &mut self
                .inner
                .warm
                .scratch
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn local(&self) -> MutexGuard<'_, Local> {
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
pub(crate) fn no_message(id: &str) -> EngineError {
    StoreError::not_found(contexture_store::Thing::Message, id).into()
}
