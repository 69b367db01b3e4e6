//! The write lock queue: makes the processes that write to one file take turns.
//!
//! SQLite lets one process write at a time and keeps no queue: a waiting process polls with pauses.
//! A process with much to write finds the database free each time, since it returns at once, and
//! the others starve.
//!
//! So there is a queue beside the database: the lock of an empty file with the suffix `-turn`. A
//! process that wants to write takes that lock, polls until the database is free, and releases the
//! lock as soon as the transaction has begun. The operating system normally grants the lock in the
//! order of the requests, so the process that has just written queues up behind the others.
//!
//! What is not here: safety, which is SQLite's own lock. Where the file cannot be created or
//! locked, or a process of an older version does not use it, processes just poll.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

use crate::connection::private_options;

/// Pause of the first process in the queue between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// This process's handle of the queue.
#[derive(Debug)]
pub(crate) struct WriteLockQueue {
    /// Path of the lock file; `None` if the database's path cannot be resolved.
    queue: Option<PathBuf>,
    /// Lock file, open and not locked.
    idle: Option<File>,
    /// Longest time to wait.
    max_wait: Duration,
}

impl WriteLockQueue {
    pub(crate) fn new(database: &Path, max_wait: Duration) -> Self {
        // Different paths to one database lead to the same lock file.
        let queue = database.canonicalize().ok().map(|database| {
            let mut queue = database.into_os_string();
            queue.push("-turn");
            PathBuf::from(queue)
        });
        Self {
            queue,
            idle: None,
            max_wait,
        }
    }

    /// Begins a write transaction.
    pub(crate) fn begin_write(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let since = Instant::now();
        let first = self.queue_up(since);
        // Waiting is done here, so SQLite must not wait too; its timeout applies again inside the
        // transaction.
        conn.busy_timeout(Duration::ZERO)?;
        let result = self.begin_immediate(conn, since);
        conn.busy_timeout(self.max_wait)?;
        self.idle = first.filter(|file| file.unlock().is_ok());
        result
    }

    /// Begins a write transaction if nobody else writes.
    pub(crate) fn try_begin_write(&mut self, conn: &Connection) -> rusqlite::Result<()> {
        let patience = std::mem::take(&mut self.max_wait);
        let result = self.begin_write(conn);
        self.max_wait = patience;
        conn.busy_timeout(patience)?;
        result
    }

    /// Waits until this process is first in the queue. Returns `None` without a queue or after a
    /// timeout.
    fn queue_up(&mut self, since: Instant) -> Option<File> {
        let file = match self.idle.take() {
            Some(file) => file,
            None => {
                let queue = self.queue.as_ref()?;
                private_options()
                    .append(true)
                    .create(true)
                    .open(queue)
                    .ok()?
            }
        };
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(_)) => return None,
        }
        let remaining = self.remaining_wait(since);
        if remaining.is_zero() {
            self.idle = Some(file);
            return None;
        }
        // A file lock has no timeout, so another thread waits for it. If it gets the lock too late,
        // the file is closed, which releases the lock.
        let (sender, receiver) = sync_channel(1);
        let wait = move || {
            if file.lock().is_ok() {
                let _ = sender.send(file);
            }
        };
        let name = "contexture-queue".to_owned();
        let spawned = std::thread::Builder::new().name(name).spawn(wait);
        spawned
            .ok()
            .and_then(|_| receiver.recv_timeout(remaining).ok())
    }

    fn begin_immediate(&self, conn: &Connection, since: Instant) -> rusqlite::Result<()> {
        loop {
            let result = conn.prepare_cached("BEGIN IMMEDIATE")?.execute([]);
            match result {
                Err(error) if is_busy(&error) && !self.remaining_wait(since).is_zero() => {
                    std::thread::sleep(PAUSE);
                }
                result => return result.map(drop),
            }
        }
    }

    fn remaining_wait(&self, since: Instant) -> Duration {
        self.max_wait.saturating_sub(since.elapsed())
    }
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
