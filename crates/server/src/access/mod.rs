//! Access control: who may call, and how much: API keys, the principal behind a key, and rate limits per owner.
//!
//! A *principal* is the caller of a request: the owner whose conversations it sees, the key it used, and the scopes of that
//! key. Nothing here reads requests or knows the application state: `http` finds the key in a request and asks here.
//!
//! Not here: credentials for providers (`proxy::auth`), the keys' section of the configuration (`config`).

pub(crate) mod api_keys;
pub(crate) mod key_search;
mod new_key;
pub(crate) mod origins;
pub(crate) mod page_sessions;
pub(crate) mod presented_key;
pub(crate) mod rate_limit;

pub(crate) use api_keys::Principal;
pub use new_key::NewKey;
