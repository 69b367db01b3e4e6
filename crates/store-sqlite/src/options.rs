//! Options for opening a database file.

use std::time::Duration;

use contexture_store::Limits;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// What an acknowledged write survives. Default [`Synchronous::Full`].
    pub synchronous: Synchronous,
    /// How much one call may carry.
    pub limits: Limits,
    /// How long a write waits for another process. Default 5 seconds.
    pub busy_timeout: Duration,
    /// Bytes that may wait for the writer before calls are refused as busy. Default 256 MiB.
    pub queue_bytes: usize,
    /// Reads that run at the same time. Default 4.
    pub readers: usize,
    /// The largest size of the database file, in bytes; `None`: as large as the disk allows.
    pub max_bytes: Option<u64>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            limits: Limits::default(),
            busy_timeout: Duration::from_secs(5),
            queue_bytes: 256 << 20,
            readers: 4,
            max_bytes: None,
        }
    }
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// A crash of the process, of the system, a power cut.
    #[default]
    Full,
    /// A crash of the process. A power cut may take the latest writes, but damages nothing.
    Normal,
}
