//! Contexture over HTTP: an API for programs in any language, and a proxy in front of providers.
//!
//! Data flows one way: [`Server`] accepts connections, the routes find a handler, the handler asks the engine, and the
//! result becomes a document of `contexture-api`. Requests for no route of ours go to a provider (`proxy`).
//!
//! Modules depend downwards only: `serve` → `inspector`, `api`, `mcp` → `proxy` → `http` → `state` → `access` → `problem`, `config`.
//! What handlers share is in `state`, so that the proxy and the API need not know each other.
//!
//! Not here: conversations (`contexture-engine`), runs (`contexture-runs`), documents (`contexture-api`), TLS (left to a
//! reverse proxy).

mod access;
mod api;
pub mod config;
mod http;
mod inspector;
mod mcp;
mod metrics;
mod problem;
mod proxy;
mod serve;
mod state;

pub use access::NewKey;
pub use config::{Config, ConfigError, Overrides};
pub use http::log_panics;
pub use serve::{ServeError, Server, openapi};
pub use state::{App, UpstreamConfigError};
