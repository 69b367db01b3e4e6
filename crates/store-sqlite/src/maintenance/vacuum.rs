//! Returns unused pages to the file system.
//!
//! `VACUUM` copies the whole database and would block writers for as long. The database is
//! therefore created with `auto_vacuum = incremental`, and pages are returned in short steps, with
//! other writes in between. Only a database that was created without that setting is copied, once.

use rusqlite::Connection;

use super::statistics::unsigned_column;
use crate::error::RowError;

/// Number of pages that one step returns.
const STEP_PAGES: u32 = 256;

/// Returns the size of the database in bytes, unused pages included.
pub(crate) fn database_bytes(conn: &Connection) -> Result<u64, RowError> {
    let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    Ok(conn.query_row(sql, [], |row| unsigned_column(row, 0))?)
}

/// Enables incremental vacuum. Must run outside a transaction.
pub(crate) fn enable_incremental_vacuum(conn: &Connection) -> Result<(), RowError> {
    // 2 is `incremental`. Any other database is copied once.
    let mode: u32 = conn.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
    if mode != 2 {
        // The temporary copy is as large as the database, too large for memory.
        conn.execute_batch("PRAGMA temp_store = file; PRAGMA auto_vacuum = incremental")?;
        let vacuumed = conn.execute_batch("VACUUM");
        // Restored before the error is returned: the connection is the writer's and stays in use.
        conn.pragma_update(None, "temp_store", "memory")?;
        vacuumed?;
    }
    Ok(())
}

/// Returns some unused pages to the file system; tells whether there are more.
pub(crate) fn vacuum_step(conn: &Connection) -> Result<bool, RowError> {
    let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    let remaining: u32 = conn.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    Ok(remaining > 0)
}
