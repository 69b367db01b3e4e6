//! A policy: what may be changed in what a model sees. The one description of it, whoever says it: `[policies.<name>]` of the
//! configuration, a request to the API, the command line.
//!
//! The doc comments of its members are also their descriptions in `docs/schema/config.schema.json` and in the description of the API.
//! Members that only the proxy has a use for say so.
//!
//! Not here: which request gets which policy (`contexture-server`), what the compiler makes of it (`contexture-compile`).

mod check;
mod config;
mod history;
mod memory;
mod preview;
mod redact;
mod said;
mod select_tools;
mod toggle;
mod tools;

pub use check::PolicyFault;
pub use config::{CostCondition, PolicyConfig};
pub use history::{ClearConfig, CompactConfig, SummaryCredentials, WindowConfig};
pub use memory::{MemoryConfig, MemoryPlacement, MemoryScope};
pub use preview::{PreviewConfig, ToolPreviewConfig};
pub use redact::{RedactConfig, SecretKind};
pub use said::{GuardrailsConfig, PolicyWordsError, StateConfig};
pub use select_tools::select_tools;
pub use toggle::Toggle;
pub use tools::ToolsConfig;
