//! What may be said in `contexture.toml`: a section a file, checked as a whole.
//!
//! Said earlier wins: flags, the environment, the file, the defaults. Flags and environment are the program's
//! ([`Overrides`]); the file is read here. A key that is not known is an error, and every error names the
//! key and the line it stands in.
//!
//! Not here: what is done with it.

mod check;
mod error;
mod folders;
mod key;
mod limits;
mod locate;
mod memory;
mod named;
mod policy;
mod read;
mod redact;
mod route;
mod server;
mod switch;
mod upstream;
mod whole;

pub use error::ConfigError;
pub use key::{AccessScope, KeyConfig, KeyHash};
pub use limits::LimitsConfig;
pub use memory::{MemoryConfig, MemoryPlacement, MemoryScope};
pub use policy::{
    ClearConfig, CompactConfig, CostCondition, PolicyConfig, ToolsConfig, WindowConfig,
};
pub use redact::{RedactConfig, SecretKind};
pub use route::RouteConfig;
pub use server::ServerConfig;
pub use switch::Toggle;
pub use upstream::{UpstreamConfig, UpstreamFormat};
pub use whole::{Config, Overrides};
