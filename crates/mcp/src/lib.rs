//! What is kept, for agents: conversations, outputs, memory and budgets over the Model Context Protocol.
//!
//! [`serve_stdio`] speaks it on the standard streams, [`http_service`] is a service for an HTTP server to mount. Both
//! answer for one [`Caller`] at a time: what another owner keeps is not there, and a caller who may only read is
//! offered no tool that writes. The tools are a table, sorted once; what each takes and answers is said by its schemas.
//!
//! Not here: listening, keys and who is who (the server); what is decided about a conversation (the engine).

mod caller;
mod http;
mod item_text;
mod resources;
mod schema;
mod server;
mod stdio;
mod tool;
mod tool_context;
mod tool_error;
mod tool_selection;
mod tools;
mod uri;
mod workers;

pub use caller::{Access, Caller};
pub use http::{HttpOptions, HttpService, http_service};
pub use stdio::{ServeError, serve, serve_stdio};
pub use tool_selection::{ToolSelection, UnknownTools};
pub use workers::Workers;
