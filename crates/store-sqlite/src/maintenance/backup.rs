//! Copies the database to a file while it is written to.
//!
//! The copy is made by one read transaction, so it is a snapshot of one instant, and writers do not
//! wait. It gets its final name only once it is complete and synced. Not here: restoring, which is
//! opening the copy.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use contexture_store::{BackedUp, EntityKind, Error, StorageFault};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::error::{RowError, from_sqlite};

/// Copies what `conn` sees to the new file `to`.
pub(crate) fn back_up(conn: &Connection, to: &Path) -> Result<BackedUp, RowError> {
    if to.try_exists().map_err(|error| file_error(to, error))? {
        return Err(file_exists_error(to));
    }
    let part = PartialBackup::create_file(to)?;
    copy_database(conn, &part.path).map_err(|error| from_sqlite(error, &part.path))?;
    let written = || -> io::Result<u64> {
        let file = File::open(&part.path)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    };
    let bytes = written().map_err(|error| file_error(&part.path, error))?;
    // Unlike a rename, a hard link never replaces a file that was created meanwhile.
    fs::hard_link(&part.path, to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => file_exists_error(to),
        _ => file_error(to, error),
    })?;
    if let Some(directory) = to.parent().filter(|parent| !parent.as_os_str().is_empty())
        && let Ok(directory) = File::open(directory)
    {
        // Not every system can sync a directory; the copy is complete in any case.
        let _ = directory.sync_all();
    }
    Ok(BackedUp { bytes })
}

fn copy_database(conn: &Connection, to: &Path) -> rusqlite::Result<()> {
    let mut copy = Connection::open(to)?;
    // No journal and no syncs: nobody else uses the file, and a partial one is removed.
    copy.pragma_update(None, "synchronous", "off")?;
    copy.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
    let step = Backup::new(conn, &mut copy)?.step(-1)?;
    if step != StepResult::Done {
        let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        return Err(rusqlite::Error::SqliteFailure(busy, None));
    }
    copy.close().map_err(|(_, error)| error)
}

/// Temporary file beside the target; removed on drop, whether the backup succeeded or not.
struct PartialBackup {
    path: PathBuf,
}

impl PartialBackup {
    fn create_file(to: &Path) -> Result<Self, RowError> {
        let mut name = OsString::from(to);
        name.push(".part");
        let path = PathBuf::from(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(_) => Ok(Self { path }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(file_exists_error(&path))
            }
            Err(error) => Err(file_error(&path, error)),
        }
    }
}

impl Drop for PartialBackup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove a part of a backup");
        }
    }
}

fn file_exists_error(path: &Path) -> RowError {
    Error::already_exists(EntityKind::File, path.display()).into()
}

fn file_error(path: &Path, error: io::Error) -> RowError {
    let fault = match error.kind() {
        io::ErrorKind::StorageFull => StorageFault::Full,
        io::ErrorKind::ReadOnlyFilesystem => StorageFault::ReadOnly,
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => StorageFault::CannotOpen,
        _ => StorageFault::Io,
    };
    Error::Storage {
        path: path.to_owned(),
        fault,
        source: Some(Box::new(error)),
    }
    .into()
}
