//! Every fixture is claimed by a test, and copied data carries its licence.
//!
//! A fixture is claimed when its file name, its stem, or the name of a directory it stands in (below `fixtures`) occurs in
//! the Rust code of its crate. Not here: whether the test says anything about it.

use std::collections::BTreeMap;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::{File, Workspace};

/// Beside data: where it comes from and under which terms. `README` serves for data that is our own.
const ORIGINS: &[&str] = &["LICENSE", "LICENCE", "COPYING", "NOTICE", "README"];

const FIXTURES: &str = "/tests/fixtures/";

/// Checks the fixtures of every crate, and the data of the examples.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut code: BTreeMap<&str, String> = BTreeMap::new();
    for (file, _) in workspace.rust() {
        if let Some(home) = file.home() {
            code.entry(home)
                .or_default()
                .push_str(file.text.as_deref().unwrap_or_default());
        }
    }
    let fixtures = workspace
        .files
        .iter()
        .filter(|file| file.path.contains(FIXTURES));
    let mut findings: Vec<Finding> = fixtures
        .filter(|file| !is_origin(file.name()))
        .filter_map(|file| unclaimed(file, code.get(file.home()?)?))
        .collect();
    findings.extend(without_origin(workspace));
    findings
}

fn is_origin(name: &str) -> bool {
    ORIGINS
        .iter()
        .any(|origin| name.to_uppercase().starts_with(origin))
}

fn unclaimed(file: &File, code: &str) -> Option<Finding> {
    let (_, below) = file.path.split_once(FIXTURES)?;
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
        Finding::about(&file.path, "no test claims this fixture", remedy)
    })
}

/// Directories with data and no word about where it comes from.
fn without_origin(workspace: &Workspace) -> Vec<Finding> {
    let mut directories: BTreeMap<String, bool> = BTreeMap::new();
    for file in &workspace.files {
        for directory in data_directories(&file.path) {
            *directories.entry(directory).or_default() |= is_origin(file.name());
        }
    }
    // A word in a directory speaks for what is below it.
    let spoken = |directory: &str| {
        directories
            .iter()
            .any(|(other, has)| *has && is_own_or_below(directory, other, workspace))
    };
    directories
        .keys()
        .filter(|directory| !spoken(directory))
        .map(|directory| {
            let remedy =
                "put the licence beside it, or a README.md saying that the data is our own";
            Finding::about(directory, "data without its origin", remedy)
        })
        .collect()
}

fn is_own_or_below(directory: &str, other: &str, workspace: &Workspace) -> bool {
    directory == other
        || (directory
            .strip_prefix(other)
            .is_some_and(|rest| rest.starts_with('/'))
            && workspace.files.iter().any(|file| {
                let name = file
                    .path
                    .strip_prefix(other)
                    .and_then(|rest| rest.strip_prefix('/'));
                name.is_some_and(|name| !name.contains('/') && is_origin(name))
            }))
}

/// The data directories this path is in: the fixtures themselves and each directory directly below them.
fn data_directories(path: &str) -> Vec<String> {
    let root = if let Some((before, _)) = path.split_once(FIXTURES) {
        format!("{before}{}", FIXTURES.trim_end_matches('/'))
    } else if path.starts_with("examples/") && !path.ends_with(".rs") {
        "examples".to_owned()
    } else {
        return Vec::new();
    };
    let below = path.get(root.len() + 1..).unwrap_or_default();
    match below.split_once('/') {
        Some((first, _)) => vec![format!("{root}/{first}")],
        None => vec![root],
    }
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
        check(&Workspace::of(&files))
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
        let findings = check(&Workspace::of(&files));
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
