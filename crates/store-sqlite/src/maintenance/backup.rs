//! Copies the database to a file while it is written to.
//!
//! The copy is made by one read transaction, so it is a snapshot of one instant, and writers do not
//! wait. It gets its final name only once it is complete and synced. A backup that was killed leaves
//! a part, which the next backup to the same name removes. Not here: restoring, which is opening the
//! copy.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use contexture_store::{BackedUp, EntityKind, Error, StorageFault};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use crate::connection::create_private_file;
use crate::error::{RowError, from_sqlite};

/// End of the name of a copy that is not complete.
const PART: &str = ".part";
/// End of the name of the file that is locked for as long as somebody makes such a copy. It is a file of its own, since
/// SQLite locks the copy in its own way.
const LOCK: &str = ".part-lock";

/// Copies what `conn` sees to the new file `to`.
pub(crate) fn back_up(conn: &Connection, to: &Path) -> Result<BackedUp, RowError> {
    if to.try_exists().map_err(|error| file_error(to, error))? {
        return Err(file_exists_error(to));
    }
    remove_stale_parts(to);
    let part = PartialBackup::create_file(to)?;
    copy_database(conn, &part.path).map_err(|error| from_sqlite(error, &part.path))?;
    let written = || -> io::Result<u64> {
        let file = File::open(&part.path)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    };
    let bytes = written().map_err(|error| file_error(&part.path, error))?;
    publish_file(&part.path, to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => file_exists_error(to),
        _ => file_error(to, error),
    })?;
    if let Ok(directory) = File::open(folder_of(to)) {
        // Not every system can sync a directory; the copy is complete in any case.
        let _ = directory.sync_all();
    }
    Ok(BackedUp { bytes })
}

fn folder_of(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
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

/// Gives a complete file its name, unless another file has it.
fn publish_file(part: &Path, to: &Path) -> io::Result<()> {
    // Unlike a rename, a hard link never replaces a file that was created meanwhile.
    match fs::hard_link(part, to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => take_name(part, to),
        linked => linked,
    }
}

/// Does the same on a file system without hard links: an empty file takes the name, and only that one is replaced.
fn take_name(part: &Path, to: &Path) -> io::Result<()> {
    drop(create_private_file(to)?);
    fs::rename(part, to).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}

/// Removes what earlier backups to `to` left when they were killed: parts whose locks nobody holds.
fn remove_stale_parts(to: &Path) {
    let Some(name) = to.file_name() else {
        return;
    };
    let Ok(entries) = fs::read_dir(folder_of(to)) else {
        return;
    };
    for entry in entries.flatten() {
        if is_lock_of(&entry.file_name(), name)
            && let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            // The part first: a part without its lock would stay.
            let part = entry.path().with_extension("part");
            let removed = fs::remove_file(&part).and_then(|()| fs::remove_file(entry.path()));
            match removed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let _ = fs::remove_file(entry.path());
                }
                removed => warn_unless_removed(&part, removed),
            }
        }
    }
}

/// Whether a file is the lock of a part of the backup `name`: `name.<16 digits>.part-lock`.
fn is_lock_of(file: &OsStr, name: &OsStr) -> bool {
    let rest = file
        .as_encoded_bytes()
        .strip_prefix(name.as_encoded_bytes());
    let digits = rest
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(LOCK.as_bytes()));
    digits.is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Temporary file beside the target; removed on drop, whether the backup succeeded or not.
struct PartialBackup {
    path: PathBuf,
    lock_path: PathBuf,
    /// Locked; released when the process ends, however it ends.
    _lock: File,
}

impl PartialBackup {
    fn create_file(to: &Path) -> Result<Self, RowError> {
        loop {
            let named = |end: &str| {
                let mut name = OsString::from(to);
                name.push(end);
                PathBuf::from(name)
            };
            // Seeded by the operating system for each process, and different for each call.
            let random = format!(".{:016x}", RandomState::new().hash_one(0));
            let (path, lock_path) = (named(&(random.clone() + PART)), named(&(random + LOCK)));
            let lock = match create_private_file(&lock_path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(file_error(&lock_path, error)),
            };
            match lock.try_lock() {
                // Where nothing can be locked, a killed backup leaves its part.
                Ok(()) | Err(TryLockError::Error(_)) => {}
                // Another backup takes it for a stale one, and removes it.
                Err(TryLockError::WouldBlock) => continue,
            }
            let part = Self {
                path,
                lock_path,
                _lock: lock,
            };
            return match create_private_file(&part.path) {
                Ok(_) => Ok(part),
                Err(error) => Err(file_error(&part.path, error)),
            };
        }
    }
}

impl Drop for PartialBackup {
    fn drop(&mut self) {
        match fs::remove_file(&self.path) {
            // It was renamed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => warn_unless_removed(&self.path, removed),
        }
        warn_unless_removed(&self.lock_path, fs::remove_file(&self.lock_path));
    }
}

fn warn_unless_removed(path: &Path, removed: io::Result<()>) {
    if let Err(error) = removed {
        tracing::warn!(%error, path = %path.display(), "cannot remove a part of a backup");
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Without hard links, a name is taken by renaming, and still never from another file.
    #[test]
    fn a_name_is_taken_without_replacing_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let (part, to) = (directory.path().join("a.part"), directory.path().join("a"));
        fs::write(&part, "copy").unwrap();
        fs::write(&to, "theirs").unwrap();
        let error = take_name(&part, &to).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&to).unwrap(), "theirs");
        fs::remove_file(&to).unwrap();
        take_name(&part, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "copy");
        assert!(!part.exists());
        let missing = take_name(&part, &directory.path().join("b"));
        assert!(missing.is_err() && !directory.path().join("b").exists());
    }

    #[test]
    fn only_locks_of_this_name_are_known() {
        let check = |file: &str, expected: bool| {
            assert_eq!(
                is_lock_of(OsStr::new(file), OsStr::new("bk.db")),
                expected,
                "{file}"
            );
        };
        check("bk.db.0123456789abcdef.part-lock", true);
        check("bk.db.0123456789abcdef.part", false);
        check("bk.db.part-lock", false);
        check("bk.db.0123456789abcdeg.part-lock", false);
        check("other.0123456789abcdef.part-lock", false);
        check("bk.db.bk.db.0123456789abcdef.part-lock", false);
    }
}
