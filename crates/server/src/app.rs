//! What all handlers share.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture::Engine;
use contexture::layers::builtin::{Skill, Skills};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::keys::Keys;
use crate::live::Live;
use crate::load::Load;
use crate::proxy::accounts::Accounts;
use crate::proxy::behind::Behind;
use crate::proxy::outcome::Outcomes;
use crate::proxy::turns::Turns;
use crate::proxy::upstreams::{UpstreamFault, Upstreams};
use crate::recorder::recorder;
use crate::skills;

/// What all handlers share: the engine, the configuration, who may call, who is calling. Cheap to clone.
#[derive(Clone, Debug)]
pub struct App {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    config: Config,
    keys: Keys,
    load: Load,
    behind: Behind,
    figures: Option<PrometheusHandle>,
    upstreams: Upstreams,
    outcomes: Outcomes,
    accounts: Accounts,
    turns: Turns,
    live: Live,
    skills: Vec<Skill>,
    /// By policy.
    listed: BTreeMap<String, Skills>,
    closing: CancellationToken,
    tasks: TaskTracker,
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
    /// [`UpstreamFault`] for an upstream that cannot be called: its key is not where it should be, say.
    pub fn new(engine: Engine, config: Config) -> Result<Self, UpstreamFault> {
        let keys = Keys::new(&config.keys, &config.server.owner);
        let limits = &config.server.limits;
        let (load, behind) = (Load::new(limits), Behind::new(limits.behind_bytes));
        let engine = match limits.warm_bytes {
            0 => engine,
            bytes => engine.with_warm(bytes),
        };
        let upstreams = Upstreams::open(&config)?;
        let skills = skills::load(&config.server.skills);
        let listed = skills::by_policy(&config);
        Ok(Self {
            shared: Arc::new(Shared {
                engine,
                config,
                keys,
                load,
                behind,
                figures: recorder(),
                upstreams,
                outcomes: Outcomes::default(),
                accounts: Accounts::default(),
                turns: Turns::default(),
                live: Live::default(),
                skills,
                listed,
                closing: CancellationToken::new(),
                tasks: TaskTracker::new(),
            }),
        })
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.shared.keys
    }

    pub(crate) fn load(&self) -> &Load {
        &self.shared.load
    }

    /// What waits to be stored.
    pub(crate) fn behind(&self) -> &Behind {
        &self.shared.behind
    }

    pub(crate) fn figures(&self) -> Option<&PrometheusHandle> {
        self.shared.figures.as_ref()
    }

    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.shared.upstreams
    }

    pub(crate) fn outcomes(&self) -> &Outcomes {
        &self.shared.outcomes
    }

    pub(crate) fn accounts(&self) -> &Accounts {
        &self.shared.accounts
    }

    /// Who adds to a sum of the ledger.
    pub(crate) fn turns(&self) -> &Turns {
        &self.shared.turns
    }

    /// Who is told of answers that are still coming.
    pub(crate) fn live(&self) -> &Live {
        &self.shared.live
    }

    /// The skills that a policy lists to models.
    pub(crate) fn skills_of(&self, policy: &str) -> Option<&Skills> {
        self.shared.listed.get(policy)
    }

    /// The skills that are shown.
    pub(crate) fn skills(&self) -> &[Skill] {
        &self.shared.skills
    }

    /// What goes on beside requests; it is waited for at the end.
    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.shared.tasks
    }

    /// Fires when the server shuts down: whoever streams ends then.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.shared.closing
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("engine", &self.engine)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
