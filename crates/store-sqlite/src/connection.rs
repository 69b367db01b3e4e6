//! Opens connections to a database file and configures them.
//!
//! A database holds everything that was said to a model, so its file, what lies beside it and its backups are created for
//! the user who runs the program alone (mode 0600, folders 0700 on Unix). Files that exist keep their mode: somebody may
//! have widened it on purpose.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use contexture_store::{Error, StorageFault};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::from_sqlite;
use crate::options::{SqliteOptions, Synchronous};
use crate::schema::{FORMAT, is_newest_format, migrate};
use crate::search::index::{is_of_this_version, prepare_index};

/// Size of a database page in bytes: large enough for a few items, small enough that an append of
/// one item writes little.
const PAGE_BYTES: u32 = 8192;

/// Pages in the log from which a commit writes them back to the database: 32 MB.
const CHECKPOINT_PAGES: u32 = 4000;

/// Pause between two attempts to open.
const PAUSE: Duration = Duration::from_millis(5);

/// Opens or creates a database, ready for writing.
pub(crate) fn open_connection(path: &Path, options: &SqliteOptions) -> Result<Connection, Error> {
    let sql = |error| from_sqlite(error, path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Created here, because SQLite would create it for everybody to read. It makes its log and its
    // index as private as this file. What cannot be created, SQLite reports.
    let _existing = create_private_file(path);
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
    let since = Instant::now();
    loop {
        let ready = migrate(&mut conn, path)
            .and_then(|()| {
                configure_connection(&conn, options).map_err(|error| from_sqlite(error, path))
            })
            .and_then(|()| prepare_index(&mut conn).map_err(|error| from_sqlite(error, path)));
        match ready {
            Err(Error::Busy { .. }) if since.elapsed() < options.busy_timeout => {
                std::thread::sleep(PAUSE);
            }
            ready => return ready.map(|()| conn),
        }
    }
}

/// Whether anybody may change a database file while it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileChanges {
    /// Somebody may; locks and the log say what readers see.
    Possible,
    /// The medium is read-only and there is no log, so the file is all there is.
    Impossible,
}

/// Returns options for opening files that are private once they are created.
pub(crate) fn private_options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut options = File::options();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// Creates an empty private file; fails if there is a file of this name.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    private_options().write(true).create_new(true).open(path)
}

/// Creates a private folder, and those above it, unless it exists.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Opens a connection that only reads.
pub(crate) fn open_reader(path: &Path, changes: FileChanges) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match changes {
        FileChanges::Possible => Connection::open_with_flags(path, flags)?,
        FileChanges::Impossible => {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path), flags)?
        }
    };
    harden_connection(&conn)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// Checks that a database that cannot be written can be read, and says how. Nothing is created, changed or waited for.
///
/// # Errors
///
/// [`Error::Older`] for a format or an index that only writing brings up to date.
pub(crate) fn check_readable(path: &Path) -> Result<FileChanges, Error> {
    let sql = |error| from_sqlite(error, path);
    for changes in [FileChanges::Possible, FileChanges::Impossible] {
        // Already the settings of a connection may read the file.
        let opened = open_reader(path, changes).map_err(sql);
        let opened = opened.and_then(|conn| Ok((is_newest_format(&conn, path)?, conn)));
        let (is_usable, conn) = match opened {
            // A log needs an index beside it, which cannot be made here. Without a log there is
            // nothing to index.
            Err(Error::Storage {
                fault: StorageFault::CannotOpen | StorageFault::ReadOnly,
                ..
            }) if changes == FileChanges::Possible && !has_log(path) => continue,
            opened => opened?,
        };
        if is_usable && is_of_this_version(&conn).map_err(sql)? {
            return Ok(changes);
        }
        let found = conn.query_row("PRAGMA user_version", [], |row| row.get(0));
        return Err(Error::Older {
            path: path.to_owned(),
            found: found.map_err(sql)?,
            needed: FORMAT,
        });
    }
    Err(Error::Storage {
        path: path.to_owned(),
        fault: StorageFault::CannotOpen,
        source: None,
    })
}

/// Whether there is a write-ahead log with something in it.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Returns the name by which SQLite opens a file without locks and without a log.
fn immutable_uri(path: &Path) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'?' | b'#' | b'%' => uri.extend(format!("%{byte:02x}").bytes()),
            byte => uri.push(*byte),
        }
    }
    uri.extend(b"?immutable=1");
    PathBuf::from(String::from_utf8_lossy(&uri).into_owned())
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
    // A large history touches most pages of the indexes with random keys in every transaction: those that fit in neither the
    // cache nor the log are written again each time.
    conn.pragma_update(None, "cache_size", -65_536)?;
    conn.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that nothing changes is read without anything beside it, whatever its name.
    #[test]
    fn an_unchanging_file_is_read_alone() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("a?b #c%20&immutable=0");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("kept.db");
        drop(open_connection(&path, &SqliteOptions::default()).unwrap());
        let count = || std::fs::read_dir(&folder).unwrap().count();
        let before = count();
        let conn = open_reader(&path, FileChanges::Impossible).unwrap();
        assert!(is_newest_format(&conn, &path).unwrap());
        assert_eq!(count(), before);
        assert!(!has_log(&path));
        std::fs::write(folder.join("kept.db-wal"), "log").unwrap();
        assert!(has_log(&path));
    }
}
