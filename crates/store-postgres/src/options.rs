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
    /// Largest number of connections, and so of concurrent calls. Writes use at most three quarters of them, reads of more than
    /// 64 nodes of a path half, and all reads and writes of one owner of one kind leave one place to other owners. Default 16.
    pub connections: usize,
    /// Largest number of concurrent scans: searches, lists of conversations and statistics, which may read many rows to
    /// return few. Owners that wait are served in turn. Fewer than `connections`, so that a scan never takes the last
    /// connection. Default 4.
    pub scans: usize,
    /// Largest number of concurrent scans of one owner. Default 2.
    pub scans_per_owner: usize,
    /// Longest time that one statement of a read or a scan runs before the server stops it, and the call fails as
    /// [`Error::Interrupted`](contexture_store::Error). Checks have no limit. Whole milliseconds, at least 1. Default 30
    /// seconds.
    pub read_timeout: Duration,
    /// Time that a call waits for its turn and for a free connection together, before it is refused as busy. Default 30
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
            scans: 4,
            scans_per_owner: 2,
            read_timeout: Duration::from_secs(30),
            wait: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(10),
            lock_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
        }
    }
}
