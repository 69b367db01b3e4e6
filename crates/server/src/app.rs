//! What all handlers share.

use std::sync::Arc;

use contexture::Engine;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::keys::Keys;
use crate::load::Load;
use crate::recorder::recorder;

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
    figures: Option<PrometheusHandle>,
    closing: CancellationToken,
}

impl App {
    /// Puts an engine behind a configuration.
    ///
    /// The figures of `/metrics` are those of the process; if the program has a recorder of its own already,
    /// `/metrics` is not there.
    #[must_use]
    pub fn new(engine: Engine, config: Config) -> Self {
        let keys = Keys::new(&config.keys, &config.server.owner);
        let load = Load::new(&config.server.limits);
        Self {
            shared: Arc::new(Shared {
                engine,
                config,
                keys,
                load,
                figures: recorder(),
                closing: CancellationToken::new(),
            }),
        }
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

    pub(crate) fn figures(&self) -> Option<&PrometheusHandle> {
        self.shared.figures.as_ref()
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
