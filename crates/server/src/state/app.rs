//! What all handlers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture::Engine;
use contexture::layers::builtin::{Skill, Skills};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::api_keys::ApiKeys;
use crate::access::rate_limit::RateLimiter;
use crate::config::Config;
use crate::metrics::install_recorder;
use crate::state::cost_accounts::CostAccounts;
use crate::state::keyed_lock::KeyedLocks;
use crate::state::live_feed::LiveFeed;
use crate::state::request_outcomes::RequestOutcomes;
use crate::state::skills;
use crate::state::store_queue::StoreQueue;
use crate::state::upstreams::{UpstreamConfigError, Upstreams};

/// What all handlers share: the engine, the configuration, who may call, who is calling. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    inner: Arc<AppInner>,
}

struct AppInner {
    engine: Engine,
    config: Config,
    api_keys: ApiKeys,
    rate_limiter: RateLimiter,
    store_queue: StoreQueue,
    metrics_handle: Option<PrometheusHandle>,
    upstreams: Upstreams,
    request_outcomes: RequestOutcomes,
    cost_accounts: CostAccounts,
    ledger_locks: KeyedLocks,
    live_feed: LiveFeed,
    skills: Vec<Skill>,
    /// By policy.
    skills_by_policy: BTreeMap<String, Skills>,
    shutdown_token: CancellationToken,
    background_tasks: TaskTracker,
}

impl App {
    /// Puts an engine behind a configuration.
    ///
    /// The folders of skills are read, which blocks on the file system.
    ///
    /// The figures of `/metrics` are those of the process; if the program has a recorder of its own already,
    /// `/metrics` is not there.
    ///
    /// # Errors
    /// [`UpstreamConfigError`] for an upstream that cannot be called: its key is not where it should be, say.
    pub fn new(engine: Engine, config: Config) -> Result<Self, UpstreamConfigError> {
        let keys = ApiKeys::new(&config.keys, &config.server.owner);
        let limits = &config.server.limits;
        let (load, behind) = (
            RateLimiter::new(limits),
            StoreQueue::new(limits.behind_bytes),
        );
        let engine = match limits.warm_bytes {
            0 => engine,
            bytes => engine.with_handle_cache(bytes),
        };
        let upstreams = Upstreams::from_config(&config)?;
        let skills = skills::load_skills(&config.server.skills);
        let listed = skills::load_skills_by_policy(&config);
        Ok(Self {
            inner: Arc::new(AppInner {
                engine,
                config,
                api_keys: keys,
                rate_limiter: load,
                store_queue: behind,
                metrics_handle: install_recorder(),
                upstreams,
                request_outcomes: RequestOutcomes::default(),
                cost_accounts: CostAccounts::default(),
                ledger_locks: KeyedLocks::default(),
                live_feed: LiveFeed::default(),
                skills,
                skills_by_policy: listed,
                shutdown_token: CancellationToken::new(),
                background_tasks: TaskTracker::new(),
            }),
        })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    pub(crate) fn api_keys(&self) -> &ApiKeys {
        &self.inner.api_keys
    }

    pub(crate) fn rate_limiter(&self) -> &RateLimiter {
        &self.inner.rate_limiter
    }

    /// What waits to be stored.
    pub(crate) fn store_queue(&self) -> &StoreQueue {
        &self.inner.store_queue
    }

    pub(crate) fn metrics_handle(&self) -> Option<&PrometheusHandle> {
        self.inner.metrics_handle.as_ref()
    }

    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.inner.upstreams
    }

    pub(crate) fn request_outcomes(&self) -> &RequestOutcomes {
        &self.inner.request_outcomes
    }

    pub(crate) fn cost_accounts(&self) -> &CostAccounts {
        &self.inner.cost_accounts
    }

    /// Who adds to a sum of the ledger.
    pub(crate) fn ledger_locks(&self) -> &KeyedLocks {
        &self.inner.ledger_locks
    }

    /// Who is told of answers that are still coming.
    pub(crate) fn live_feed(&self) -> &LiveFeed {
        &self.inner.live_feed
    }

    /// The skills that a policy lists to models.
    pub(crate) fn skills_for_policy(&self, policy: &str) -> Option<&Skills> {
        self.inner.skills_by_policy.get(policy)
    }

    /// The skills that are shown.
    pub(crate) fn skills(&self) -> &[Skill] {
        &self.inner.skills
    }

    /// What goes on beside requests; it is waited for at the end.
    pub(crate) fn background_tasks(&self) -> &TaskTracker {
        &self.inner.background_tasks
    }

    /// Fires when the server shuts down: whoever streams ends then.
    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.inner.shutdown_token
    }
}

impl std::fmt::Debug for AppInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("engine", &self.engine)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
