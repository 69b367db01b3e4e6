//! The database's file and what lies around it: who may read it, whether there is room, what a killed backup left.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use crate::commands::doctor::check::{CheckState, DoctorCheck};
use crate::output::printable::count_with_noun;

/// Less room than this is a finding: SQLite needs some for its journal even to delete.
const LITTLE_ROOM: u64 = 256 << 20;

/// What belongs to a database of SQLite, by what its name ends with.
const PARTS: [&str; 5] = ["", "-wal", "-shm", "-turn", "-processes"];

/// Checks the file of a database and its folder.
pub(super) fn check_storage(file: &Path, checks: &mut Vec<DoctorCheck>) {
    checks.extend(check_modes(file));
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    checks.extend(check_room(folder));
    checks.extend(check_partial_copies(folder));
}

/// Whether others than the owner may read what was ever said to a model. Only Unix has such modes.
fn check_modes(file: &Path) -> Option<DoctorCheck> {
    let own = fs::metadata(file).ok()?;
    mode_of(&own)?;
    let name = file.file_name()?.to_string_lossy();
    let parts = PARTS.map(|end| file.with_file_name(format!("{name}{end}")));
    let is_open = |path: &&PathBuf| {
        let mode = fs::metadata(path).ok().and_then(|found| mode_of(&found));
        mode.is_some_and(|mode| mode & 0o077 != 0)
    };
    let open: Vec<_> = parts.iter().filter(is_open).collect();
    let Some(first) = open.first() else {
        let found = "only its owner may read it";
        return Some(DoctorCheck::new("file modes", CheckState::Ok, found));
    };
    let found = format!("other users of this machine may read {}", first.display());
    let (folders, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        open.iter().partition(|path| path.is_dir());
    // A folder without the right to enter it is of no use to its owner either.
    let commands = [("chmod 600", files), ("chmod 700", folders)].map(|(command, paths)| {
        let paths = paths.iter().map(|path| format!(" {}", path.display()));
        (paths.len() > 0).then(|| format!("{command}{}", paths.collect::<String>()))
    });
    let hint = Vec::from_iter(commands.into_iter().flatten()).join(" && ");
    Some(DoctorCheck::new("file modes", CheckState::Warn, found).with_hint(hint))
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere there are no modes")]
fn mode_of(file: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(file.permissions().mode())
}

#[cfg(not(unix))]
fn mode_of(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(unix)]
fn check_room(folder: &Path) -> Option<DoctorCheck> {
    let found = rustix::fs::statvfs(folder).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let megabytes = free >> 20;
    let found = format!("{megabytes} MiB free");
    if free >= LITTLE_ROOM {
        return Some(DoctorCheck::new("disk", CheckState::Ok, found));
    }
    let hint = "make room: on a full disk nothing is stored, while the proxy goes on (docs/when-this-dies.md)";
    Some(DoctorCheck::new("disk", CheckState::Warn, found).with_hint(hint))
}

#[cfg(not(unix))]
fn check_room(_: &Path) -> Option<DoctorCheck> {
    None
}

/// What backups that were cut off left in the folder.
fn check_partial_copies(folder: &Path) -> Option<DoctorCheck> {
    let names = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut partial: Vec<String> = names.filter(|name| name.ends_with(".part")).collect();
    partial.sort();
    let first = partial.first()?;
    let many = count_with_noun(partial.len() as u64, "unfinished backup");
    let found = format!("{many} in {}: {first}", folder.display());
    let hint = "unless a backup runs right now it was cut off: delete the file";
    Some(DoctorCheck::new("backups", CheckState::Warn, found).with_hint(hint))
}
