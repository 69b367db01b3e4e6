//! What may be said in `contexture.toml`: a section a file, checked as a whole.
//!
//! Said earlier wins: flags, the environment, the file, the defaults. Flags and environment are the program's
//! ([`Overrides`]); the file is read here. A key that is not known is an error, and every error names the
//! key and the line it stands in.
//!
//! Not here: what is done with it.

mod check;
mod error;
mod key;
mod limits;
mod line_numbers;
mod memory;
mod policy;
mod redact;
mod root;
mod server;
mod upstream;
mod values;

pub use error::ConfigError;
pub use key::{AccessScope, KeyConfig, KeyHash};
pub use limits::LimitsConfig;
pub use memory::{MemoryConfig, MemoryPlacement, MemoryScope};
pub use policy::{
    ClearConfig, CompactConfig, CostCondition, PolicyConfig, RouteConfig, ToolsConfig, WindowConfig,
};
pub use redact::{RedactConfig, SecretKind};
pub use root::{Config, Overrides};
pub use server::ServerConfig;
pub use upstream::{UpstreamConfig, UpstreamFormat};
pub use values::Toggle;
