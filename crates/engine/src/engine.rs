//! The engine: a store, a clock, a source of ids and a catalogue, from which conversations open.

use std::sync::Arc;

use contexture_catalogue::Catalogue;
use contexture_compile::Target;
use contexture_ir::{ConversationId, NodeId, Owner, RunId};
use contexture_layers::Layers;
use contexture_models::Model;
use contexture_offload::OffloadStore;
use contexture_store::{
    Conversation as Record, ConversationPage, ListConversations, MemoryStore, Store,
};
use contexture_store_sqlite::SqliteStore;

use crate::compaction::CircuitBreakers;
use crate::copies::OutputCopies;
use crate::environment::{Clock, IdSource, RandomIds, SystemClock};
use crate::error::EngineError;
use crate::events::{Events, Watchers};
use crate::layer_model::LayerModel;
use crate::open::Database;
use crate::record_level::RecordLevel;
use crate::secrets::Secrets;
use crate::targets::Targets;
use crate::warm::{HandleCache, HandleCaches};

/// Opens and lists conversations. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Engine {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    catalogue: Arc<Catalogue>,
    secrets: Option<Arc<Secrets>>,
    copies: Option<OutputCopies>,
    breakers: Arc<CircuitBreakers>,
    record_level: RecordLevel,
    calibrates: bool,
    targets: Arc<Targets>,
    watchers: Arc<Watchers>,
    layers: Layers,
    layer_model: Option<Arc<LayerModel>>,
    handle_caches: Option<Arc<HandleCaches>>,
}

impl Engine {
    /// An engine over any store, with the machine's clock, random ids and the built-in catalogue.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            catalogue: Arc::new(Catalogue::builtin().clone()),
            secrets: None,
            copies: None,
            breakers: Arc::default(),
            record_level: RecordLevel::default(),
            calibrates: true,
            targets: Arc::default(),
            watchers: Arc::default(),
            layers: Layers::new(),
            layer_model: None,
            handle_caches: None,
        }
    }

    /// An engine over the database at an address: a path or `sqlite:<path>` (made if absent), or
    /// `memory:`.
    ///
    /// # Errors
    /// [`EngineError::UnsupportedDatabase`], or what the backend says of the file.
    pub async fn open(address: &str) -> Result<Self, EngineError> {
        Ok(match address.parse()? {
            Database::Memory => Self::in_memory(),
            Database::Sqlite(path) => Self::new(Arc::new(SqliteStore::open(path)?)),
        })
    }

    /// An engine that forgets with the process.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryStore::default()))
    }

    /// The same engine with another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The same engine with another source of ids.
    #[must_use]
    pub fn with_ids(mut self, ids: impl IdSource + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// The same engine with another catalogue of models.
    #[must_use]
    pub fn with_catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = Arc::new(catalogue);
        self
    }

    /// The same engine, that takes secrets out of items before they are stored: of messages, answers
    /// and sessions. Default: nothing is taken out. What the model is sent is compiled from what is
    /// stored, so it does not see them either.
    ///
    /// ```
    /// use contexture_engine::{Engine, Secrets};
    /// let engine = Engine::in_memory().with_secrets(Secrets::common());
    /// ```
    #[must_use]
    pub fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = Some(Arc::new(secrets));
        self
    }

    /// The same engine, that copies the texts of tool outputs of more than `over` bytes to a place outside
    /// the database, for programs that want a file. Default: nowhere.
    ///
    /// A copy is put after its output is stored, and before the call that stored it returns; one that
    /// fails is counted in [`EngineEventKind::Copied`](crate::EngineEventKind::Copied) and fails nothing else. What is
    /// missing is put by [`Conversation::reconcile_copies`](crate::Conversation::reconcile_copies): after
    /// a crash, and for sessions that were imported. Reads never ask the copies: the tree has every text.
    #[must_use]
    pub fn with_offload(mut self, store: Arc<dyn OffloadStore>, over: usize) -> Self {
        self.copies = Some(OutputCopies { store, over });
        self
    }

    /// The same engine, whose conversations have these layers unless a handle is given
    /// [others](crate::Conversation::set_layers). Default: none.
    #[must_use]
    pub fn with_layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    /// The same engine, whose layers may ask this model: observations are distilled by one, for instance. Default: none.
    /// What it is asked is its own matter: no figures of a run count it.
    #[must_use]
    pub fn with_layer_model(mut self, model: Arc<dyn Model>, target: Target) -> Self {
        self.layer_model = Some(Arc::new(LayerModel { model, target }));
        self
    }

    /// The same engine, keeping so much of each call with its answer. Default:
    /// [`RecordLevel::Inputs`]. What holds a secret that [`Self::with_secrets`] knows, or is larger than
    /// the store takes, is kept as hashes.
    #[must_use]
    pub const fn with_record_level(mut self, level: RecordLevel) -> Self {
        self.record_level = level;
        self
    }

    /// The same engine, that neither learns from the usage that providers report nor narrows its counts by
    /// what was learned. Default: it does both, per owner and model, and keeps what it learned among the
    /// owner's values, under `calibration/`.
    #[must_use]
    pub const fn without_calibration(mut self) -> Self {
        self.calibrates = false;
        self
    }

    /// The same engine, that keeps what was read of the conversations used last, and the memory of their compiles, of
    /// about so many bytes in all: for programs that open a handle for each request, as servers do. Default: each
    /// handle keeps its own, and nothing stays of it. It changes no result.
    #[must_use]
    pub fn with_handle_cache(mut self, bytes: usize) -> Self {
        self.handle_caches = Some(Arc::new(HandleCaches::new(bytes)));
        self
    }

    /// Watches this engine and its clones from now on: compiles, answers, compactions. Watchers never
    /// hold up or fail what they watch.
    #[must_use]
    pub fn subscribe(&self) -> Events {
        self.watchers.subscribe()
    }

    /// The owner's conversations, most recently updated first, a page at a time.
    pub async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, EngineError> {
        Ok(self.store.list_conversations(owner, list).await?)
    }

    /// A conversation's record.
    pub async fn conversation_info(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Record, EngineError> {
        Ok(self.store.load_conversation(owner, id).await?)
    }

    /// Deletes a conversation and everything that hangs off it.
    pub async fn delete_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<(), EngineError> {
        Ok(self.store.delete_conversation(owner, id).await?)
    }

    /// The store, for what the engine has no word for.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The catalogue of models.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub(crate) const fn output_copies(&self) -> Option<&OutputCopies> {
        self.copies.as_ref()
    }

    /// What is taken out of items before they are stored; `None` where nothing is.
    #[must_use]
    pub fn secrets(&self) -> Option<&Secrets> {
        self.secrets.as_deref()
    }

    pub(crate) const fn record_level(&self) -> RecordLevel {
        self.record_level
    }

    pub(crate) const fn should_calibrate(&self) -> bool {
        self.calibrates
    }

    pub(crate) const fn layers(&self) -> &Layers {
        &self.layers
    }

    pub(crate) fn layer_model(&self) -> Option<&LayerModel> {
        self.layer_model.as_deref()
    }

    /// What handles on a conversation save work with.
    pub(crate) fn handle_cache(&self, owner: &Owner, id: &ConversationId) -> Arc<HandleCache> {
        let kept = self
            .handle_caches
            .as_ref()
            .map(|warmth| warmth.cache_for(owner, id));
        kept.unwrap_or_default()
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    pub(crate) fn targets(&self) -> &Targets {
        &self.targets
    }

    pub(crate) fn circuit_breakers(&self) -> &CircuitBreakers {
        &self.breakers
    }

    /// The time by the engine's clock, in milliseconds since the Unix epoch.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// An id for a new run.
    #[must_use]
    pub fn new_run_id(&self) -> RunId {
        RunId::from_bytes(self.new_key())
    }

    /// A key from which the ids of one operation derive.
    pub(crate) fn new_key(&self) -> [u8; 16] {
        self.ids.new_id_bytes()
    }

    /// The id of the `index`-th node of the operation with this key.
    pub(crate) fn node_id(key: &[u8; 16], index: usize) -> NodeId {
        NodeId::derive("node", &[key, &(index as u64).to_le_bytes()])
    }
}
