//! Opens connections to a database file and configures them.

use std::path::Path;
use std::time::Duration;

use contexture_store::{Error, StorageFault};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::from_sqlite;
use crate::options::{SqliteOptions, Synchronous};
use crate::schema::migrate;
use crate::search::index::prepare_index;

/// Size of a database page in bytes: large enough for a few items, small enough that an append of
/// one item writes little.
const PAGE_BYTES: u32 = 8192;

/// Pause between two attempts to open.
const PAUSE: Duration = Duration::from_millis(5);

/// Opens or creates a database, ready for writing.
pub(crate) fn open_connection(path: &Path, options: &SqliteOptions) -> Result<Connection, Error> {
    let sql = |error| from_sqlite(error, path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(sql)?;
    conn.busy_timeout(options.busy_timeout).map_err(sql)?;
    // The page size only takes effect in a new database.
    conn.pragma_update(None, "page_size", PAGE_BYTES)
        .map_err(sql)?;
    // Before the first statement that reads the schema, which a hostile file controls.
    harden_connection(&conn).map_err(sql)?;
    if conn.is_readonly(rusqlite::MAIN_DB).map_err(sql)? {
        return Err(Error::Storage {
            path: path.to_owned(),
            fault: StorageFault::ReadOnly,
            source: None,
        });
    }
    // Must be set before the first page is written; it lets unused pages be returned later.
    let pages: u32 = conn
        .query_row("PRAGMA page_count", [], |row| row.get(0))
        .map_err(sql)?;
    if pages == 0 {
        conn.pragma_update(None, "auto_vacuum", "incremental")
            .map_err(sql)?;
    }
    // SQLite refuses some locks at once whatever the busy timeout, such as for the change to WAL.
    let mut remaining = options.busy_timeout;
    loop {
        let ready = migrate(&mut conn, path)
            .and_then(|()| {
                configure_connection(&conn, options).map_err(|error| from_sqlite(error, path))
            })
            .and_then(|()| prepare_index(&mut conn).map_err(|error| from_sqlite(error, path)));
        match ready {
            Err(Error::Busy { .. }) if !remaining.is_zero() => {
                std::thread::sleep(PAUSE);
                remaining = remaining.saturating_sub(PAUSE);
            }
            ready => return ready.map(|()| conn),
        }
    }
}

fn configure_connection(conn: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "full",
        Synchronous::Normal => "normal",
    };
    conn.pragma_update(None, "synchronous", synchronous)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    // Overwrites deleted content with zeros, so that it does not stay in free pages.
    conn.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    // Statement journals stay in memory instead of temporary files, where content would be left
    // behind.
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    if let Some(bytes) = options.max_bytes {
        let pages = (bytes / u64::from(PAGE_BYTES)).clamp(1, u64::from(u32::MAX - 1));
        conn.pragma_update_and_check(None, "max_page_count", pages as i64, |_| Ok(()))?;
    }
    Ok(())
}

/// Hardens a connection: a damaged or hostile file must not make SQLite misbehave.
pub(crate) fn harden_connection(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(128);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    conn.pragma_update(None, "cell_size_check", true)
}
