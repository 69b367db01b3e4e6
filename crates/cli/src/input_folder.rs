//! Folders as input: the files in them, in an order that is the same each time.
//!
//! Not here: which of the files are of use. A session is recognised by its content; [`may_hold_session`] only says which
//! files are worth reading for it.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::input::{InputSource, unreadable_file};
use crate::output::failure::Outcome;

/// How much of a file is looked at before it is read.
const SNIFFED_BYTES: usize = 512;
/// How a database of SQLite begins.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// A file to be read, and whether it was named or found in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputFile {
    pub(crate) source: InputSource,
    /// Whether it was found: what is in it is not known then.
    pub(crate) is_found: bool,
}

impl InputFile {
    /// Bytes of the file; 0 for standard input and what cannot be asked.
    pub(crate) fn byte_count(&self) -> u64 {
        match &self.source {
            InputSource::Stdin => 0,
            InputSource::File(path) => fs::metadata(path).map_or(0, |found| found.len()),
        }
    }
}

/// The files of these names, each folder replaced by the files in it; see [`list_files`].
///
/// # Errors
/// A folder cannot be read.
pub(crate) fn expand_folders(names: &[String]) -> Outcome<Vec<InputFile>> {
    let mut out = Vec::new();
    for name in names {
        let source = InputSource::from(name.as_str());
        match &source {
            InputSource::File(path) if path.is_dir() => {
                out.extend(list_files(path)?.into_iter().map(|path| InputFile {
                    source: InputSource::File(path),
                    is_found: true,
                }));
            }
            _ => out.push(InputFile {
                source,
                is_found: false,
            }),
        }
    }
    Ok(out)
}

/// The files of a folder and of the folders in it, in order of their paths. What is hidden in it is left out, and links to
/// folders are not followed, for they may lead around in a circle; the folder itself may be hidden or a link.
///
/// # Errors
/// A folder cannot be read.
pub(crate) fn list_files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let unreadable = |error| unreadable_file(&folder, &error);
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let kind = entry.file_type().map_err(unreadable)?;
            let path = entry.path();
            if kind.is_dir() {
                folders.push(path);
            } else if path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file begins as sessions do, as JSON or a database. What cannot be read may: whoever reads it tells why not.
pub(crate) fn may_hold_session(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| {
        let limit = SNIFFED_BYTES as u64;
        file.take(limit).read_to_end(&mut start)
    });
    if read.is_err() {
        return true;
    }
    let text = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&start);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'[')) || start.starts_with(SQLITE_MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_in_order_and_hidden_ones_left_out() {
        let folder = tempfile::TempDir::new().unwrap();
        let root = folder.path().join(".named");
        for name in [
            "b/2.json",
            "b/1.json",
            "a.jsonl",
            ".git/x.json",
            "c/.hidden",
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        let found = list_files(&root).unwrap();
        let names = found.iter().map(|path| path.strip_prefix(&root).unwrap());
        let names: Vec<&Path> = names.collect();
        assert_eq!(names, ["a.jsonl", "b/1.json", "b/2.json"].map(Path::new));
        assert!(list_files(&root.join("nowhere")).is_err());
    }

    #[test]
    fn only_json_and_databases_are_worth_reading() {
        let folder = tempfile::TempDir::new().unwrap();
        for (text, expected) in [
            (&b"  {\"a\": 1}"[..], true),
            (b"\xef\xbb\xbf[]", true),
            (SQLITE_MAGIC, true),
            (b"# Notes", false),
            (b"\x7fELF", false),
            (b"", false),
        ] {
            let path = folder.path().join("file");
            fs::write(&path, text).unwrap();
            assert_eq!(may_hold_session(&path), expected, "{text:?}");
        }
    }
}
