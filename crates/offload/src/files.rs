//! Copies as files, with blocking calls.
//!
//! Not here: threads, and the public interface (`fs`).

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File, FileTimes, Metadata};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use contexture_ir::NodeId;
use tempfile::Builder;

use crate::copy_key::{CopyKey, CopyScope};
use crate::error::OffloadError;
use crate::name::{CopyFileKind, file_name, parse_file_name, parse_folder_digest};
use crate::store::{CopyKind, CopyMetadata, CopyStats, PutOutcome, Reconciled, clamp_range};

/// Name prefix of unfinished files.
const UNFINISHED: &str = ".part-";
/// Age in milliseconds from which unfinished files are removed: no write takes that long.
const ABANDONED_MS: i64 = 3_600_000;

/// A folder with copies.
#[derive(Debug)]
pub(crate) struct CopyFolder {
    root: PathBuf,
}

impl CopyFolder {
    pub(crate) const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn copy_path(&self, key: &CopyKey, kind: CopyFileKind) -> PathBuf {
        self.conversation_folder(key)
            .join(file_name(key.content_hash(), kind))
    }

    fn conversation_folder(&self, key: &CopyKey) -> PathBuf {
        let [owner, conversation] = key.folder_digests();
        self.root
            .join(owner.to_string())
            .join(conversation.to_string())
    }

    pub(crate) fn put_copy(
        &self,
        key: &CopyKey,
        text: &Bytes,
        holding: CopyKind,
        at_ms: i64,
    ) -> Result<PutOutcome, OffloadError> {
        // An evicted text may be put again, by anyone who still has the output.
        let found = match self.find_copy(key) {
            Ok(entry) => Some(entry),
            Err(OffloadError::NotFound { .. } | OffloadError::Evicted { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut put = PutOutcome::New;
        let entry = CopyMetadata::for_put(*key, text.len() as u64, holding, at_ms, found.as_ref());
        if let Some(old) = found {
            let path = self.copy_path(key, CopyFileKind::Stored(old.copy_kind));
            // The length first: most damage is truncation, and reading large files back is expensive.
            let same = old.bytes == entry.bytes
                && fs::read(&path).is_ok_and(|bytes| bytes == text.as_ref());
            if same && old.copy_kind == entry.copy_kind {
                set_access_time(&path, entry.used_ms);
                return Ok(PutOutcome::Known);
            }
            put = if same {
                PutOutcome::Known
            } else {
                PutOutcome::Repaired
            };
        }
        self.make_folder(key)?;
        // The new file before the old ones are removed: a crash in between leaves two copies, which `list_copies`
        // merges, and never none.
        self.write_atomically(CopyFileKind::Stored(entry.copy_kind), &entry, text)?;
        // Removes the other kind of copy and a tombstone, if there are any: a text has one file.
        for kind in CopyFileKind::ALL {
            if kind != CopyFileKind::Stored(entry.copy_kind) {
                remove_if_present(&self.copy_path(key, kind))?;
            }
        }
        self.sync_folder(key)?;
        Ok(put)
    }

    pub(crate) fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        let entry = self.find_copy(key)?;
        let path = self.copy_path(key, CopyFileKind::Stored(entry.copy_kind));
        // Clamped, not refused: readers page through a text without knowing its length.
        let range = clamp_range(range, entry.bytes);
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(range.start))?;
            let mut text = Vec::new();
            file.take(range.end - range.start).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|error| match error.kind() {
            // Evicted between the lookup and the open.
            ErrorKind::NotFound => OffloadError::NotFound { key: *key },
            _ => OffloadError::storage_error("read", path.display(), error),
        })?;
        // The time is stored in the file's own metadata, so that a read writes no second file. It never goes back, even
        // if the clock does.
        set_access_time(&path, at_ms.max(entry.used_ms));
        Ok(text.into())
    }

    /// Returns the metadata of a copy.
    pub(crate) fn find_copy(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError> {
        self.check_folders(key)?;
        // The only copy first: after a crash both may exist, and the stronger guarantee must win.
        for holding in [CopyKind::OnlyCopy, CopyKind::Copy] {
            if let Some(found) = find_file(&self.copy_path(key, CopyFileKind::Stored(holding)))? {
                return Ok(copy_metadata(key, holding, &found));
            }
        }
        match find_file(&self.copy_path(key, CopyFileKind::Tombstone))? {
            Some(_) => Err(OffloadError::Evicted { key: *key }),
            None => Err(OffloadError::NotFound { key: *key }),
        }
    }

    pub(crate) fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError> {
        // By key, so that two files of one text count once.
        let mut entries: BTreeMap<CopyKey, CopyMetadata> = BTreeMap::new();
        self.walk_scope(scope, |found| {
            if let FolderEntry::Ours(key, CopyFileKind::Stored(holding), file) = found {
                let entry = copy_metadata(&key, holding, &entry_metadata(file)?);
                // A crash while a copy became the only one may have left both.
                let known = entries.entry(key).or_insert(entry);
                if known.copy_kind < holding {
                    *known = entry;
                }
            }
            Ok(())
        })?;
        Ok(entries.into_values().collect())
    }

    pub(crate) fn evict_copy(&self, key: &CopyKey) -> Result<bool, OffloadError> {
        let entry = match self.find_copy(key) {
            Ok(entry) => entry,
            Err(OffloadError::NotFound { .. } | OffloadError::Evicted { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        // The tombstone before the removal: a crash in between leaves the text readable, and never a text that is gone
        // without a trace.
        self.write_atomically(CopyFileKind::Tombstone, &entry, &Bytes::new())?;
        remove_if_present(&self.copy_path(key, CopyFileKind::Stored(entry.copy_kind)))?;
        self.sync_folder(key)?;
        Ok(true)
    }

    pub(crate) fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError> {
        // Counted first: tombstones and unfinished files are removed too, but are not copies.
        let count = self.list_copies(scope)?.len() as u64;
        // Files are removed during the walk, folders afterwards, when they are empty.
        let mut folders = Vec::new();
        self.walk_scope(scope, |found| match found {
            FolderEntry::Ours(_, _, file) | FolderEntry::Unfinished(file) => {
                remove_if_present(&file.path())
            }
            FolderEntry::Folder(path) => {
                folders.push(path.to_owned());
                Ok(())
            }
            FolderEntry::Foreign => Ok(()),
        })?;
        for folder in folders {
            // A folder that is not empty contains something foreign and stays, as does its parent.
            let emptied = fs::remove_dir(&folder).is_ok();
            if let (true, Some(parent)) = (emptied, folder.parent()) {
                let _ = fs::remove_dir(parent);
            }
        }
        Ok(count)
    }

    pub(crate) fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError> {
        let mut reconciled = Reconciled::default();
        self.walk_scope(&CopyScope::All, |found| {
            match found {
                FolderEntry::Unfinished(file) => {
                    let age = at_ms.saturating_sub(unix_ms(entry_metadata(file)?.modified()));
                    // A younger one may belong to a writer that is still active in another process.
                    if age >= ABANDONED_MS {
                        remove_if_present(&file.path())?;
                        reconciled.unfinished += 1;
                    }
                }
                FolderEntry::Foreign => reconciled.foreign += 1,
                FolderEntry::Ours(..) | FolderEntry::Folder(_) => {}
            }
            Ok(())
        })?;
        reconciled.stats = CopyStats::from_copies(&self.list_copies(&CopyScope::All)?);
        Ok(reconciled)
    }

    /// Writes a temporary file in the same folder and renames it into place.
    fn write_atomically(
        &self,
        kind: CopyFileKind,
        entry: &CopyMetadata,
        text: &[u8],
    ) -> Result<(), OffloadError> {
        let path = self.copy_path(&entry.key, kind);
        let write = || -> io::Result<()> {
            let mut file = Builder::new()
                .prefix(UNFINISHED)
                // In the same folder, because a rename is atomic only within one file system.
                .tempfile_in(self.conversation_folder(&entry.key))?;
            file.write_all(text)?;
            let times = FileTimes::new()
                .set_modified(system_time(entry.created_ms))
                .set_accessed(system_time(entry.used_ms));
            file.as_file().set_times(times)?;
            // Before the rename: a name must never refer to bytes that a power failure can lose.
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| OffloadError::storage_error("write", path.display(), error))
    }

    /// Creates the folders of a copy.
    fn make_folder(&self, key: &CopyKey) -> Result<(), OffloadError> {
        let folder = self.conversation_folder(key);
        fs::create_dir_all(&folder)
            .map_err(|error| OffloadError::storage_error("make", folder.display(), error))?;
        self.check_folders(key)
    }

    /// Checks that no folder of a copy below the root is a link.
    fn check_folders(&self, key: &CopyKey) -> Result<(), OffloadError> {
        let folder = self.conversation_folder(key);
        for place in [folder.parent().unwrap_or(&self.root), &folder] {
            // Not `metadata`, which follows links: a link placed here by somebody else could redirect writes out of the
            // folder.
            match fs::symlink_metadata(place) {
                Ok(found) if found.is_dir() => {}
                Ok(found) => {
                    return Err(OffloadError::Foreign {
                        path: place.display().to_string(),
                        found: file_type_name(&found),
                        expected: "a folder",
                    });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(OffloadError::storage_error(
                        "look at",
                        place.display(),
                        error,
                    ));
                }
            }
        }
        Ok(())
    }

    /// Makes the names in a copy's folder durable, where folders can be synchronised.
    fn sync_folder(&self, key: &CopyKey) -> Result<(), OffloadError> {
        let folder = self.conversation_folder(key);
        // On other systems a folder cannot be opened as a file, so it cannot be synchronised.
        if cfg!(unix) {
            let synced = File::open(&folder).and_then(|folder| folder.sync_all());
            synced.map_err(|error| {
                OffloadError::storage_error("synchronise", folder.display(), error)
            })?;
        }
        Ok(())
    }

    /// Calls `show` with everything in a scope; links are foreign.
    fn walk_scope(
        &self,
        scope: &CopyScope,
        mut show: impl FnMut(FolderEntry<'_>) -> Result<(), OffloadError>,
    ) -> Result<(), OffloadError> {
        for (owner, owner_folder) in list_digest_folders(&self.root, &mut show)? {
            let within = match scope {
                CopyScope::All => true,
                CopyScope::Owner(own) | CopyScope::Conversation(own, _) => owner == *own,
            };
            if !within {
                continue;
            }
            for (conversation, folder) in list_digest_folders(&owner_folder, &mut show)? {
                if matches!(scope, CopyScope::Conversation(_, own) if conversation != *own) {
                    continue;
                }
                for file in read_folder(&folder)? {
                    let name = file.file_name();
                    let name = name.to_str().unwrap_or_default();
                    // The entry's own type, because that does not follow links.
                    let plain = file.file_type().is_ok_and(|kind| kind.is_file());
                    show(match parse_file_name(name) {
                        Some((content, kind)) if plain => FolderEntry::Ours(
                            CopyKey::from_digests(owner, conversation, content),
                            kind,
                            &file,
                        ),
                        // A temporary file of a write that is in progress, or that a crash interrupted.
                        None if plain && name.starts_with(UNFINISHED) => {
                            FolderEntry::Unfinished(&file)
                        }
                        _ => FolderEntry::Foreign,
                    })?;
                }
                show(FolderEntry::Folder(&folder))?;
            }
        }
        Ok(())
    }
}

/// An entry found in the folders of a store.
enum FolderEntry<'a> {
    Ours(CopyKey, CopyFileKind, &'a DirEntry),
    Unfinished(&'a DirEntry),
    /// A conversation's folder, reported after its files.
    Folder(&'a Path),
    Foreign,
}

/// Returns the folders in a folder whose names are digests.
fn list_digest_folders(
    place: &Path,
    show: &mut impl FnMut(FolderEntry<'_>) -> Result<(), OffloadError>,
) -> Result<Vec<(NodeId, PathBuf)>, OffloadError> {
    let mut ours = Vec::new();
    for child in read_folder(place)? {
        let is_folder = child.file_type().is_ok_and(|kind| kind.is_dir());
        match child.file_name().to_str().and_then(parse_folder_digest) {
            Some(digest) if is_folder => ours.push((digest, child.path())),
            _ => show(FolderEntry::Foreign)?,
        }
    }
    Ok(ours)
}

fn read_folder(place: &Path) -> Result<Vec<DirEntry>, OffloadError> {
    let read = match fs::read_dir(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.and_then(Iterator::collect),
    };
    read.map_err(|error| OffloadError::storage_error("list", place.display(), error))
}

/// Returns the metadata of the file at a path; `None` if there is nothing.
fn find_file(path: &Path) -> Result<Option<Metadata>, OffloadError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(found)),
        Ok(found) => Err(OffloadError::Foreign {
            path: path.display().to_string(),
            found: file_type_name(&found),
            expected: "a file",
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OffloadError::storage_error(
            "look at",
            path.display(),
            error,
        )),
    }
}

fn entry_metadata(file: &DirEntry) -> Result<Metadata, OffloadError> {
    let found = fs::symlink_metadata(file.path());
    found.map_err(|error| OffloadError::storage_error("look at", file.path().display(), error))
}

fn file_type_name(found: &Metadata) -> &'static str {
    match () {
        () if found.is_symlink() => "a symbolic link",
        () if found.is_dir() => "a folder",
        () if found.is_file() => "a file",
        () => "something special",
    }
}

/// Removes a file; a missing file is no error.
fn remove_if_present(path: &Path) -> Result<(), OffloadError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(OffloadError::storage_error("remove", path.display(), error))
        }
        _ => Ok(()),
    }
}

/// Records when a text was used. If that fails, the text only seems unused.
fn set_access_time(path: &Path, at_ms: i64) {
    let times = FileTimes::new().set_accessed(system_time(at_ms));
    let _ = File::open(path).and_then(|file| file.set_times(times));
}

fn copy_metadata(key: &CopyKey, holding: CopyKind, found: &Metadata) -> CopyMetadata {
    let created_ms = unix_ms(found.modified());
    CopyMetadata {
        key: *key,
        bytes: found.len(),
        copy_kind: holding,
        created_ms,
        used_ms: unix_ms(found.accessed()).max(created_ms),
    }
}

fn system_time(at_ms: i64) -> SystemTime {
    let distance = Duration::from_millis(at_ms.unsigned_abs());
    let time = if at_ms < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

fn unix_ms(time: io::Result<SystemTime>) -> i64 {
    let Ok(time) = time else { return 0 };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => {
            let before = i64::try_from(before.duration().as_millis());
            before.map_or(i64::MIN, |before| -before)
        }
    }
}
