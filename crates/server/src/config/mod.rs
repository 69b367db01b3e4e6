//! The configuration, `contexture.toml`: one file per section, checked as a whole.
//!
//! Precedence: flags, the environment, the file, the defaults. Flags and environment are the program's ([`Overrides`]); the
//! file is read here. An unknown key is an error, and every error names the key and its line.
//!
//! The doc comments of the sections are also the descriptions in `docs/schema/config.schema.json`.
//!
//! Not here: what a policy says (`contexture_api::policy`), what is done with the values.

mod check;
mod error;
mod key;
mod limits;
mod line_numbers;
mod model;
mod origin;
mod renamed_keys;
mod root;
mod server;
mod upstream;

pub use error::ConfigError;
pub use key::{AccessScope, KeyConfig, KeyHash};
pub use limits::LimitsConfig;
pub use model::ModelConfig;
pub(crate) use model::extend_catalogue;
pub(crate) use origin::Authority;
pub use origin::PageOrigin;
pub use root::{Config, Overrides, RouteConfig};
pub use server::{InspectorAccess, LengthOfTime, RetentionConfig, ServerConfig};
pub use upstream::{UpstreamConfig, UpstreamFormat, UpstreamOverflow};
