//! The read pool: connections that only read.
//!
//! Each read runs on a blocking thread, on a connection of its own, in a transaction: it sees a
//! snapshot and waits for no writer. Connections are opened when first needed and reused.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use contexture_store::Error;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::error::{RowError, from_sqlite};
use crate::worker::write_thread::catch_panic;

/// Pool of read-only connections, with a limit on concurrent reads.
#[derive(Debug)]
pub(crate) struct ReadPool {
    path: Arc<PathBuf>,
    idle: Arc<Mutex<Vec<Connection>>>,
    permits: Arc<Semaphore>,
}

impl ReadPool {
    pub(crate) fn new(path: Arc<PathBuf>, count: usize) -> Self {
        Self {
            path,
            idle: Arc::default(),
            permits: Arc::new(Semaphore::new(count.max(1))),
        }
    }

    /// Runs `f` in a read transaction.
    pub(crate) async fn run_read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, RowError> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| Error::Closed)?;
        let (path, idle) = (Arc::clone(&self.path), Arc::clone(&self.idle));
        let work = move || {
            let _permit = permit;
            let conn = lock_idle(&idle).pop();
            let conn = match conn {
                Some(conn) => conn,
                None => open_reader(&path).map_err(|error| from_sqlite(error, &path))?,
            };
            let result = catch_panic(&conn, |conn| in_transaction(conn, f), &path);
            // A connection that is still in a transaction is dropped instead of reused.
            if conn.is_autocommit() {
                lock_idle(&idle).push(conn);
            }
            result
        };
        // The blocking task was lost. A read changes nothing, so the caller may repeat it.
        let lost = |source| Error::OutcomeUnknown {
            source: Box::new(source),
        };
        tokio::task::spawn_blocking(work).await.map_err(lost)?
    }
}

fn in_transaction<T>(
    conn: &Connection,
    f: impl FnOnce(&Connection) -> Result<T, RowError>,
) -> Result<T, RowError> {
    conn.prepare_cached("BEGIN")?.execute([])?;
    let result = f(conn);
    if !conn.is_autocommit() {
        conn.prepare_cached("COMMIT")?.execute([])?;
    }
    result
}

fn lock_idle(idle: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    crate::connection::harden_connection(&conn)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}
