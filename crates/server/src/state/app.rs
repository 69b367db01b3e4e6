//! The application state that every handler gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture::ir::Cancel;
use contexture::layers::builtin::{Skill, Skills};
use contexture::store::FairPermits;
use contexture::{Engine, Owner};
use contexture_api::operations::Host;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::api_keys::ApiKeys;
use crate::access::origins::Origins;
use crate::access::page_sessions::PageSessions;
use crate::access::rate_limit::RateLimiter;
use crate::config::{Config, extend_catalogue};
use crate::metrics::install_recorder;
use crate::state::body_memory::BodyMemory;
use crate::state::call_log::CallLog;
use crate::state::cost_accounts::CostAccounts;
use crate::state::live_feed::LiveFeed;
use crate::state::request_outcomes::RequestOutcomes;
use crate::state::running_claims::RunningClaims;
use crate::state::skills;
use crate::state::spending::Spending;
use crate::state::upstreams::{UpstreamConfigError, Upstreams};
use crate::state::work_pool::{WorkPool, permits_for_stored_work};

/// What all handlers share: the engine, the configuration, keys, limits and the in-memory state. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    inner: Arc<AppInner>,
}

struct AppInner {
    engine: Engine,
    config: Config,
    api_keys: ApiKeys,
    origins: Origins,
    page_sessions: PageSessions,
    rate_limiter: RateLimiter,
    body_memory: BodyMemory,
    work_pool: WorkPool,
    capture_pool: WorkPool,
    rewrite_pool: WorkPool,
    stored_work: FairPermits,
    metrics_handle: Option<PrometheusHandle>,
    upstreams: Upstreams,
    request_outcomes: RequestOutcomes,
    running_claims: RunningClaims,
    cost_accounts: CostAccounts,
    call_log: CallLog,
    spending: Spending,
    live_feed: LiveFeed,
    skills: Vec<Skill>,
    /// Skills that policies list to models, by name of the policy.
    skills_by_policy: BTreeMap<String, Skills>,
    shutdown_token: CancellationToken,
    background_tasks: TaskTracker,
}

impl App {
    /// Creates the state of a server over an engine.
    ///
    /// Reads the folders of skills, which blocks on the file system.
    ///
    /// `/metrics` shows the metrics of the process. If the program has installed a recorder of its own, there is no
    /// `/metrics`.
    ///
    /// # Errors
    /// [`UpstreamConfigError`] for an upstream that cannot be called: its key is not where it should be, say.
    pub fn new(engine: Engine, config: Config) -> Result<Self, UpstreamConfigError> {
        let keys = ApiKeys::new(&config.keys, &config.server.owner);
        let origins = Origins::new(
            config.server.listen.ip(),
            keys.is_key_required(),
            &config.server.origins,
        );
        let limits = &config.server.limits;
        let rate_limiter = RateLimiter::new(limits);
        let body_memory = BodyMemory::new(limits.memory_bytes);
        let engine = match limits.handle_cache_bytes {
            0 => engine,
            bytes => engine.with_handle_cache(bytes),
        };
        let engine = match config.server.bodies {
            Some(_) => engine.with_call_bodies(),
            None => engine,
        };
        let engine = match config.models.is_empty() {
            true => engine,
            false => {
                let catalogue = extend_catalogue(engine.catalogue(), &config.models);
                engine.with_catalogue(catalogue)
            }
        };
        let upstreams = Upstreams::from_config(&config)?;
        let skills = skills::load_skills(&config.server.skills);
        let skills_by_policy = skills::load_skills_by_policy(&config);
        Ok(Self {
            inner: Arc::new(AppInner {
                engine,
                config,
                api_keys: keys,
                origins,
                page_sessions: PageSessions::new(),
                rate_limiter,
                body_memory,
                work_pool: WorkPool::for_large_requests(),
                capture_pool: WorkPool::for_captures(),
                rewrite_pool: WorkPool::for_rewrites(),
                stored_work: permits_for_stored_work(),
                metrics_handle: install_recorder(),
                upstreams,
                request_outcomes: RequestOutcomes::default(),
                running_claims: RunningClaims::default(),
                cost_accounts: CostAccounts::default(),
                call_log: CallLog::default(),
                spending: Spending::default(),
                live_feed: LiveFeed::default(),
                skills,
                skills_by_policy,
                shutdown_token: CancellationToken::new(),
                background_tasks: TaskTracker::new(),
            }),
        })
    }

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Returns what documents may name: policies and skills.
    pub(crate) fn host(&self) -> Host<'_> {
        Host {
            policies: &self.inner.config.policies,
            skills: &self.inner.skills,
        }
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    pub(crate) fn api_keys(&self) -> &ApiKeys {
        &self.inner.api_keys
    }

    /// Returns the rule which pages in a browser may call.
    pub(crate) fn origins(&self) -> &Origins {
        &self.inner.origins
    }

    /// Returns the sessions of the inspector.
    pub(crate) fn page_sessions(&self) -> &PageSessions {
        &self.inner.page_sessions
    }

    pub(crate) fn rate_limiter(&self) -> &RateLimiter {
        &self.inner.rate_limiter
    }

    /// Returns the memory that requests share.
    pub(crate) fn body_memory(&self) -> &BodyMemory {
        &self.inner.body_memory
    }

    /// Returns the threads for heavy work.
    pub(crate) fn work_pool(&self) -> &WorkPool {
        &self.inner.work_pool
    }

    /// Returns the permits for work that reads whole stored conversations.
    pub(crate) fn stored_work(&self) -> &FairPermits {
        &self.inner.stored_work
    }

    /// Runs work that reads a whole stored conversation, on the threads for heavy work; some wait for others.
    pub(crate) async fn run_stored_work<T, F>(
        &self,
        owner: &Owner,
        work: impl FnOnce(Cancel) -> F,
    ) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let _permit = self.stored_work().acquire_permit(Some(owner)).await;
        self.work_pool().run(owner, work).await
    }

    /// Returns the threads that store small requests whose clients do not wait for that.
    pub(crate) fn capture_pool(&self) -> &WorkPool {
        &self.inner.capture_pool
    }

    /// Returns the threads that store and rewrite small requests whose clients wait for that.
    pub(crate) fn rewrite_pool(&self) -> &WorkPool {
        &self.inner.rewrite_pool
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

    /// Returns the requests with an idempotency key that are under way.
    pub(crate) fn running_claims(&self) -> &RunningClaims {
        &self.inner.running_claims
    }

    pub(crate) fn cost_accounts(&self) -> &CostAccounts {
        &self.inner.cost_accounts
    }

    /// Returns the rows of the record of calls that wait to be stored.
    pub(crate) fn call_log(&self) -> &CallLog {
        &self.inner.call_log
    }

    /// Returns what was spent today.
    pub(crate) fn spending(&self) -> &Spending {
        &self.inner.spending
    }

    /// Returns the feed of answers that are still coming.
    pub(crate) fn live_feed(&self) -> &LiveFeed {
        &self.inner.live_feed
    }

    /// Returns the skills that a policy lists to models.
    pub(crate) fn skills_for_policy(&self, policy: &str) -> Option<&Skills> {
        self.inner.skills_by_policy.get(policy)
    }

    /// Returns the skills that the API shows.
    pub(crate) fn skills(&self) -> &[Skill] {
        &self.inner.skills
    }

    /// Returns the tasks that outlive their request; the server waits for them when it shuts down.
    pub(crate) fn background_tasks(&self) -> &TaskTracker {
        &self.inner.background_tasks
    }

    /// Returns the token that is cancelled when the server shuts down: streams end then.
    pub(crate) fn shutdown_token(&self) -> &CancellationToken {
        &self.inner.shutdown_token
    }
}

impl std::fmt::Debug for AppInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys and upstreams are left out: a debug print must never show a secret.
        f.debug_struct("AppInner")
            .field("engine", &self.engine)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
