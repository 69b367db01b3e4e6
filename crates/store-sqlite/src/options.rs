//! Options for opening a database file.

use std::time::Duration;

use contexture_store::Limits;

/// Options for opening a database.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Failures that an acknowledged write survives. Default [`Synchronous::Full`].
    pub synchronous: Synchronous,
    /// Limits on what one call may carry.
    pub limits: Limits,
    /// Time that a write waits for another process. Default 5 seconds.
    pub busy_timeout: Duration,
    /// Largest number of bytes that are queued for the writer before calls are refused as busy.
    /// Default 256 MiB.
    pub queue_bytes: usize,
    /// Largest number of concurrent reads of rows by their keys or of a small page, and as many beside them of more than 64
    /// nodes of a path; of each one owner gets all but one. Default 4.
    pub readers: usize,
    /// Largest number of concurrent scans: searches, lists of conversations and statistics, which may read many rows to
    /// return few. They have their own connections, and owners that wait are served in turn. Default 4.
    pub scans: usize,
    /// Largest number of concurrent scans of one owner. Default 2.
    pub scans_per_owner: usize,
    /// Longest time that a read or a scan runs before it is stopped as [`Error::Interrupted`](contexture_store::Error).
    /// Checks and backups have no limit. Default 30 seconds.
    pub read_timeout: Duration,
    /// Whether servers in other processes use the file too. They then mark their exchanges with providers in it, so that
    /// each finds what another has not recorded yet. Default false.
    pub shared: bool,
    /// Largest size of the database file in bytes; `None` for as large as the disk allows.
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
            scans: 4,
            scans_per_owner: 2,
            read_timeout: Duration::from_secs(30),
            shared: false,
            max_bytes: None,
        }
    }
}

/// Failures that an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// A crash of the process or of the system, and a power cut.
    #[default]
    Full,
    /// A crash of the process. A crash of the system or a power cut may lose the latest writes, but
    /// damages nothing.
    Normal,
}
