//! The files below some folders that may be logs.
//!
//! Each file and folder is looked at once, however many links lead to it, so that a circle of links ends and no log counts
//! twice. What cannot be read is listed and passed over.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use contexture::ir::Cancel;

use crate::input::unreadable_file;
use crate::output::failure::Outcome;

/// How the names of logs end.
const ENDINGS: [&str; 3] = ["jsonl", "json", "traj"];

/// What was found.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    /// Files in the order of their names.
    pub(super) files: Vec<PathBuf>,
    /// Files and folders that cannot be read, and why.
    pub(super) unreadable: Vec<(String, String)>,
}

/// Finds the files below `roots`. A root that is a file is one whatever its name.
///
/// # Errors
/// A root does not exist.
pub(super) fn find_files(roots: &[PathBuf], cancel: &Cancel) -> Outcome<FoundFiles> {
    let mut found = FoundFiles::default();
    let mut seen = HashSet::new();
    let mut folders = Vec::new();
    for root in roots {
        let facts = fs::metadata(root).map_err(|error| unreadable_file(root, &error))?;
        if !seen.insert(identity(root, &facts)) {
            continue;
        }
        match facts.is_dir() {
            true => folders.push(root.clone()),
            false => found.files.push(root.clone()),
        }
    }
    // A list and not recursion: folders may be nested as deep as somebody likes.
    while let Some(folder) = folders.pop() {
        if cancel.is_cancelled() {
            break;
        }
        let mut names = match list_folder(&folder) {
            Ok(names) => names,
            Err(error) => {
                found.unreadable.push((folder.display().to_string(), error));
                continue;
            }
        };
        // In the order of names, so that of several links to one file always the same one counts.
        names.sort();
        for path in names {
            // A link that leads nowhere is nothing.
            let Ok(facts) = fs::metadata(&path) else {
                continue;
            };
            let is_wanted = facts.is_dir() || (facts.is_file() && has_log_ending(&path));
            if !is_wanted || !seen.insert(identity(&path, &facts)) {
                continue;
            }
            match facts.is_dir() {
                true => folders.push(path),
                false => found.files.push(path),
            }
        }
    }
    found.files.sort();
    Ok(found)
}

fn list_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect())
}

fn has_log_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// What tells a file from all others, whatever it is called.
#[cfg(unix)]
fn identity(_: &Path, facts: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (facts.dev(), facts.ino())
}

/// What tells a file from all others, whatever it is called.
#[cfg(not(unix))]
fn identity(path: &Path, _: &Metadata) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
