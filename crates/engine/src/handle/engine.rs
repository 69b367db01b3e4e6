//! The fields and getters of the engine, and how much it stores of each call.

use std::sync::Arc;

use contexture_catalogue::Catalogue;
use contexture_ir::{ConversationId, Owner, ProcessId};
use contexture_layers::Layers;
use contexture_store::{Processes, Store};

use super::background_work::BackgroundWork;
use super::circuit_breaker::CircuitBreakers;
use super::environment::{Clock, IdSource};
use super::events::Watchers;
use super::handle_cache::{HandleCache, HandleCaches};
use super::last_bodies::LastBodies;
use super::output_copies::OutputCopies;
use super::secrets::Secrets;
use super::side_calls::LayerModel;
use super::targets::Targets;
use crate::error::EngineError;
use crate::exchange::Exchanges;
use crate::presence::{Presence, ProcessState};

/// Opens and lists conversations. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) secrets: Option<Arc<Secrets>>,
    pub(crate) copies: Option<OutputCopies>,
    pub(crate) breakers: Arc<CircuitBreakers>,
    pub(crate) background: BackgroundWork,
    pub(crate) record_level: RecordLevel,
    pub(crate) calibrates: bool,
    pub(crate) targets: Arc<Targets>,
    pub(crate) watchers: Arc<Watchers>,
    pub(crate) layers: Layers,
    pub(crate) layer_model: Option<Arc<LayerModel>>,
    pub(crate) handle_caches: Option<Arc<HandleCaches>>,
    pub(crate) last_bodies: Option<Arc<LastBodies>>,
    pub(crate) exchanges: Exchanges,
    pub(crate) presence: Presence,
}

impl Engine {
    /// The store, for what the engine has no word for.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").open().await?;
    /// let record = engine.store().load_conversation(chat.owner(), chat.id()).await?;
    /// assert_eq!(record.nodes, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The catalogue of models.
    ///
    /// ```
    /// # use contexture_engine::Engine;
    /// let engine = Engine::in_memory();
    /// assert!(engine.catalogue().resolve("gpt-4o")?.context_window >= 128_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    pub(crate) const fn output_copies(&self) -> Option<&OutputCopies> {
        self.copies.as_ref()
    }

    /// What is taken out of items before they are stored; `None` where nothing is.
    ///
    /// ```
    /// use contexture_engine::{Engine, Secrets};
    ///
    /// let engine = Engine::in_memory().with_secrets(Secrets::common());
    /// let secrets = engine.secrets().expect("just set");
    /// assert!(!secrets.redact(r#""AKIAIOSFODNN7EXAMPLE""#).contains("IOSFODNN7"));
    /// ```
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

    /// What the next bodies are compared with; `None` where bodies are not kept.
    pub(crate) fn last_bodies(&self) -> Option<&LastBodies> {
        self.last_bodies.as_deref()
    }

    pub(crate) const fn layers(&self) -> &Layers {
        &self.layers
    }

    pub(crate) fn layer_model(&self) -> Option<&LayerModel> {
        self.layer_model.as_deref()
    }

    /// What handles on a conversation save work with.
    pub(crate) fn handle_cache(&self, owner: &Owner, id: &ConversationId) -> Arc<HandleCache> {
        let shared = self
            .handle_caches
            .as_ref()
            .map(|warmth| warmth.cache_for(owner, id));
        shared.unwrap_or_default()
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

    /// The work that is done where nobody waits for it.
    pub(crate) const fn background_work(&self) -> &BackgroundWork {
        &self.background
    }

    /// The processes that share the store, where others can use it too.
    pub(crate) fn shared_processes(&self) -> Option<&dyn Processes> {
        match self.store.capabilities().shared {
            true => self.store.processes(),
            false => None,
        }
    }

    /// Registers this process in the store, so that others can tell whether it lives, and returns its id: for claims that a
    /// program keeps in the store. A claim that names a process needs no expiry time.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, ProcessState};
    /// let engine = Engine::in_memory();
    /// let process = engine.register_process().await?;
    /// assert!(matches!(engine.process_state(process).await?, ProcessState::Alive { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As the store's.
    pub async fn register_process(&self) -> Result<ProcessId, EngineError> {
        self.presence.ensure_registered(&self.store).await?;
        Ok(self.presence.id())
    }

    /// Returns whether the process of a claim may still live. SQLite knows at once that one has ended; otherwise it takes 10 s
    /// from the first look.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, ProcessState};
    /// # use contexture_ir::ProcessId;
    /// let nobody = ProcessId::from_bytes([7; 16]);
    /// assert_eq!(Engine::in_memory().process_state(nobody).await?, ProcessState::Dead);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As the store's.
    pub async fn process_state(&self, process: ProcessId) -> Result<ProcessState, EngineError> {
        Ok(self.presence.process_state(&self.store, process).await?)
    }

    /// The time by the engine's clock, in milliseconds since the Unix epoch.
    ///
    /// ```
    /// # use contexture_engine::{Engine, TestClock};
    /// let engine = Engine::in_memory().with_clock(TestClock::new(1_000));
    /// assert_eq!((engine.now_ms(), engine.now_ms()), (1_000, 1_001));
    /// ```
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// A key from which the ids of one operation derive.
    pub(crate) fn new_key(&self) -> [u8; 16] {
        self.ids.new_id_bytes()
    }
}

/// How much of each call is stored with its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordLevel {
    /// Only hashes: a payload that is there can be told from another, none can be made again.
    Hashes,
    /// What the payload was compiled from, besides what is on the tree: the request with its tools and
    /// options, what was said beside the history. Usually some kilobytes a call, compressed in SQLite.
    #[default]
    Inputs,
    /// That, and the payload itself, so that a difference can be shown.
    Payload,
}
