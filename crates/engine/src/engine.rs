//! The public methods of [`Engine`]: construction, options, conversations, targets, sessions of other programs.
//!
//! Each calls the free function of the module that owns the rule. The fields and the getters are in `handle`.

use std::borrow::Cow;
use std::sync::Arc;

use contexture_catalogue::Catalogue;
use contexture_compile::Target;
use contexture_ir::{ConversationId, Owner, RunId};
use contexture_layers::Layers;
use contexture_models::Model;
use contexture_offload::OffloadStore;
use contexture_sessions::Session;
use contexture_store::{
    Conversation as Record, ConversationPage, ListConversations, MemoryStore, SearchPage,
    SearchRequest, Store,
};

use crate::builder::ConversationBuilder;
use crate::error::EngineError;
use crate::handle::{
    Clock, Engine, Events, HandleCaches, IdSource, LayerModel, OutputCopies, RandomIds,
    RecordLevel, Secrets, SystemClock, TargetChoice, delete_conversation, list_conversations,
    load_conversation_info, register_targets, resolve_target, unregister_targets,
};
use crate::import::{ImportOptions, Imported, import_session};
use crate::ingest::{IngestRequest, Ingested, ingest_request, rebuild_path_index};
use crate::search::search_owner;

impl Engine {
    /// Names a conversation, to be opened or found.
    pub fn conversation(&self, id: impl AsRef<str>) -> ConversationBuilder {
        ConversationBuilder::new(self.clone(), id.as_ref())
    }

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

    /// Returns an engine whose conversations are gone with the process.
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
        list_conversations(self, owner, list).await
    }

    /// A conversation's record.
    pub async fn conversation_info(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Record, EngineError> {
        load_conversation_info(self, owner, id).await
    }

    /// Deletes a conversation and everything that hangs off it.
    pub async fn delete_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<(), EngineError> {
        delete_conversation(self, owner, id).await
    }

    /// An id for a new run.
    #[must_use]
    pub fn new_run_id(&self) -> RunId {
        RunId::from_bytes(self.new_key())
    }

    /// Keeps a session as a conversation.
    ///
    /// # Errors
    /// [`EngineError::ConversationExists`] if the id is taken by a conversation that does not begin
    /// like this session, [`EngineError::OtherResource`] if it is about another resource than the named one,
    /// or the store's.
    pub async fn import(
        &self,
        session: &Session,
        options: &ImportOptions,
    ) -> Result<Imported, EngineError> {
        import_session(self, session, options).await
    }

    /// Finds the conversation of a request whose client keeps no state, and stores what is new of it.
    ///
    /// In this order: the conversation that the client names, which is made if it is not there; the one
    /// with the answer it names; the one of this owner and partition whose beginning is the longest that
    /// the request shares, if that holds an answer recorded here and the request goes on at its end or
    /// repeats it; else a new one. A client that names its conversation and leaves the path gets a branch
    /// there, or is laid along the path's end if it sent only the last of it.
    ///
    /// Costs what is hashed, one look-up and one append, at any length; the stored path is not read.
    /// Leading instructions are kept as state, so that a date in them parts nothing. The same request
    /// again stores nothing; without a name, and before an answer was recorded, it is a conversation of
    /// its own. Where the store has no [index](contexture_store::PathIndex), only names are found.
    ///
    /// # Errors
    /// A name that breaks its rule, or the store's; what was stored until then of a conversation that the client names is
    /// a beginning, and the same request goes on from there. Of another nothing stays.
    pub async fn ingest(
        &self,
        owner: &Owner,
        incoming: IngestRequest<'_>,
    ) -> Result<Ingested, EngineError> {
        ingest_request(self, owner, incoming).await
    }

    /// Makes the index of a conversation's histories again: after a change of the rule by which they are
    /// hashed, and for conversations that were imported. Gives how many places it has.
    ///
    /// Reads all paths. What is there of the same rule stays. What was redacted cannot be hashed again,
    /// neither can the copy of a cut answer that a client has: they cost a new conversation if they are
    /// missing. Does nothing where the store has no index.
    ///
    /// # Errors
    /// `NotFound`, or the store's.
    pub async fn rebuild_paths(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<usize, EngineError> {
        rebuild_path_index(self, owner, id).await
    }

    /// The same engine with a target by this name, in the place of an earlier one. The first is the
    /// default until [`Self::with_default_target`] names another.
    ///
    /// ```
    /// use contexture_compile::Target;
    /// use contexture_engine::{Engine, TargetChoice};
    ///
    /// let engine = Engine::in_memory()
    ///     .with_target("careful", Target::anthropic("claude-sonnet-4-5"))
    ///     .with_target("fast", Target::openai_chat("gpt-4o-mini"));
    /// assert_eq!(engine.resolve_target("fast")?.model(), "gpt-4o-mini");
    /// assert_eq!(engine.resolve_target(TargetChoice::Default)?.model(), "claude-sonnet-4-5");
    /// # Ok::<(), contexture_engine::EngineError>(())
    /// ```
    #[must_use]
    pub fn with_target(self, name: impl Into<String>, target: Target) -> Self {
        self.targets().set_target(name.into(), target);
        self
    }

    /// The same engine with the target of this name as the default.
    #[must_use]
    pub fn with_default_target(self, name: impl Into<String>) -> Self {
        self.targets().set_default(name.into());
        self
    }

    /// Registers targets that come and go together, a plug-in's say, for this engine and its clones; they
    /// take the place of others of their names.
    pub fn register_targets(
        &self,
        source: &str,
        targets: impl IntoIterator<Item = (String, Target)>,
    ) {
        register_targets(self, source, targets)
    }

    /// Takes back what came from a source, and gives the names. Those that were there before do not come
    /// back.
    pub fn unregister_targets(&self, source: &str) -> Vec<String> {
        unregister_targets(self, source)
    }

    /// The target of a call: its own, or that of a name, or the default.
    ///
    /// # Errors
    /// [`EngineError::NoTarget`], with the names there are.
    pub fn resolve_target<'a>(
        &self,
        choice: impl Into<TargetChoice<'a>>,
    ) -> Result<Cow<'a, Target>, EngineError> {
        resolve_target(self, choice.into())
    }

    /// The texts of an owner's conversations that have everything a query asks for, best first.
    ///
    /// Words as they are, "side by side" in double quotes, beginn* with a star; any text is a query.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::Engine;
    /// use contexture_ir::{Owner, user};
    /// use contexture_store::{SearchRequest, SearchScope};
    ///
    /// let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").owner("acme/ada").open().await?;
    /// chat.save([user("Refund everything except the gloves")]).await?;
    ///
    /// let request = SearchRequest::new("glov* \"refund everything\"", SearchScope::Owner);
    /// let page = engine.search(&Owner::new("acme/ada")?, request).await?;
    /// let snippet = &page.hits[0].snippet;
    /// assert_eq!(&snippet.text[snippet.matches[0].clone()], "Refund everything");
    /// # Ok::<(), contexture_engine::EngineError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::CannotSearch`] where the store has no search; else as
    /// [`Search::search_nodes`](contexture_store::Search::search_nodes).
    pub async fn search(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, EngineError> {
        search_owner(self, owner, request).await
    }
}
