//! Every fixture is used by a test, and copied data has its licence.
//!
//! Fixtures are the files under a crate's `tests/fixtures`, and those under `crates/testdata/data`, which the tests of
//! all crates share. A fixture counts as used if its file name, its stem, or the name of a directory it is in (below
//! the fixtures) occurs in the Rust code of its crate, or of any crate for the latter. Data that is compiled in
//! (`crates/*/data`) and examples need no user, only an origin.
//!
//! Not here: whether the test checks anything about it.

use std::collections::BTreeMap;

use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

/// Files that state the origin and terms of data. `README` is for data of our own.
const ORIGIN_FILES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "NOTICE", "README"];

/// Folders of data within a crate.
const DATA_FOLDERS: &[&str] = &["/tests/fixtures", "/data"];
/// The crate whose data all others use.
const SHARED_CRATE: &str = "crates/testdata";

/// Checks the fixtures of every crate, and the origin of all data.
pub(crate) fn check_fixtures(workspace: &Workspace) -> Vec<Finding> {
    let mut code: BTreeMap<&str, String> = BTreeMap::new();
    for (file, _) in workspace.rust_files() {
        if let Some(home) = file.crate_directory() {
            let text = file.text.as_deref().unwrap_or_default();
            for reader in [home, SHARED_CRATE] {
                code.entry(reader).or_default().push_str(text);
            }
        }
    }
    let mut findings = find_without_origin(workspace);
    for file in workspace
        .files
        .iter()
        .filter(|file| !is_origin(file.name()))
    {
        if let Some((home, folder)) = file.crate_directory().zip(data_folder(&file.path))
            && (home == SHARED_CRATE || folder.ends_with("fixtures"))
        {
            let code = code.get(home).map_or("", String::as_str);
            findings.extend(find_unclaimed(file, &folder, code));
        }
    }
    findings
}

/// Returns the folder of data that a path is in: `crates/ir/tests/fixtures`, `examples`.
fn data_folder(path: &str) -> Option<String> {
    if path.starts_with("examples/") {
        return (!path.ends_with(".rs")).then(|| "examples".to_owned());
    }
    let name = path.strip_prefix("crates/")?.split('/').next()?;
    let folders = DATA_FOLDERS
        .iter()
        .map(|folder| format!("crates/{name}{folder}"));
    folders
        .into_iter()
        .find(|folder| path.starts_with(&format!("{folder}/")))
}

fn is_origin(name: &str) -> bool {
    ORIGIN_FILES
        .iter()
        .any(|origin| name.to_uppercase().starts_with(origin))
}

fn find_unclaimed(file: &WorkspaceFile, folder: &str, code: &str) -> Option<Finding> {
    let below = file.path.strip_prefix(folder)?;
    let directories = below
        .rsplit_once('/')
        .map_or("", |(directories, _)| directories);
    let stem = file.name().split('.').next().unwrap_or_default();
    let mut names = directories
        .split('/')
        .filter(|name| !name.is_empty())
        .chain([file.name(), stem]);
    let is_claimed = names.any(|name| code.contains(name));
    (!is_claimed).then(|| {
        let remedy = "name it (or its directory) in a test, or delete it";
        Finding::on_file(&file.path, "no test claims this fixture", remedy)
    })
}

/// Reports folders of data, and directories directly below them, that do not state the data's origin.
fn find_without_origin(workspace: &Workspace) -> Vec<Finding> {
    let mut spoken: BTreeMap<String, bool> = BTreeMap::new();
    for file in &workspace.files {
        if let Some(folder) = data_folder(&file.path) {
            let below = file.path.get(folder.len() + 1..).unwrap_or_default();
            let directory = below
                .split_once('/')
                .map_or(folder.clone(), |(first, _)| format!("{folder}/{first}"));
            *spoken.entry(directory).or_default() |= is_origin(file.name());
        }
    }
    let speaks = |directory: &str| spoken.get(directory).copied().unwrap_or_default();
    spoken
        .keys()
        // The origin in a folder applies to the directories below it.
        .filter(|directory| {
            let above = directory.rsplit_once('/').map_or("", |(above, _)| above);
            !speaks(directory) && !speaks(above)
        })
        .map(|directory| {
            let remedy =
                "put the licence beside it, or a README.md saying that the data is our own";
            Finding::on_file(directory, "data without its origin", remedy)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: (&str, &str) = (
        "crates/a/tests/it/main.rs",
        "fn f() { check(\"used.json\"); each(\"folder\"); }",
    );

    fn found(paths: &[&str]) -> Vec<String> {
        let mut files = vec![TEST];
        files.extend(paths.iter().map(|path| (*path, "{}")));
        check_fixtures(&Workspace::of(&files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_fixture_nobody_names_is_found() {
        let origin = "crates/a/tests/fixtures/LICENSE";
        let lost = found(&[origin, "crates/a/tests/fixtures/lost.json"]);
        assert!(
            lost.len() == 1 && lost[0].contains("no test claims"),
            "{lost:?}"
        );
        assert_eq!(
            found(&[origin, "crates/a/tests/fixtures/used.json"]),
            Vec::<String>::new()
        );
        assert_eq!(
            found(&[origin, "crates/a/tests/fixtures/folder/b.json"]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn another_crates_test_claims_nothing() {
        let files = [
            TEST,
            ("crates/b/src/lib.rs", ""),
            ("crates/b/tests/fixtures/used.json", "{}"),
        ];
        let findings = check_fixtures(&Workspace::of(&files));
        assert!(
            findings
                .iter()
                .any(|finding| finding.what.contains("no test claims")),
            "{findings:?}"
        );
    }

    #[test]
    fn data_without_its_origin_is_found() {
        let json = "crates/a/tests/fixtures/folder/b.json";
        let lost = found(&[json]);
        assert!(
            lost.len() == 1 && lost[0].starts_with("crates/a/tests/fixtures/folder:"),
            "{lost:?}"
        );
        assert_eq!(
            found(&[json, "crates/a/tests/fixtures/folder/LICENSE-MIT"]),
            Vec::<String>::new()
        );
        assert_eq!(
            found(&[json, "crates/a/tests/fixtures/README.md"]),
            Vec::<String>::new()
        );
        assert_eq!(found(&["examples/session/a.jsonl"]).len(), 1);
        assert_eq!(
            found(&["examples/session/a.jsonl", "examples/session/LICENSE"]).len(),
            0
        );
    }
}
