//! What all handlers share for the lifetime of the server: [`App`] and the in-memory state it holds.
//!
//! Everything here is shared between requests, cheap to reach through `App`, and lost on restart; what must survive is the
//! engine's. Handlers of `api` and `proxy` depend on this module, and it on neither of them.
//!
//! Not here: what is done with the state, and how requests are read (`http`).

mod app;
pub(crate) mod body_memory;
pub(crate) mod call_log;
pub(crate) mod cost_accounts;
pub(crate) mod live_feed;
pub(crate) mod request_outcomes;
pub(crate) mod running_claims;
mod skills;
pub(crate) mod spending;
pub(crate) mod upstreams;
pub(crate) mod work_pool;

pub use app::App;
pub use upstreams::UpstreamConfigError;
