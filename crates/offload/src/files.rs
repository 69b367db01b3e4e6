//! The files of copies: one call after the other, blocking.
//!
//! Not here: threads, and what callers see (`fs`).

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File, FileTimes, Metadata};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use contexture_ir::NodeId;
use tempfile::Builder;

use crate::error::OffloadError;
use crate::key::{Key, Scope};
use crate::name::{Kind, folder, name, read};
use crate::store::{Entry, Holding, Put, Reconciled, Stats, within};

/// How unfinished files are called.
const UNFINISHED: &str = ".part-";
/// How old they must be to be removed, in milliseconds: nobody writes one text for that long.
const ABANDONED_MS: i64 = 3_600_000;

/// A folder with copies.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
}

impl Files {
    pub(crate) const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, key: &Key, kind: Kind) -> PathBuf {
        self.folder(key).join(name(key.content(), kind))
    }

    fn folder(&self, key: &Key) -> PathBuf {
        let [owner, conversation] = key.folders();
        self.root
            .join(owner.to_string())
            .join(conversation.to_string())
    }

    pub(crate) fn put(
        &self,
        key: &Key,
        text: &Bytes,
        holding: Holding,
        at_ms: i64,
    ) -> Result<Put, OffloadError> {
        let found = match self.find(key) {
            Ok(entry) => Some(entry),
            Err(OffloadError::NotFound { .. } | OffloadError::Evicted { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut put = Put::New;
        let entry = Entry::put(*key, text.len() as u64, holding, at_ms, found.as_ref());
        if let Some(old) = found {
            let path = self.path(key, Kind::Held(old.holding));
            let same = old.bytes == entry.bytes
                && fs::read(&path).is_ok_and(|bytes| bytes == text.as_ref());
            if same && old.holding == entry.holding {
                used(&path, entry.used_ms);
                return Ok(Put::Known);
            }
            put = if same { Put::Known } else { Put::Repaired };
        }
        self.make_folder(key)?;
        self.write(Kind::Held(entry.holding), &entry, text)?;
        for kind in Kind::ALL {
            if kind != Kind::Held(entry.holding) {
                remove(&self.path(key, kind))?;
            }
        }
        self.sync(key)?;
        Ok(put)
    }

    pub(crate) fn get(
        &self,
        key: &Key,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        let entry = self.find(key)?;
        let path = self.path(key, Kind::Held(entry.holding));
        let range = within(range, entry.bytes);
        let read = || -> io::Result<Vec<u8>> {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(range.start))?;
            let mut text = Vec::new();
            file.take(range.end - range.start).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|error| match error.kind() {
            ErrorKind::NotFound => OffloadError::NotFound { key: *key },
            _ => OffloadError::storage("read", path.display(), error),
        })?;
        used(&path, at_ms.max(entry.used_ms));
        Ok(text.into())
    }

    /// What is known of a text.
    pub(crate) fn find(&self, key: &Key) -> Result<Entry, OffloadError> {
        self.check_folders(key)?;
        for holding in [Holding::Only, Holding::Copy] {
            if let Some(found) = file_at(&self.path(key, Kind::Held(holding)))? {
                return Ok(entry(key, holding, &found));
            }
        }
        match file_at(&self.path(key, Kind::Gone))? {
            Some(_) => Err(OffloadError::Evicted { key: *key }),
            None => Err(OffloadError::NotFound { key: *key }),
        }
    }

    pub(crate) fn list(&self, scope: &Scope) -> Result<Vec<Entry>, OffloadError> {
        let mut entries: BTreeMap<Key, Entry> = BTreeMap::new();
        self.walk(scope, |found| {
            if let Found::Ours(key, Kind::Held(holding), file) = found {
                let entry = entry(&key, holding, &metadata(file)?);
                // A crash while a copy became the only one may have left both.
                let known = entries.entry(key).or_insert(entry);
                if known.holding < holding {
                    *known = entry;
                }
            }
            Ok(())
        })?;
        Ok(entries.into_values().collect())
    }

    pub(crate) fn evict(&self, key: &Key) -> Result<bool, OffloadError> {
        let entry = match self.find(key) {
            Ok(entry) => entry,
            Err(OffloadError::NotFound { .. } | OffloadError::Evicted { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        self.write(Kind::Gone, &entry, &Bytes::new())?;
        remove(&self.path(key, Kind::Held(entry.holding)))?;
        self.sync(key)?;
        Ok(true)
    }

    pub(crate) fn clear(&self, scope: &Scope) -> Result<u64, OffloadError> {
        let count = self.list(scope)?.len() as u64;
        let mut folders = Vec::new();
        self.walk(scope, |found| match found {
            Found::Ours(_, _, file) | Found::Unfinished(file) => remove(&file.path()),
            Found::Folder(path) => {
                folders.push(path.to_owned());
                Ok(())
            }
            Found::Foreign => Ok(()),
        })?;
        for folder in folders {
            // What is not empty holds something foreign and stays, as does its parent.
            let emptied = fs::remove_dir(&folder).is_ok();
            if let (true, Some(parent)) = (emptied, folder.parent()) {
                let _ = fs::remove_dir(parent);
            }
        }
        Ok(count)
    }

    pub(crate) fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError> {
        let mut reconciled = Reconciled::default();
        self.walk(&Scope::All, |found| {
            match found {
                Found::Unfinished(file) => {
                    let age = at_ms.saturating_sub(ms(metadata(file)?.modified()));
                    if age >= ABANDONED_MS {
                        remove(&file.path())?;
                        reconciled.unfinished += 1;
                    }
                }
                Found::Foreign => reconciled.foreign += 1,
                Found::Ours(..) | Found::Folder(_) => {}
            }
            Ok(())
        })?;
        reconciled.stats = Stats::of(&self.list(&Scope::All)?);
        Ok(reconciled)
    }

    /// Writes a file beside its place and puts it there at once.
    fn write(&self, kind: Kind, entry: &Entry, text: &[u8]) -> Result<(), OffloadError> {
        let path = self.path(&entry.key, kind);
        let write = || -> io::Result<()> {
            let mut file = Builder::new()
                .prefix(UNFINISHED)
                .tempfile_in(self.folder(&entry.key))?;
            file.write_all(text)?;
            let times = FileTimes::new()
                .set_modified(time(entry.created_ms))
                .set_accessed(time(entry.used_ms));
            file.as_file().set_times(times)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| OffloadError::storage("write", path.display(), error))
    }

    /// Makes what is missing of the way to a text.
    fn make_folder(&self, key: &Key) -> Result<(), OffloadError> {
        let folder = self.folder(key);
        fs::create_dir_all(&folder)
            .map_err(|error| OffloadError::storage("make", folder.display(), error))?;
        self.check_folders(key)
    }

    /// Nothing on the way to a text is a link.
    fn check_folders(&self, key: &Key) -> Result<(), OffloadError> {
        let folder = self.folder(key);
        for place in [folder.parent().unwrap_or(&self.root), &folder] {
            match fs::symlink_metadata(place) {
                Ok(found) if found.is_dir() => {}
                Ok(found) => {
                    return Err(OffloadError::Foreign {
                        place: place.display().to_string(),
                        found: kind_of(&found),
                        expected: "a folder",
                    });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(OffloadError::storage("look at", place.display(), error)),
            }
        }
        Ok(())
    }

    /// Makes the names in a text's folder durable, where folders can be synchronised.
    fn sync(&self, key: &Key) -> Result<(), OffloadError> {
        let folder = self.folder(key);
        if cfg!(unix) {
            let synced = File::open(&folder).and_then(|folder| folder.sync_all());
            synced
                .map_err(|error| OffloadError::storage("synchronise", folder.display(), error))?;
        }
        Ok(())
    }

    /// Shows everything of a scope; links are foreign.
    fn walk(
        &self,
        scope: &Scope,
        mut show: impl FnMut(Found<'_>) -> Result<(), OffloadError>,
    ) -> Result<(), OffloadError> {
        for (owner, owner_folder) in folders(&self.root, &mut show)? {
            let within = match scope {
                Scope::All => true,
                Scope::Owner(own) | Scope::Conversation(own, _) => owner == *own,
            };
            if !within {
                continue;
            }
            for (conversation, folder) in folders(&owner_folder, &mut show)? {
                if matches!(scope, Scope::Conversation(_, own) if conversation != *own) {
                    continue;
                }
                for file in children(&folder)? {
                    let name = file.file_name();
                    let name = name.to_str().unwrap_or_default();
                    let plain = file.file_type().is_ok_and(|kind| kind.is_file());
                    show(match read(name) {
                        Some((content, kind)) if plain => {
                            Found::Ours(Key::of(owner, conversation, content), kind, &file)
                        }
                        None if plain && name.starts_with(UNFINISHED) => Found::Unfinished(&file),
                        _ => Found::Foreign,
                    })?;
                }
                show(Found::Folder(&folder))?;
            }
        }
        Ok(())
    }
}

/// What lies in a folder.
enum Found<'a> {
    Ours(Key, Kind, &'a DirEntry),
    Unfinished(&'a DirEntry),
    /// A conversation's folder, after what is in it.
    Folder(&'a Path),
    Foreign,
}

/// The folders in a folder that are ours.
fn folders(
    place: &Path,
    show: &mut impl FnMut(Found<'_>) -> Result<(), OffloadError>,
) -> Result<Vec<(NodeId, PathBuf)>, OffloadError> {
    let mut ours = Vec::new();
    for child in children(place)? {
        let is_folder = child.file_type().is_ok_and(|kind| kind.is_dir());
        match child.file_name().to_str().and_then(folder) {
            Some(digest) if is_folder => ours.push((digest, child.path())),
            _ => show(Found::Foreign)?,
        }
    }
    Ok(ours)
}

fn children(place: &Path) -> Result<Vec<DirEntry>, OffloadError> {
    let read = match fs::read_dir(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.and_then(Iterator::collect),
    };
    read.map_err(|error| OffloadError::storage("list", place.display(), error))
}

/// What is known of the file at a place; `None` if there is nothing.
fn file_at(path: &Path) -> Result<Option<Metadata>, OffloadError> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(Some(found)),
        Ok(found) => Err(OffloadError::Foreign {
            place: path.display().to_string(),
            found: kind_of(&found),
            expected: "a file",
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(OffloadError::storage("look at", path.display(), error)),
    }
}

fn metadata(file: &DirEntry) -> Result<Metadata, OffloadError> {
    let found = fs::symlink_metadata(file.path());
    found.map_err(|error| OffloadError::storage("look at", file.path().display(), error))
}

fn kind_of(found: &Metadata) -> &'static str {
    match () {
        () if found.is_symlink() => "a symbolic link",
        () if found.is_dir() => "a folder",
        () if found.is_file() => "a file",
        () => "something special",
    }
}

/// Removes a file; that it is not there is as good.
fn remove(path: &Path) -> Result<(), OffloadError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(OffloadError::storage("remove", path.display(), error))
        }
        _ => Ok(()),
    }
}

/// Notes when a text was used. Where that cannot be noted the text seems unused, no more.
fn used(path: &Path, at_ms: i64) {
    let times = FileTimes::new().set_accessed(time(at_ms));
    let _ = File::open(path).and_then(|file| file.set_times(times));
}

fn entry(key: &Key, holding: Holding, found: &Metadata) -> Entry {
    let created_ms = ms(found.modified());
    Entry {
        key: *key,
        bytes: found.len(),
        holding,
        created_ms,
        used_ms: ms(found.accessed()).max(created_ms),
    }
}

fn time(at_ms: i64) -> SystemTime {
    let distance = Duration::from_millis(at_ms.unsigned_abs());
    let time = if at_ms < 0 {
        UNIX_EPOCH.checked_sub(distance)
    } else {
        UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(UNIX_EPOCH)
}

fn ms(time: io::Result<SystemTime>) -> i64 {
    let Ok(time) = time else { return 0 };
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => {
            let before = i64::try_from(before.duration().as_millis());
            before.map_or(i64::MIN, |before| -before)
        }
    }
}
