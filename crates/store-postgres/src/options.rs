//! Options for opening a database: limits of calls, and how long to wait for what.
//!
//! What an address says (TLS, certificates) is not here.

use std::time::Duration;

use contexture_store::Limits;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// How much one call may carry.
    pub limits: Limits,
    /// Connections of this store, which is calls that run at the same time. Default 16.
    pub connections: usize,
    /// How long a call waits for a connection to be free, before it is refused as busy. Default 30
    /// seconds.
    pub wait: Duration,
    /// How long making a connection may take. Default 10 seconds.
    pub connect_timeout: Duration,
    /// How long a write waits for another one to the same conversation, before it is refused as
    /// busy. Whole milliseconds, at least 1. Default 5 seconds.
    pub lock_timeout: Duration,
    /// After this time the server gives up a transaction whose client has fallen silent, so that
    /// others can write again. Whole milliseconds, at least 1. Default 30 seconds.
    pub idle_timeout: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            connections: 16,
            wait: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
        }
    }
}
