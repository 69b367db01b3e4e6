//! Few source files are tiny, and no folder has too many files.
//!
//! `mod.rs`, `lib.rs` and `main.rs` may be of any size; tests are not counted.

use std::collections::BTreeMap;

use crate::tidy::exempt::{CROWDED_FOLDERS, SMALL_FILES};
use crate::tidy::files::workspace::Workspace;
use crate::tidy::finding::Finding;

/// A smaller source file belongs into the module that owns its concept.
const SMALL_FILE_LINES: usize = 40;
/// Number of small files that the workspace may have without a reason.
const UNEXPLAINED_SMALL_FILES: usize = 20;
const FILES_IN_FOLDER: usize = 20;

/// Checks the number of small files and the number of files in each folder.
pub(crate) fn check_file_layout(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = small_files(workspace);
    findings.extend(crowded_folders(workspace));
    findings
}

/// Reports every small file without a reason, if there are too many of them.
fn small_files(workspace: &Workspace) -> Vec<Finding> {
    let small: Vec<Finding> = workspace
        .shipped_files()
        .filter(|(file, source)| {
            let is_named_by_rust = matches!(file.name(), "mod.rs" | "lib.rs" | "main.rs");
            let is_explained = SMALL_FILES.iter().any(|excuse| excuse.what == file.path);
            source.lines < SMALL_FILE_LINES
                && !is_named_by_rust
                && !is_explained
                && file.name() != "tests.rs"
        })
        .map(|(file, source)| {
            let what = format!(
                "{} lines, and more than {UNEXPLAINED_SMALL_FILES} files are this small",
                source.lines
            );
            let remedy =
                "merge it into the module that owns the concept, or give a reason in exempt.rs";
            Finding::on_file(&file.path, what, remedy)
        })
        .collect();
    if small.len() > UNEXPLAINED_SMALL_FILES {
        small
    } else {
        Vec::new()
    }
}

fn crowded_folders(workspace: &Workspace) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (file, _) in workspace.shipped_files() {
        if let Some((folder, _)) = file.path.rsplit_once('/') {
            *counts.entry(folder).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .filter(|(folder, count)| {
            *count > FILES_IN_FOLDER && !CROWDED_FOLDERS.iter().any(|excuse| excuse.what == *folder)
        })
        .map(|(folder, count)| {
            let what = format!("{count} source files, {FILES_IN_FOLDER} are allowed");
            Finding::on_file(folder, what, "group them into folders by concept")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(String, String)]) -> Vec<String> {
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        check_file_layout(&Workspace::of(&files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// So many files of so many lines, two to a folder.
    fn files(count: usize, lines: usize) -> Vec<(String, String)> {
        (0..count)
            .map(|n| {
                let path = format!("crates/a/src/m{}/f{n}.rs", n / 2);
                (path, "const A: u8 = 1;\n".repeat(lines))
            })
            .collect()
    }

    #[test]
    fn small_files_are_found_where_there_are_too_many() {
        assert_eq!(found(&files(21, 39)).len(), 21);
        assert_eq!(found(&files(20, 39)).len(), 0);
        assert_eq!(found(&files(21, 40)).len(), 0);
    }

    #[test]
    fn files_that_rust_names_may_be_small() {
        let mut files = files(20, 39);
        files.push(("crates/a/src/x/mod.rs".to_owned(), String::new()));
        assert_eq!(found(&files).len(), 0);
    }

    #[test]
    fn a_crowded_folder_is_found() {
        let folder = |name: &str, count: usize| -> Vec<(String, String)> {
            (0..count)
                .map(|n| {
                    (
                        format!("crates/{name}/f{n}.rs"),
                        "const A: u8 = 1;\n".repeat(40),
                    )
                })
                .collect()
        };
        assert_eq!(found(&folder("a/src/b", 21)).len(), 1);
        assert_eq!(found(&folder("a/src/b", 20)).len(), 0);
        assert_eq!(found(&folder("cli/src/commands", 21)).len(), 0);
        assert_eq!(found(&folder("a/tests/it", 21)).len(), 0);
    }
}
