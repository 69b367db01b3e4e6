//! The files of the repository, read once, for every check to look at.
//!
//! Checks are functions over this value and do no I/O of their own, so each is tested on a workspace written down in
//! the test. What git ignores is not read.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::metadata::{Metadata, Package};
use crate::shell;
use crate::tidy::files::source::LexedSource;

/// Everything that the checks read.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) files: Vec<WorkspaceFile>,
    pub(crate) packages: Vec<Package>,
}

/// One file of the repository.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceFile {
    /// Relative to the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// Content of the file; `None` if it is not UTF-8 text.
    pub(crate) text: Option<String>,
    /// Tokens of the file; `None` if it is not Rust or cannot be lexed (`lex_error` then says why).
    pub(crate) source: Option<LexedSource>,
    pub(crate) lex_error: Option<String>,
}

impl WorkspaceFile {
    /// A file with this text; Rust files are lexed.
    pub(crate) fn new(path: &str, bytes: Vec<u8>) -> Self {
        let mut file = Self {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            ..Self::default()
        };
        file.text = String::from_utf8(bytes).ok();
        if file.is_rust()
            && let Some(text) = &file.text
        {
            match LexedSource::lex(text) {
                Ok(source) => file.source = Some(source),
                Err(error) => file.lex_error = Some(error),
            }
        }
        file
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns the last component of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns the crate's directory: `crates/ir` for `crates/ir/src/id.rs`, `xtask` for its files.
    pub(crate) fn crate_directory(&self) -> Option<&str> {
        crate_directory_of(&self.path)
    }

    /// Returns the path below the crate's `src`, if the file is there.
    pub(crate) fn path_in_src(&self) -> Option<&str> {
        let home = self.crate_directory()?;
        self.path.strip_prefix(home)?.strip_prefix("/src/")
    }

    /// Whether the file is data of tests, examples or crates, not text of ours.
    pub(crate) fn is_data(&self) -> bool {
        let data = [
            "/tests/fixtures/",
            "/data/",
            "/snapshots/",
            "/proptest-regressions/",
        ];
        data.iter().any(|part| self.path.contains(part))
            || (self.path.starts_with("examples/") && !self.is_rust() && self.name() != "README.md")
            || self.name() == "Cargo.lock"
    }
}

fn crate_directory_of(path: &str) -> Option<&str> {
    if path.starts_with("xtask/") {
        return path.get(.."xtask".len());
    }
    let name = path.strip_prefix("crates/")?.split('/').next()?;
    path.get(.."crates/".len() + name.len())
}

impl Workspace {
    /// Reads the repository.
    ///
    /// # Errors
    /// If cargo cannot describe the workspace, or a file cannot be read.
    pub(crate) fn load() -> Result<Self> {
        let packages = Metadata::load()?.packages;
        let root = shell::workspace_root();
        let mut paths = match list_git_files(&root) {
            Some(paths) => paths,
            None => walk_files(&root, &root)?,
        };
        paths.sort();
        let mut workspace = Self {
            files: Vec::new(),
            packages,
        };
        for path in paths {
            let full = root.join(&path);
            // git also lists deleted files that are not committed yet, and symbolic links.
            if full.is_file() {
                let bytes = fs::read(&full).with_context(|| format!("cannot read {path}"))?;
                workspace.files.push(WorkspaceFile::new(&path, bytes));
            }
        }
        workspace.mark_test_only();
        Ok(workspace)
    }

    /// Creates a workspace of these files, for tests of checks.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| WorkspaceFile::new(path, text.as_bytes().to_vec()));
        let mut workspace = Self {
            files: files.collect(),
            packages: Vec::new(),
        };
        workspace.mark_test_only();
        workspace
    }

    /// Returns Rust files with their tokens, without test data.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = (&WorkspaceFile, &LexedSource)> {
        self.files
            .iter()
            .filter(|file| !file.is_data())
            .filter_map(|file| Some((file, file.source.as_ref()?)))
    }

    /// Returns Rust files under a crate's `src` that are not only for tests.
    pub(crate) fn shipped_files(&self) -> impl Iterator<Item = (&WorkspaceFile, &LexedSource)> {
        self.rust_files()
            .filter(|(file, source)| file.path_in_src().is_some() && !source.is_test_only)
    }

    /// Returns the text of the file at this path.
    pub(crate) fn file_text(&self, path: &str) -> Option<&str> {
        self.files
            .iter()
            .find(|file| file.path == path)?
            .text
            .as_deref()
    }

    /// Marks files declared by `#[cfg(test)] mod name;` as tests, with everything below them.
    fn mark_test_only(&mut self) {
        let mut marked: Vec<String> = Vec::new();
        for (file, source) in self
            .rust_files()
            .filter(|(file, _)| file.path_in_src().is_some())
        {
            // The name is relative to the directory of the declaring file's children.
            let below = directory_of_children(&file.path);
            marked.extend(
                source
                    .test_modules
                    .iter()
                    .map(|name| format!("{below}/{name}")),
            );
        }
        for file in &mut self.files {
            let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
            let is_marked = marked.iter().any(|mark| {
                stem.strip_prefix(mark.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            if let Some(source) = file.source.as_mut().filter(|_| is_marked) {
                source.is_test_only = true;
            }
        }
    }
}

/// Returns the directory of a module's children: `src` for `src/lib.rs`, `src/a` for `src/a.rs` and `src/a/mod.rs`.
pub(crate) fn directory_of_children(path: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let (directory, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    match name {
        "lib" | "main" | "mod" => directory.to_owned(),
        _ => stem.to_owned(),
    }
}

/// Lists tracked and new files, without ignored ones; `None` outside a git checkout.
fn list_git_files(root: &Path) -> Option<Vec<String>> {
    // New files too, so that they are checked before they are committed.
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let paths: Vec<String> = text
        .split('\0')
        .filter(|p| !p.is_empty())
        .map(str::to_owned)
        .collect();
    (!paths.is_empty()).then_some(paths)
}

/// The same for an unpacked archive: everything except build output.
fn walk_files(root: &Path, directory: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if name != ".git" && !name.starts_with("target") {
                paths.extend(walk_files(root, &path)?);
            }
        } else if let Ok(relative) = path.strip_prefix(root) {
            paths.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_knows_its_crate_and_its_place() {
        let file = WorkspaceFile::new("crates/ir/src/id/node.rs", Vec::new());
        assert_eq!(
            (file.crate_directory(), file.path_in_src()),
            (Some("crates/ir"), Some("id/node.rs"))
        );
        let file = WorkspaceFile::new("xtask/src/main.rs", Vec::new());
        assert_eq!(
            (file.crate_directory(), file.path_in_src()),
            (Some("xtask"), Some("main.rs"))
        );
        let file = WorkspaceFile::new("crates/ir/tests/it/main.rs", Vec::new());
        assert_eq!(
            (file.crate_directory(), file.path_in_src()),
            (Some("crates/ir"), None)
        );
        assert_eq!(
            WorkspaceFile::new("README.md", Vec::new()).crate_directory(),
            None
        );
    }

    #[test]
    fn files_declared_for_tests_are_not_shipped() {
        let workspace = Workspace::of(&[
            ("crates/a/src/lib.rs", "mod b;"),
            ("crates/a/src/b.rs", "#[cfg(test)] mod samples; mod real;"),
            ("crates/a/src/b/samples/deep.rs", ""),
            ("crates/a/src/b/samples_not.rs", ""),
            ("crates/a/src/b/real.rs", ""),
        ]);
        let shipped: Vec<_> = workspace
            .shipped_files()
            .map(|(file, _)| file.name())
            .collect();
        assert_eq!(shipped, ["lib.rs", "b.rs", "samples_not.rs", "real.rs"]);
    }

    #[test]
    fn git_and_the_walk_list_the_same_rust_files() {
        let root = shell::workspace_root();
        let rust = |paths: Vec<String>| {
            let mut rust: Vec<_> = paths
                .into_iter()
                .filter(|path| path.starts_with("xtask/src") && path.ends_with(".rs"))
                .collect();
            rust.sort();
            rust
        };
        let walk = rust(walk_files(&root, &root).unwrap());
        assert!(walk.contains(&"xtask/src/main.rs".to_owned()));
        if let Some(listed) = list_git_files(&root) {
            assert_eq!(rust(listed), walk);
        }
    }
}
