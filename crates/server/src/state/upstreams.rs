//! Upstreams: the providers of the configuration, with their keys and connection pools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use contexture::models_http::{ApiKey, ClientError, ClientOptions, Upstream};

use crate::config::{Config, UpstreamConfig, UpstreamFormat, UpstreamOverflow};

/// An error in the configuration of an upstream.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamConfigError {
    /// Its address is invalid, or its connections cannot be set up.
    #[error("upstream {name:?}")]
    Client {
        /// Name of the upstream.
        name: String,
        /// Error of the HTTP client.
        #[source]
        source: ClientError,
    },
    /// The environment variable for its key is missing or empty.
    #[error("upstream {name:?}: the environment has no {variable}, which should have its key")]
    NoKey {
        /// Name of the upstream.
        name: String,
        /// Name of the environment variable.
        variable: String,
    },
    /// The file for its key cannot be read, or its first line is empty.
    #[error("upstream {name:?}: no key can be read from {}", file.display())]
    KeyFile {
        /// Name of the upstream.
        name: String,
        /// Path of the key file.
        file: PathBuf,
        /// Error of reading the file; `None` if its first line is empty.
        #[source]
        source: Option<std::io::Error>,
    },
}

/// A provider that requests are forwarded to.
#[derive(Debug)]
pub(crate) struct ConfiguredUpstream {
    pub(crate) name: String,
    pub(crate) format: UpstreamFormat,
    pub(crate) host: Upstream,
    /// Key that replaces the client's credentials; `None`: those are forwarded.
    pub(crate) key: Option<ApiKey>,
    /// Field of a request's body that names the conversation; `None`: no field does.
    pub(crate) conversation_from: Option<String>,
    /// Whether it refuses what is too long, instead of cutting it without a word.
    pub(crate) refuses_overflow: bool,
}

/// All upstreams, by name.
#[derive(Debug)]
pub(crate) struct Upstreams {
    by_name: BTreeMap<String, ConfiguredUpstream>,
    defaults: BTreeMap<UpstreamFormat, String>,
}

impl Upstreams {
    /// Opens the upstreams of the configuration, or of the providers themselves if it has none.
    ///
    /// # Errors
    /// A key that is not where it should be; see [`UpstreamConfigError`].
    pub(crate) fn from_config(config: &Config) -> Result<Self, UpstreamConfigError> {
        let mut named = BTreeMap::new();
        let mut defaults = BTreeMap::new();
        for (name, upstream) in &config.upstreams {
            // A format's only upstream needs no `default`; of several none is guessed.
            let only = config.upstreams.values();
            let only = only.filter(|other| other.format == upstream.format).count() == 1;
            if upstream.default || only {
                defaults.insert(upstream.format, name.clone());
            }
            named.insert(name.clone(), open_upstream(name, upstream)?);
        }
        if named.is_empty() {
            for format in UpstreamFormat::all() {
                // Hosts whose address depends on the customer cannot be guessed.
                let address = format
                    .http_profile()
                    .and_then(|profile| profile.upstream_url);
                let Some(base_url) = address else {
                    continue;
                };
                let name = format.as_str();
                let own = UpstreamConfig {
                    format,
                    base_url: base_url.to_owned(),
                    key_env: None,
                    key_file: None,
                    default: true,
                    conversation_from: None,
                    overflow: None,
                };
                defaults.insert(format, name.to_owned());
                named.insert(name.to_owned(), open_upstream(name, &own)?);
            }
        }
        Ok(Self {
            by_name: named,
            defaults,
        })
    }

    /// Returns the upstream of this name.
    pub(crate) fn find_by_name(&self, name: &str) -> Option<&ConfiguredUpstream> {
        self.by_name.get(name)
    }

    /// Returns the upstream that the provider's own paths lead to.
    pub(crate) fn default_for(&self, format: UpstreamFormat) -> Option<&ConfiguredUpstream> {
        self.find_by_name(self.defaults.get(&format)?)
    }
}

fn open_upstream(
    name: &str,
    config: &UpstreamConfig,
) -> Result<ConfiguredUpstream, UpstreamConfigError> {
    let host = Upstream::new(&config.base_url, &ClientOptions::default());
    let host = host.map_err(|source| UpstreamConfigError::Client {
        name: name.to_owned(),
        source,
    })?;
    let profile = config.format.http_profile();
    let is_own = profile.is_some_and(|profile| host.is_own_host(profile));
    Ok(ConfiguredUpstream {
        refuses_overflow: match config.overflow {
            Some(overflow) => overflow == UpstreamOverflow::Refuses,
            None => is_own,
        },
        name: name.to_owned(),
        format: config.format,
        host,
        key: read_key(name, config)?,
        conversation_from: config.conversation_from.clone(),
    })
}

fn read_key(name: &str, config: &UpstreamConfig) -> Result<Option<ApiKey>, UpstreamConfigError> {
    if let Some(variable) = &config.key_env {
        let key = std::env::var(variable).ok();
        // An empty variable is a forgotten one: sending no key would fail at the provider, much later.
        let key = key.filter(|key| !key.trim().is_empty());
        let none = || UpstreamConfigError::NoKey {
            name: name.to_owned(),
            variable: variable.clone(),
        };
        return Ok(Some(ApiKey::new(&key.ok_or_else(none)?)));
    }
    let Some(file) = &config.key_file else {
        return Ok(None);
    };
    let fault = |source| UpstreamConfigError::KeyFile {
        name: name.to_owned(),
        file: file.clone(),
        source,
    };
    let text = std::fs::read_to_string(file).map_err(|error| fault(Some(error)))?;
    // Only the first line: an editor's trailing line break is no part of the key.
    let line = text
        .lines()
        .next()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    Ok(Some(ApiKey::new(line.ok_or_else(|| fault(None))?)))
}
