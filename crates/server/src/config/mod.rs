//! The configuration, `contexture.toml`: one file per section, checked as a whole.
//!
//! Precedence: flags, the environment, the file, the defaults. Flags and environment are the program's ([`Overrides`]); the
//! file is read here. An unknown key is an error, and every error names the key and its line.
//!
//! The doc comments of the sections are also the descriptions in `docs/schema/config.schema.json`.
//!
//! Not here: what is done with the values.

mod check;
mod error;
mod key;
mod limits;
mod line_numbers;
mod memory;
mod origin;
mod policy;
mod redact;
mod renamed_keys;
mod root;
mod server;
mod upstream;
mod values;

pub use error::ConfigError;
pub use key::{AccessScope, KeyConfig, KeyHash};
pub use limits::LimitsConfig;
pub use memory::{MemoryConfig, MemoryPlacement, MemoryScope};
pub(crate) use origin::Authority;
pub use origin::PageOrigin;
pub use policy::{
    ClearConfig, CompactConfig, CostCondition, PolicyConfig, RouteConfig, ToolsConfig, WindowConfig,
};
pub use redact::{RedactConfig, SecretKind};
pub use root::{Config, Overrides};
pub use server::{RetentionConfig, ServerConfig};
pub use upstream::{UpstreamConfig, UpstreamFormat};
pub use values::Toggle;
