//! Contexture over HTTP: an API for programs in any language, and a proxy in front of providers.
//!
//! Data flows one way: [`Server`] accepts connections, the routes find a handler, the handler asks the engine,
//! and what it gives becomes a document. [`documents`] know nothing of HTTP, so that the command line shows
//! the same ones.
//!
//! Not here: conversations (`contexture-engine`), runs (`contexture-runs`), TLS (a reverse proxy's).

mod accept;
mod api;
mod app;
mod audit;
mod auth;
pub mod config;
pub mod documents;
mod extract;
mod framing;
mod keys;
mod limits;
mod listen;
mod live;
mod load;
mod mcp;
mod metrics;
mod nowhere;
mod panics;
mod problem;
mod proxy;
mod recorder;
mod routes;
mod skills;
mod token;

pub use app::App;
pub use config::{Config, ConfigError, Overrides};
pub use listen::{ServeError, Server};
pub use panics::log_panics;
pub use proxy::upstreams::UpstreamConfigError;
pub use routes::openapi;
pub use token::NewKey;
