//! The public methods of [`Engine`]: construction, options, conversations, sessions of other programs; in `targets` those about
//! targets.
//!
//! Each calls the free function of the module that owns the rule. The fields and the getters are in `handle`.

mod targets;

use std::sync::Arc;

use contexture_catalogue::{Catalogue, Cost};
use contexture_compile::Target;
use contexture_ir::{CallId, ConversationId, Owner, RunId, Transcript};
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
use crate::exchange::{Exchange, Exchanges};
use crate::handle::{
    BackgroundWork, Clock, ConversationOverview, Engine, Events, HandleCaches, IdSource,
    LayerModel, OutputCopies, RandomIds, RecordLevel, Secrets, SystemClock, answer_cost,
    delete_conversation, list_conversations, load_conversation_info, load_overviews,
};
use crate::import::{ImportOptions, Imported, import_session};
use crate::ingest::{IngestRequest, Ingested, ingest_request, rebuild_path_index};
use crate::past_call::{PastCall, find_past_call};
use crate::presence::Presence;
use crate::search::search_owner;

impl Engine {
    /// Returns a builder that opens or finds the conversation of this id.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::Engine;
    ///
    /// let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").owner("acme/ada").open().await?;
    /// assert_eq!(chat.id().as_str(), "support-42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn conversation(&self, id: impl AsRef<str>) -> ConversationBuilder {
        ConversationBuilder::new(self.clone(), id.as_ref())
    }

    /// Returns an engine over any store, with the machine's clock, random ids and the built-in catalogue.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::Arc;
    ///
    /// use contexture_engine::Engine;
    /// use contexture_store::MemoryStore;
    ///
    /// let store = Arc::new(MemoryStore::new());
    /// Engine::new(store.clone()).conversation("support-42").open().await?;
    /// // Conversations belong to the store: another engine over it finds them.
    /// let found = Engine::new(store).conversation("support-42").open_existing().await;
    /// assert!(found.is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
            background: BackgroundWork::default(),
            record_level: RecordLevel::default(),
            calibrates: true,
            targets: Arc::default(),
            watchers: Arc::default(),
            layers: Layers::new(),
            layer_model: None,
            handle_caches: None,
            last_bodies: None,
            exchanges: Exchanges::default(),
            presence: Presence::default(),
        }
    }

    /// Returns an engine whose conversations are gone with the process.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("scratch").open().await?;
    /// assert_eq!(chat.head().await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryStore::default()))
    }

    /// Returns the engine with another clock.
    ///
    /// ```
    /// use contexture_engine::{Engine, TestClock};
    ///
    /// // Tests that compare times want the same ones in every run.
    /// let engine = Engine::in_memory().with_clock(TestClock::new(1_000));
    /// assert_eq!(engine.now_ms(), 1_000);
    /// ```
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Returns the engine with another source of ids.
    ///
    /// ```
    /// use contexture_engine::{Engine, TestIds};
    ///
    /// let first = Engine::in_memory().with_ids(TestIds::default());
    /// let second = Engine::in_memory().with_ids(TestIds::default());
    /// assert_eq!(first.new_run_id(), second.new_run_id());
    /// ```
    #[must_use]
    pub fn with_ids(mut self, ids: impl IdSource + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// Returns the engine with another catalogue of models.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_catalogue::{Catalogue, Encoding, ModelSpec};
    /// use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    ///
    /// let catalogue = Catalogue::builtin().with_model(ModelSpec::new("house-model", 32_000, Encoding::O200kBase));
    /// let chat = Engine::in_memory().with_catalogue(catalogue).conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::openai_chat("house-model")).await?;
    /// assert_eq!(call.report.target.window, 32_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = Arc::new(catalogue);
        self
    }

    /// Returns the engine, set to take secrets out of items before they are stored: of messages, answers
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

    /// Returns the engine, set to copy the texts of tool outputs of more than `over` bytes to a place outside
    /// the database, for programs that want a file. Default: nowhere.
    ///
    /// A copy is put after its output is stored, and before the call that stored it returns; one that
    /// fails is counted in [`EngineEventKind::Copied`](crate::EngineEventKind::Copied) and fails nothing else. What is
    /// missing is put by [`Conversation::reconcile_copies`](crate::Conversation::reconcile_copies): after
    /// a crash, and for sessions that were imported. Reads never ask the copies: the tree has every text.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::Arc;
    ///
    /// use contexture_engine::Engine;
    /// use contexture_ir::{FunctionCall, FunctionCallOutput, Output};
    /// use contexture_offload::MemoryOffloadStore;
    ///
    /// let files = Arc::new(MemoryOffloadStore::new());
    /// let engine = Engine::in_memory().with_offload(files, 1_000);
    /// let events = engine.subscribe();
    /// let mut draft = engine.conversation("c").open().await?.draft();
    /// draft.push_item(FunctionCall::new("call_1", "read_log", "{}"));
    /// draft.push_item(FunctionCallOutput::new("call_1", Output::Text("line\n".repeat(1_000))));
    /// draft.commit().await?;
    /// assert!(std::iter::from_fn(|| events.try_next()).any(|event| matches!(
    ///     event.kind,
    ///     contexture_engine::EngineEventKind::Copied { report } if report.put == 1
    /// )));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_offload(mut self, store: Arc<dyn OffloadStore>, over: usize) -> Self {
        self.copies = Some(OutputCopies { store, over });
        self
    }

    /// Returns the engine with these layers for its conversations unless a handle is given
    /// [others](crate::Conversation::set_layers). Default: none.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::Engine;
    /// use contexture_layers::{Layers, builtin::memory::Memory};
    ///
    /// let layers = Layers::new().with_layer(Memory::new())?;
    /// let engine = Engine::in_memory().with_layers(layers);
    /// let chat = engine.conversation("support-42").open().await?;
    /// assert_eq!(chat.layers().functions().count(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    /// The same engine, whose layers may ask this model: observations are distilled by one, for instance. Default: none.
    /// What it is asked is its own matter: no figures of a run count it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use std::sync::Arc;
    ///
    /// use contexture_compile::Target;
    /// use contexture_engine::Engine;
    /// use contexture_layers::{Layers, builtin::Observations};
    /// use contexture_models::ScriptedModel;
    /// # use contexture_ir::user;
    /// # use contexture_wire::Format;
    ///
    /// let model = Arc::new(ScriptedModel::with_texts(Format::OpenAiChat, ["- Grace owns the parcel"]));
    /// let target = Target::openai_chat("gpt-4o");
    /// let engine = Engine::in_memory()
    ///     .with_layers(Layers::new().with_layer(Observations::new().with_model(100))?)
    ///     .with_layer_model(model, target.clone());
    /// let chat = engine.conversation("c").open().await?;
    /// let text = format!("The parcel is of Grace. {}", "And so on. ".repeat(60));
    /// chat.save([user(text.as_str())]).await?;
    /// let call = chat.compile(&target).await?;
    /// assert!(call.payload.to_json().contains("Grace owns the parcel"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_layer_model(mut self, model: Arc<dyn Model>, target: Target) -> Self {
        self.layer_model = Some(Arc::new(LayerModel { model, target }));
        self
    }

    /// The same engine, keeping so much of each call with its answer. Default:
    /// [`RecordLevel::Inputs`]. What holds a secret that [`Self::with_secrets`] knows, or is larger than
    /// the store takes, is kept as hashes.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::{Engine, EngineError, RecordLevel, Unreplayable};
    /// # use contexture_compile::Target;
    /// # use contexture_ir::user;
    ///
    /// let engine = Engine::in_memory().with_record_level(RecordLevel::Hashes);
    /// let chat = engine.conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
    /// let recorded = chat.record(&call, response).await?;
    /// // Hashes prove what was sent; they cannot rebuild it.
    /// let error = chat.replay(recorded.response).await.unwrap_err();
    /// assert!(matches!(error, EngineError::Unreplayable { reason: Unreplayable::NotRecorded, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_record_level(mut self, level: RecordLevel) -> Self {
        self.record_level = level;
        self
    }

    /// The same engine, that neither learns from the usage that providers report nor narrows its counts by
    /// what was learned. Default: it does both, per owner and model, and keeps what it learned among the
    /// owner's values, under `calibration/`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::Target;
    /// use contexture_engine::Engine;
    /// # use contexture_catalogue::Catalogue;
    ///
    /// let chat = Engine::in_memory().without_calibration().conversation("c").open().await?;
    /// let request = Target::anthropic("claude-sonnet-4-5").build_request(Catalogue::builtin())?;
    /// assert_eq!(chat.calibrated_range(&request).await, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn without_calibration(mut self) -> Self {
        self.calibrates = false;
        self
    }

    /// The same engine, that keeps what was read of the conversations used last, and the memory of their compiles, of
    /// about so many bytes in all: for programs that open a handle for each request, as servers do. Default: each
    /// handle keeps its own, and nothing stays of it. It changes no result.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::{Engine, MessageView};
    /// use contexture_ir::user;
    ///
    /// // A server opens a handle for each request; 64 MB of what they read is shared.
    /// let engine = Engine::in_memory().with_handle_cache(64 << 20);
    /// engine.conversation("c").open().await?.save([user("Hello")]).await?;
    /// let chat = engine.conversation("c").open().await?;
    /// assert_eq!(chat.messages(MessageView::User).await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_handle_cache(mut self, bytes: usize) -> Self {
        self.handle_caches = Some(Arc::new(HandleCaches::new(bytes)));
        self
    }

    /// The same engine, that keeps the bodies of requests as they came, for calls that are recorded with
    /// [`AnswerOptions::body`](crate::AnswerOptions). A body is stored as a difference to the body before and to the items of its
    /// conversation, without what [`Self::with_secrets`] knows. Default: none is kept, and a request is
    /// made again of its items.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::{AnswerOptions, Engine, IngestRequest};
    /// use contexture_ir::{CallId, Owner};
    /// use contexture_store::CallRecord;
    /// use contexture_wire::{Format, lift};
    ///
    /// let (engine, owner) = (Engine::in_memory().with_call_bodies(), Owner::new("ada")?);
    /// let body = r#"{ "model": "gpt-4o", "messages": [{"content": "Hello", "role": "user"}] }"#;
    /// let request = lift(Format::OpenAiChat, body)?.transcript;
    /// let mut ingested = engine.ingest(&owner, IngestRequest::new(&request)).await?;
    /// let id = CallId::from_time(1_700_000_000_000, [7; 10]);
    /// # let answer = r#"{"id":"1","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}"#;
    /// # let answer = lift(Format::OpenAiChat, answer)?.transcript;
    /// let body = ingested.encode_body(id, body).await?;
    /// let mut row = CallRecord::new(id, "openai");
    /// row.details.format = "openai-chat".to_owned();
    /// # row.body_hash = Some(contexture_ir::ContentHash::of(b""));
    /// let options = AnswerOptions { exchange: Some(row), body, ..AnswerOptions::default() };
    /// ingested.record_with(&answer, options).await?;
    /// let call = engine.past_call(&owner, id).await?.expect("just recorded");
    /// let came = call.request_as_it_came().await?.expect("its body was kept");
    /// assert!(came.json.starts_with(r#"{ "model""#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_call_bodies(mut self) -> Self {
        self.last_bodies = Some(Arc::default());
        self
    }

    /// Finds a call of an owner's record by its id; `None` if there is none, or the store keeps no record of calls.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::Engine;
    /// # use contexture_compile::Target;
    /// # use contexture_ir::{Owner, user};
    /// # use contexture_store::ListCalls;
    ///
    /// let engine = Engine::in_memory();
    /// let chat = engine.conversation("c").owner("ada").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
    /// chat.record(&call, response).await?;
    /// let owner = Owner::new("ada")?;
    /// let calls = engine.store().calls().expect("this store keeps a record");
    /// let id = calls.list_calls(&owner, ListCalls::default()).await?.calls[0].id;
    /// let past = engine.past_call(&owner, id).await?.expect("just listed");
    /// let sent = past.request_as_sent().await?.expect("its inputs were kept");
    /// assert!(sent.is_exact && sent.json == call.payload.to_json());
    /// assert_eq!(past.answer().await?.expect("it was stored").nodes.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn past_call(
        &self,
        owner: &Owner,
        id: CallId,
    ) -> Result<Option<PastCall>, EngineError> {
        find_past_call(self, owner, id).await
    }

    /// Watches this engine and its clones from now on: compiles, answers, compactions. Watchers never
    /// hold up or fail what they watch.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::{Engine, EngineEventKind};
    /// # use contexture_compile::Target;
    /// # use contexture_ir::user;
    ///
    /// let engine = Engine::in_memory();
    /// let events = engine.subscribe();
    /// let chat = engine.conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// chat.compile(&Target::openai_chat("gpt-4o")).await?;
    /// let start = events.try_next().map(|event| event.kind);
    /// assert_eq!(start, Some(EngineEventKind::CompileStart { model: "gpt-4o".to_owned() }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn subscribe(&self) -> Events {
        self.watchers.subscribe()
    }

    /// Lists the owner's conversations, most recently updated first, a page at a time.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::Engine;
    /// use contexture_ir::Owner;
    /// use contexture_store::ListConversations;
    ///
    /// let engine = Engine::in_memory();
    /// for id in ["first", "second", "third"] {
    ///     engine.conversation(id).owner("acme/ada").open().await?;
    /// }
    /// let list = ListConversations { limit: Some(2), ..ListConversations::default() };
    /// let page = engine.list_conversations(&Owner::new("acme/ada")?, list).await?;
    /// assert_eq!(page.conversations.len(), 2);
    /// assert!(page.next.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, EngineError> {
        list_conversations(self, owner, list).await
    }

    /// Loads what a list shows of conversations beside their records, in their order: how each begins, and what its calls of
    /// models used and cost.
    ///
    /// It reads the first items of each, and the sums of its calls.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::Engine;
    /// use contexture_ir::{Owner, user};
    /// use contexture_store::ListConversations;
    ///
    /// let engine = Engine::in_memory();
    /// let chat = engine.conversation("c").owner("acme/ada").open().await?;
    /// chat.save([user("Where is my parcel?")]).await?;
    /// let owner = Owner::new("acme/ada")?;
    /// let page = engine.list_conversations(&owner, ListConversations::default()).await?;
    /// let overviews = engine.conversation_overviews(&owner, &page.conversations).await?;
    /// assert_eq!(overviews[0].preview.as_deref(), Some("Where is my parcel?"));
    /// assert_eq!(overviews[0].calls.sum.calls, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn conversation_overviews(
        &self,
        owner: &Owner,
        conversations: &[Record],
    ) -> Result<Vec<ConversationOverview>, EngineError> {
        load_overviews(self, owner, conversations).await
    }

    /// Loads the record of a conversation: title, metadata, counts.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").title("Refunds").open().await?;
    /// let record = engine.conversation_info(chat.owner(), chat.id()).await?;
    /// assert_eq!(record.title.as_deref(), Some("Refunds"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn conversation_info(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Record, EngineError> {
        load_conversation_info(self, owner, id).await
    }

    /// Deletes a conversation and everything that hangs off it.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").open().await?;
    /// engine.delete_conversation(chat.owner(), chat.id()).await?;
    /// assert!(engine.conversation("support-42").open_existing().await.is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn delete_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<(), EngineError> {
        delete_conversation(self, owner, id).await
    }

    /// Returns an id for a new run.
    ///
    /// ```
    /// # use contexture_engine::Engine;
    /// let engine = Engine::in_memory();
    /// assert_ne!(engine.new_run_id(), engine.new_run_id());
    /// ```
    #[must_use]
    pub fn new_run_id(&self) -> RunId {
        RunId::from_bytes(self.new_key())
    }

    /// Imports a session as a conversation.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::{Engine, ImportOptions};
    /// use contexture_sessions::{ReadOptions, SessionFormat, read_sessions};
    /// use contexture_wire::Format;
    ///
    /// let text = r#"[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello!"}]"#;
    /// let format = SessionFormat::Wire(Format::OpenAiChat);
    /// let session = read_sessions(format, text, &ReadOptions::default())?.remove(0);
    /// let engine = Engine::in_memory();
    /// assert_eq!(engine.import(&session, &ImportOptions::default()).await?.new_nodes, 2);
    /// // The same session again stores nothing.
    /// assert_eq!(engine.import(&session, &ImportOptions::default()).await?.new_nodes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// Registers an exchange with a provider, as soon as its request arrives. Requests of the owner that come later, and
    /// hold its answer, are matched once that is recorded.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::{Engine, IngestRequest, MatchKind};
    /// use contexture_ir::{Message, Owner, Role, Transcript};
    ///
    /// let (engine, owner) = (Engine::in_memory(), Owner::local());
    /// let message = |role, text| Message::text(role, text).into();
    /// let question = Transcript { items: vec![message(Role::User, "The capital of Mali?")], ..Transcript::default() };
    /// let answer = Transcript { items: vec![message(Role::Assistant, "Bamako.")], ..Transcript::default() };
    ///
    /// let exchange = engine.begin_exchange(&owner);
    /// let asked = IngestRequest { exchange: Some(&exchange), ..IngestRequest::new(&question) };
    /// let first = engine.ingest(&owner, asked).await?;
    /// // The client has the answer, and asks on before it is recorded.
    /// drop(exchange.delivery());
    /// let mut history = Transcript::default();
    /// history.items.extend([question.items, answer.items.clone()].concat());
    /// history.items.push(message(Role::User, "And of Niger?"));
    /// let next = engine.begin_exchange(&owner);
    /// let asked = IngestRequest { exchange: Some(&next), ..IngestRequest::new(&history) };
    /// let record = async {
    ///     first.record(&answer).await?;
    ///     drop(exchange);
    ///     Ok::<(), contexture_engine::EngineError>(())
    /// };
    /// let (second, recorded) = futures_util::future::join(engine.ingest(&owner, asked), record).await;
    /// recorded?;
    /// assert_eq!(second?.matched, MatchKind::Prefix);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn begin_exchange(&self, owner: &Owner) -> Exchange {
        self.exchanges.begin_exchange(owner)
    }

    /// Returns what an answer with its usage costs, as far as the catalogue has prices; `None` for an unknown model, and
    /// where the answer says nothing of usage.
    #[must_use]
    pub fn answer_cost(&self, answer: &Transcript) -> Option<Cost> {
        answer_cost(self, answer)
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
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::{Engine, IngestRequest, MatchKind};
    /// use contexture_ir::{Message, Owner, Role, Transcript};
    ///
    /// let engine = Engine::in_memory();
    /// let mut history = Transcript::default();
    /// history.items.push(Message::text(Role::User, "What is the capital of Mali?").into());
    /// let first = engine.ingest(&Owner::local(), IngestRequest::new(&history)).await?;
    /// assert_eq!(first.matched, MatchKind::New);
    ///
    /// let mut answer = Transcript::default();
    /// answer.items.push(Message::text(Role::Assistant, "Bamako.").into());
    /// first.record(&answer).await?;
    ///
    /// // The client sends its whole history again; it is found by its content.
    /// history.items.extend(answer.items);
    /// history.items.push(Message::text(Role::User, "And of Niger?").into());
    /// let second = engine.ingest(&Owner::local(), IngestRequest::new(&history)).await?;
    /// assert_eq!(second.matched, MatchKind::Prefix);
    /// assert_eq!(second.chat.id(), first.chat.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").open().await?;
    /// chat.save([user("Where is my order?")]).await?;
    /// let entries = engine.rebuild_paths(chat.owner(), chat.id()).await?;
    /// assert!(entries > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// The texts of an owner's conversations that answer a query, best first.
    ///
    /// Any word will do, unless the request demands all; "side by side" in double quotes is demanded, beginn* with a star is any
    /// word that begins so. Any text is a query.
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
