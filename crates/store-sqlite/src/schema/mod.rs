//! The schema: the format of a database file, and its migrations.
//!
//! `application_id` identifies files of this program, `user_version` is their format, and the table
//! `format` says which versions of this program may still read or write them. Migrations are the
//! numbered files in `migrations/`. All that are needed run in one transaction with the new
//! `user_version`, so a crash leaves either the old or the new format.
//!
//! To add a column: a new file in `migrations/`, its entry in [`MIGRATIONS`] and the next [`FORMAT`]; then the code that
//! writes and reads rows (for nodes `rows/node_columns.rs` and `rows/node_row.rs`), and the same in the PostgreSQL store
//! (`schema.rs`, `rows/`).

use std::path::Path;

use contexture_store::{Error, StorageFault};
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::{Batch, Connection, TransactionBehavior};

use crate::conversations::list_index::fill_list_index;
use crate::error::{RowError, from_sqlite};
use crate::rows::node_columns::repack_rows;

#[cfg(test)]
mod tests;

/// The newest format this version knows.
pub const FORMAT: u32 = 19;

/// The `application_id` of a database file: `CTXR` in ASCII.
const APPLICATION_ID: i32 = 0x4354_5852;

/// One migration: SQL statements, and a function for what SQL cannot express.
struct Migration {
    sql: &'static str,
    fill: fn(&Connection) -> Result<(), RowError>,
}

/// All migrations; the one at index n leads from format n to format n + 1.
const MIGRATIONS: [Migration; FORMAT as usize] = [
    Migration {
        sql: include_str!("../../migrations/0001_begin.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0002_contract.sql"),
        // Its attributes are made anew by a later one.
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0003_node_check.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0004_search.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0005_compression.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0006_streams.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0007_collecting.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0008_space.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0009_packed.sql"),
        fill: repack_rows,
    },
    Migration {
        sql: include_str!("../../migrations/0010_responses.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0011_live_values.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0012_moved_branches.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0013_list_index.sql"),
        fill: fill_list_index,
    },
    Migration {
        sql: include_str!("../../migrations/0014_path_index_order.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0015_calls.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0016_index_of_ids.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0017_call_bodies.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0018_branch_holders.sql"),
        fill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/0019_search_merges.sql"),
        fill: |_| Ok(()),
    },
];

/// Identification and format of a file.
struct FormatStamp {
    application_id: i32,
    format: u32,
    empty: bool,
}

/// Migrates the database to the newest format, or says why that is impossible.
pub(crate) fn migrate(conn: &mut Connection, path: &Path) -> Result<(), Error> {
    migrate_watched(conn, path, &mut |_| ())
}

/// Whether the database can be used without a migration.
pub(crate) fn is_newest_format(conn: &Connection, path: &Path) -> Result<bool, Error> {
    let stamp = read_stamp(conn).map_err(|error| from_sqlite(error, path))?;
    check_schema_version(&stamp, conn, path)
}

/// Does the same as [`migrate`] and calls `after` after each statement.
pub(crate) fn migrate_watched(
    conn: &mut Connection,
    path: &Path,
    after: &mut dyn FnMut(&Connection),
) -> Result<(), Error> {
    let sql = |error| from_sqlite(error, path);
    {
        // In one transaction, so that no other process migrates between the reads.
        let tx = conn.transaction().map_err(sql)?;
        if check_schema_version(&read_stamp(&tx).map_err(sql)?, &tx, path)? {
            return Ok(());
        }
    }
    let tx = conn
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sql)?;
    // Another process may have migrated meanwhile.
    let stamp = read_stamp(&tx).map_err(sql)?;
    if check_schema_version(&stamp, &tx, path)? {
        return Ok(());
    }
    let done = usize::try_from(stamp.format).unwrap_or(usize::MAX);
    for migration in MIGRATIONS.iter().skip(done) {
        let mut statements = Batch::new(&tx, migration.sql);
        while let Some(mut statement) = statements.next().map_err(sql)? {
            statement.execute([]).map_err(sql)?;
            after(&tx);
        }
        (migration.fill)(&tx).map_err(|fault| fault.into_error(path))?;
        after(&tx);
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)
        .map_err(sql)?;
    tx.pragma_update(None, "user_version", FORMAT)
        .map_err(sql)?;
    after(&tx);
    tx.commit().map_err(sql)
}

/// Returns whether the database can be used as it is (`true`) or after migration (`false`).
fn check_schema_version(
    stamp: &FormatStamp,
    conn: &Connection,
    path: &Path,
) -> Result<bool, Error> {
    if stamp.application_id != APPLICATION_ID && !(stamp.application_id == 0 && stamp.empty) {
        return Err(Error::Storage {
            path: path.to_owned(),
            fault: StorageFault::NotADatabase,
            source: None,
        });
    }
    if stamp.format == 0 {
        return Ok(false);
    }
    // The newest version that wrote the file has recorded which versions may still use it.
    let needed: u32 = conn
        .query_row(
            "SELECT max(min_reader, min_writer) FROM format",
            [],
            |row| row.get(0),
        )
        .unwrap_or(stamp.format);
    if needed > FORMAT {
        return Err(Error::Newer {
            path: path.to_owned(),
            found: needed,
            supported: FORMAT,
        });
    }
    // No format requires a later one of itself: whoever changed the number did not change the tables.
    if needed > stamp.format {
        let found = stamp.format;
        let what = format!(
            "its user_version says format {found}, its tables are of format {needed} or later"
        );
        return Err(Error::Storage {
            path: path.to_owned(),
            fault: StorageFault::Corrupt,
            source: Some(what.into()),
        });
    }
    Ok(stamp.format >= FORMAT)
}

fn read_stamp(conn: &Connection) -> rusqlite::Result<FormatStamp> {
    Ok(FormatStamp {
        application_id: conn.query_row("PRAGMA application_id", [], |row| row.get(0))?,
        format: conn.query_row("PRAGMA user_version", [], |row| row.get(0))?,
        empty: conn.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
            row.get(0)
        })?,
    })
}
