//! Reads untrusted files below a folder, without leaving it and without blocking on pipes.
//!
//! A path is walked name by name. A symbolic link is refused anywhere in it, because it may lead outside; so is
//! anything that is not a plain file. On Unix each name is opened relative to the open folder before it, without
//! following links and without blocking, so swapping a file for a link or a pipe in between has no effect. On other
//! systems each name is checked before it is opened.
//!
//! Not here: which files exist, and their content.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use place::FolderHandle;

/// Maximum number of names in a path.
const DEPTH: usize = 16;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillFileError {
    /// The path is not allowed.
    #[error(
        "{path:?} is no path below the folder: expected at most {DEPTH} names joined by /, without . or .. or a / before them"
    )]
    BadPath {
        /// The first characters of the path.
        path: String,
    },
    /// There is no such file or folder.
    #[error("there is no {name}")]
    Missing {
        /// The file or folder.
        name: String,
    },
    /// The entry is of another kind.
    #[error("{name} is {found}, expected {expected}")]
    Kind {
        /// The file or folder.
        name: String,
        /// What was found.
        found: &'static str,
        /// What is expected.
        expected: &'static str,
    },
    /// The file is too large.
    #[error("{name} has more than {limit} bytes")]
    TooLarge {
        /// Name of the file.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file is not UTF-8 text.
    #[error("{name} is not UTF-8 text")]
    NotText {
        /// Name of the file.
        name: String,
    },
    /// The operating system reported an error.
    #[error("{name} cannot be read: {reason}")]
    Unreadable {
        /// The file or folder.
        name: String,
        /// Message of the operating system.
        reason: String,
    },
}

impl SkillFileError {
    /// Returns a stable name for programs, in lower case.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::BadPath { .. } => "bad_path",
            Self::Missing { .. } => "missing_file",
            Self::Kind { .. } => "file_type",
            Self::TooLarge { .. } => "file_too_large",
            Self::NotText { .. } => "not_text",
            Self::Unreadable { .. } => "unreadable",
        }
    }
}

/// Reads the text of the file at `path` below `folder`, names joined by `/`. The folder itself is trusted: it may be
/// reached through links.
pub(super) fn read_below(folder: &Path, path: &str, limit: u64) -> Result<String, SkillFileError> {
    let mut names: Vec<&str> = path.split('/').collect();
    // Backslash and colon as well: on Windows they separate folders and mark drives or streams.
    let fine = |name: &&str| !matches!(*name, "" | "." | "..") && !name.contains(['\0', '\\', ':']);
    let last = names.pop().filter(|_| names.len() < DEPTH);
    let Some(last) = last.filter(|last| names.iter().chain([last]).all(fine)) else {
        // The path comes from a model, and the error goes into logs and prompts, so only its beginning is included.
        let path = path.chars().take(200).collect();
        return Err(SkillFileError::BadPath { path });
    };
    let mut place = FolderHandle::open(folder).map_err(|error| file_error(".", &error))?;
    for name in names {
        expect_kind(&place, name, FileKind::Folder)?;
        place = place
            .open_folder(name)
            .map_err(|error| file_error(name, &error))?;
    }
    expect_kind(&place, last, FileKind::File)?;
    let file = place
        .open_file(last)
        .map_err(|error| file_error(last, &error))?;
    read_text(&file, last, limit)
}

/// Reads an open file, if it is a plain one and not too large.
fn read_text(file: &File, name: &str, limit: u64) -> Result<String, SkillFileError> {
    let about = file.metadata().map_err(|error| file_error(name, &error))?;
    let name = name.to_owned();
    // Checked on the open file, because the entry of that name may have been replaced since.
    if !about.is_file() {
        return Err(SkillFileError::Kind {
            name,
            found: "something special",
            expected: FileKind::File.as_str(),
        });
    }
    let mut bytes = Vec::new();
    // One byte more than allowed detects a file that is too large without reading the rest; it may grow meanwhile.
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| file_error(&name, &error))?;
    if about.len() > limit || bytes.len() as u64 > limit {
        return Err(SkillFileError::TooLarge { name, limit });
    }
    String::from_utf8(bytes).map_err(|_| SkillFileError::NotText { name })
}

fn expect_kind(place: &FolderHandle, name: &str, expected: FileKind) -> Result<(), SkillFileError> {
    let found = place
        .entry_kind(name)
        .map_err(|error| file_error(name, &error))?;
    if found == expected {
        return Ok(());
    }
    Err(SkillFileError::Kind {
        name: name.to_owned(),
        found: found.as_str(),
        expected: expected.as_str(),
    })
}

fn file_error(name: &str, error: &std::io::Error) -> SkillFileError {
    let name = name.to_owned();
    match error.kind() {
        ErrorKind::NotFound => SkillFileError::Missing { name },
        _ => SkillFileError::Unreadable {
            name,
            reason: error.to_string(),
        },
    }
}

#[cfg(unix)]
mod place {
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use super::FileKind;
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, open, openat, statat};

    /// An open folder.
    pub(super) struct FolderHandle(OwnedFd);

    impl FolderHandle {
        pub(super) fn open(path: &Path) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(Self(open(path, flags, Mode::empty())?))
        }

        pub(super) fn entry_kind(&self, name: &str) -> io::Result<FileKind> {
            let about = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(match FileType::from_raw_mode(about.st_mode) {
                FileType::RegularFile => FileKind::File,
                FileType::Directory => FileKind::Folder,
                FileType::Symlink => FileKind::Link,
                _ => FileKind::Special,
            })
        }

        pub(super) fn open_folder(&self, name: &str) -> io::Result<Self> {
            Ok(Self(self.open_entry(name, OFlags::DIRECTORY)?))
        }

        pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
            Ok(self
                // Opening a pipe without a writer would block forever, and a terminal could become the process's
                // controlling one.
                .open_entry(name, OFlags::NONBLOCK | OFlags::NOCTTY)?
                .into())
        }

        fn open_entry(&self, name: &str, more: OFlags) -> io::Result<OwnedFd> {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
            Ok(openat(&self.0, name, flags, Mode::empty())?)
        }
    }
}

#[cfg(not(unix))]
mod place {
    use std::fs::{File, symlink_metadata};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::FileKind;

    /// A folder below which files are read.
    pub(super) struct FolderHandle(PathBuf);

    impl FolderHandle {
        pub(super) fn open(path: &Path) -> io::Result<Self> {
            Ok(Self(path.to_owned()))
        }

        pub(super) fn entry_kind(&self, name: &str) -> io::Result<FileKind> {
            let about = symlink_metadata(self.0.join(name))?;
            Ok(match () {
                () if about.is_symlink() => FileKind::Link,
                () if about.is_dir() => FileKind::Folder,
                () if about.is_file() => FileKind::File,
                () => FileKind::Special,
            })
        }

        pub(super) fn open_folder(&self, name: &str) -> io::Result<Self> {
            Ok(Self(self.0.join(name)))
        }

        pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
            File::open(self.0.join(name))
        }
    }
}

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileKind {
    File,
    Folder,
    Link,
    Special,
}

impl FileKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link, which is not followed",
            Self::Special => "something special",
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn read_rejects_links_and_pipes_swapped_in_after_check() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(folder.path(), at("up")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        // As if each had been a file, or a folder, when it was checked.
        let place = FolderHandle::open(folder.path()).unwrap();
        assert!(place.open_file("link").is_err());
        assert!(place.open_folder("up").is_err());
        let pipe = place.open_file("pipe").unwrap();
        let refused = read_text(&pipe, "pipe", 10).unwrap_err();
        assert!(matches!(refused, SkillFileError::Kind { .. }), "{refused}");
        let file = place.open_file("file").unwrap();
        assert_eq!(read_text(&file, "file", 4).unwrap(), "text");
        let refused = read_text(&file, "file", 3).unwrap_err();
        assert!(
            matches!(refused, SkillFileError::TooLarge { .. }),
            "{refused}"
        );
    }
}
