//! HTTP plumbing that every route shares: middleware and extractors.
//!
//! *Middleware* runs around a handler: it authenticates, times out, audits, counts, and answers panics. *Extractors* read a
//! part of a request for a handler. Both answer what they refuse with a `Problem`; none of them touches a conversation.
//!
//! Not here: the handlers (`api`, `proxy`), the order of middleware (`serve::routes`), connections (`serve::listener`).

pub(crate) mod accept;
pub(crate) mod audit;
pub(crate) mod authenticate;
pub(crate) mod body;
pub(crate) mod body_faults;
pub(crate) mod cross_origin;
pub(crate) mod extractors;
pub(crate) mod heavy;
pub(crate) mod limits;
pub(crate) mod panics;
pub(crate) mod request_smuggling;

pub use panics::log_panics;
