//! `[server]`: where it listens, and for whom.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use contexture::Owner;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::limits::LimitsConfig;
use crate::config::values::deserialize_from_str;

/// Where it listens, for whom, and within which limits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Address and port. Default: `127.0.0.1:8484`. Others than loopback need keys.
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// The database: a file, `memory:` or `postgres://…`. Default: the one of the command line.
    pub db: Option<String>,
    /// Whose conversations they are where there are no keys. Default: `local`.
    #[serde(deserialize_with = "deserialize_from_str")]
    #[schemars(with = "String")]
    pub owner: Owner,
    /// Folders of skills that are shown over HTTP, each skill as `FOLDER/NAME/SKILL.md`; of two of one name that of the earlier
    /// folder. They are read when the server starts. Default: none.
    pub skills: Vec<PathBuf>,
    /// How much one request, connection or owner may take.
    pub limits: LimitsConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8484)),
            db: None,
            owner: Owner::local(),
            skills: Vec::new(),
            limits: LimitsConfig::default(),
        }
    }
}
