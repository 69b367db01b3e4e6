//! Locks by which processes that share a database file know at once that one of them has ended.
//!
//! Each process holds the lock of a file of its own, named by its id, in the folder beside the database with the suffix
//! `-processes`. The operating system releases the lock when the process ends, however it ends, so nobody has to wait until
//! its number has stood still.
//!
//! The lock is the standard library's, of an open file and not of a process: two stores in one process are two processes
//! here. Where it cannot be had, on a file system or a platform without locks, a process is registered without one and
//! known by its number alone.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_ir::ProcessId;

use crate::connection::{create_private_folder, private_options};

/// The folder of the locks, and those that this store holds. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ProcessLocks(Arc<Locks>);

#[derive(Debug)]
struct Locks {
    /// Folder of the lock files; `None` if the database's path cannot be resolved.
    folder: Option<PathBuf>,
    held: Mutex<BTreeMap<ProcessId, Option<File>>>,
}

impl ProcessLocks {
    pub(crate) fn new(database: &Path) -> Self {
        // Different paths to one database lead to the same folder.
        let folder = database.canonicalize().ok().map(|database| {
            let mut folder = database.into_os_string();
            folder.push("-processes");
            PathBuf::from(folder)
        });
        Self(Arc::new(Locks {
            folder,
            held: Mutex::default(),
        }))
    }

    /// Takes the lock of a process, once, and returns whether it is held. Blocks.
    pub(crate) fn hold_lock(&self, process: ProcessId) -> bool {
        let mut held = self.0.lock_held();
        let lock = held.entry(process);
        lock.or_insert_with(|| self.0.create_lock(process))
            .is_some()
    }

    /// Whether nobody holds the lock of a process that was registered with one. Blocks.
    pub(crate) fn is_free(&self, process: ProcessId) -> bool {
        let Some(path) = self.0.lock_path(process) else {
            return false;
        };
        match File::open(path) {
            // Shared, so that two who look at once do not take each other for the process.
            Ok(file) => file.try_lock_shared().is_ok(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    /// Removes the lock file of a process that has ended. Blocks.
    pub(crate) fn remove_lock(&self, process: ProcessId) {
        let path = self.0.lock_path(process);
        // One that stays costs an empty file.
        let _removed = path.map(std::fs::remove_file);
    }
}

impl Locks {
    fn lock_held(&self) -> MutexGuard<'_, BTreeMap<ProcessId, Option<File>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_path(&self, process: ProcessId) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(process.to_string()))
    }

    fn create_lock(&self, process: ProcessId) -> Option<File> {
        let path = self.lock_path(process)?;
        create_private_folder(path.parent()?).ok()?;
        let file = private_options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.ok()?;
        match file.try_lock() {
            Ok(()) => Some(file),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => None,
        }
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        let held = std::mem::take(&mut *self.lock_held());
        for (process, lock) in held {
            // Removed while it is locked, so nobody sees a free file of a process that lives.
            if let (Some(path), true) = (self.lock_path(process), lock.is_some()) {
                let _removed = std::fs::remove_file(path);
            }
        }
    }
}
