//! The root of the configuration: all sections, read from a file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use contexture::Owner;
use contexture_api::policy::PolicyConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::check;
use crate::config::error::ConfigError;
use crate::config::key::KeyConfig;
use crate::config::model::ModelConfig;
use crate::config::renamed_keys;
use crate::config::server::{RetentionConfig, ServerConfig};
use crate::config::upstream::UpstreamConfig;

/// All that may be configured. `Config::default()` is what holds without a file: the API on loopback for the
/// local owner, no upstreams.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where it listens, for whom, and within which limits.
    pub server: ServerConfig,
    /// Who may call. As long as there are none, it listens on loopback only.
    pub keys: Vec<KeyConfig>,
    /// Providers to pass requests on to, by name.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// Models that the catalogue does not know, by name.
    pub models: BTreeMap<String, ModelConfig>,
    /// What may be changed in a request, by name.
    pub policies: BTreeMap<String, PolicyConfig>,
    /// Which policy a request gets: the first route that fits.
    pub routes: Vec<RouteConfig>,
    /// Which conversations are deleted after some time, by owner. Default: none.
    pub retention: Vec<RetentionConfig>,
}

/// Which policy a request gets. What is not said fits every request.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table with a policy, such as [[routes]] policy = \"frugal\""
)]
pub struct RouteConfig {
    /// The upstream's name.
    pub upstream: Option<String>,
    /// The model's name; `*` stands for any characters.
    pub model: Option<String>,
    /// The name of the caller's key.
    pub key: Option<String>,
    /// The policy's name.
    pub policy: String,
}

/// What flags and environment say; it goes before the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Instead of `server.listen`.
    pub listen: Option<SocketAddr>,
    /// Instead of `server.db`.
    pub db: Option<String>,
    /// Instead of `server.owner`.
    pub owner: Option<Owner>,
}

impl Config {
    /// The same, with what flags and environment say in the place of what the file says.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Overrides) -> Self {
        let Overrides { listen, db, owner } = overrides;
        self.server.listen = listen.unwrap_or(self.server.listen);
        self.server.db = db.or(self.server.db);
        self.server.owner = owner.unwrap_or(self.server.owner);
        self
    }

    /// The JSON Schema of a file, for editors: `docs/schema/config.schema.json`.
    #[must_use]
    pub fn schema_json() -> String {
        let schema = schemars::schema_for!(Self);
        serde_json::to_string_pretty(&schema).unwrap_or_default()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, names a folder of skills that is none, or as [`Self::parse`].
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::new(&name, format!("cannot be read: {error}")))?;
        let config = Self::parse(&text, &name)?;
        match check::first_folder_fault(&config) {
            None => Ok(config),
            Some(fault) => Err(ConfigError::from_fault(&name, &text, &fault)),
        }
    }

    /// Reads a file's text; `name` is what errors call it.
    ///
    /// # Errors
    /// It is not TOML, has a key that is not known or a value that is not allowed, or names what is not there.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        if let Some(fault) = renamed_keys::double_spelling(text) {
            return Err(ConfigError::from_fault(name, text, &fault));
        }
        let config: Self = toml::from_str(text)
            .map_err(|error| ConfigError::from_syntax_error(name, text, &error))?;
        match check::first_fault(&config) {
            None => Ok(config),
            Some(fault) => Err(ConfigError::from_fault(name, text, &fault)),
        }
    }
}
