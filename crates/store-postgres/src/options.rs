//! Options for opening a database: limits and timeouts.
//!
//! TLS options are part of the address.

use std::time::Duration;

use contexture_store::Limits;

/// Options for opening a database.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Limits on what one call may carry.
    pub limits: Limits,
    /// Largest number of connections, and so of concurrent calls. Default 16.
    pub connections: usize,
    /// Time that a call waits for a free connection, before it is refused as busy. Default 30
    /// seconds.
    pub wait: Duration,
    /// Time limit for opening a connection. Default 10 seconds.
    pub connect_timeout: Duration,
    /// Time that a write waits for another one to the same conversation, before it is refused as
    /// busy. Whole milliseconds, at least 1. Default 5 seconds.
    pub lock_timeout: Duration,
    /// Time after which the server aborts a transaction whose client is silent, to release its
    /// locks. Whole milliseconds, at least 1. Default 30 seconds.
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
