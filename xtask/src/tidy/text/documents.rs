//! The required documents exist, are short and complete, and their links are valid.

use std::collections::BTreeSet;

use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;
use crate::tidy::structure::crate_layers::{CRATE_RULES, CrateRule, package_directory};

const REQUIRED_DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs/glossary.md",
    "docs/design/README.md",
];
/// Commands that a newcomer and a build machine both run.
const TEST_COMMAND: &str = "cargo xtask test";
const TEST_COMMAND_DOCUMENTS: &[&str] = &["README.md", "CONTRIBUTING.md", ".ci/run"];
const CODE_MAP: &str = "ARCHITECTURE.md";
const MAP_LINES: usize = 120;
/// Prefixes of repository paths in code spans of the map.
const PATH_STARTS: &[&str] = &["crates/", "xtask/", "docs/", "examples/", ".ci/"];

/// Checks required documents, the map's completeness, descriptions of crates, and links.
pub(crate) fn check_documents(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for paper in REQUIRED_DOCUMENTS
        .iter()
        .filter(|paper| workspace.file_text(paper).is_none())
    {
        findings.push(Finding::on_file(paper, "is missing", "write it"));
    }
    for paper in TEST_COMMAND_DOCUMENTS {
        if workspace
            .file_text(paper)
            .is_some_and(|text| !text.contains(TEST_COMMAND))
        {
            let what = format!("does not say `{TEST_COMMAND}`");
            findings.push(Finding::on_file(
                paper,
                what,
                "everybody runs the tests by the same command",
            ));
        }
    }
    findings.extend(check_code_map(workspace));
    for package in &workspace.packages {
        if package
            .description
            .as_deref()
            .unwrap_or_default()
            .is_empty()
        {
            let manifest = format!("{}/Cargo.toml", package.directory());
            findings.push(Finding::on_file(
                &manifest,
                "has no description",
                "say what the crate is in one line",
            ));
        }
    }
    let markdown = workspace
        .files
        .iter()
        .filter(|file| file.path.ends_with(".md") && !file.is_data());
    findings.extend(markdown.flat_map(|file| check_links(workspace, file)));
    findings
}

fn check_code_map(workspace: &Workspace) -> Vec<Finding> {
    let Some(text) = workspace.file_text(CODE_MAP) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let homes: BTreeSet<&str> = workspace
        .files
        .iter()
        .filter_map(WorkspaceFile::crate_directory)
        .collect();
    for home in homes.into_iter().filter(|home| !is_crate_named(text, home)) {
        let what = format!("does not name {home}");
        findings.push(Finding::on_file(CODE_MAP, what, "put the crate on the map"));
    }
    findings.extend(check_crate_table(text));
    findings
}

/// Compares the map's table of crates, `| layer | crates | what |`, with the rules that `layers` checks.
fn check_crate_table(text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut cells = line.split('|').skip(1).map(str::trim);
        let (Some(layer), Some(crates)) = (cells.next(), cells.next()) else {
            continue;
        };
        let Ok(layer) = layer.parse::<u8>() else {
            continue;
        };
        let is_pure = crates.ends_with(" P");
        for directory in crates.split('`').skip(1).step_by(2) {
            let is_there = |rule: &&CrateRule| package_directory(rule.package) == directory;
            let rule = CRATE_RULES.iter().find(is_there);
            if rule.is_none_or(|rule| rule.layer != layer || rule.pure != is_pure) {
                let what = format!("puts {directory} on layer {layer}, pure: {is_pure}");
                let remedy = "write what xtask/src/tidy/structure/crate_layers.rs has";
                findings.push(Finding::on_line(CODE_MAP, number + 1, what, remedy));
            }
        }
    }
    findings
}

/// Checks the length of the map, and that every path it names exists.
pub(crate) fn check_code_map_paths(workspace: &Workspace) -> Vec<Finding> {
    let text = workspace.file_text(CODE_MAP).unwrap_or_default();
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > MAP_LINES {
        let what = format!("{lines} lines, {MAP_LINES} are allowed");
        let remedy = "move detail to module docs or docs/design";
        findings.push(Finding::on_file(CODE_MAP, what, remedy));
    }
    for (number, line) in text.lines().enumerate() {
        // Every second part between backticks is a code span.
        for path in line.split('`').skip(1).step_by(2) {
            // `<format>`, `*` and `…` stand for several paths; a space means a command.
            let is_path = PATH_STARTS.iter().any(|start| path.starts_with(start))
                && !path.contains(['<', '*', '…', ' ', '{']);
            if is_path && !is_existing_path(workspace, CODE_MAP, path.trim_end_matches('/')) {
                let what = format!("names `{path}`, which is not there");
                findings.push(Finding::on_line(
                    CODE_MAP,
                    number + 1,
                    what,
                    "name the path it has now",
                ));
            }
        }
    }
    findings
}

/// Whether `crates/store` occurs, and not only as the beginning of `crates/store-sqlite`.
fn is_crate_named(text: &str, home: &str) -> bool {
    text.match_indices(home).any(|(at, _)| {
        let after = text
            .get(at + home.len()..)
            .unwrap_or_default()
            .chars()
            .next();
        !after.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_')
    })
}

/// Reports relative links to files that do not exist.
fn check_links(workspace: &Workspace, file: &WorkspaceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_code = false;
    for (number, line) in file.text.as_deref().unwrap_or_default().lines().enumerate() {
        // Brackets in code are not links.
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let targets = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|_| !in_code) {
            let path = target.split('#').next().unwrap_or_default();
            // A fragment of the same page, a URL, or not a path at all. Nothing is fetched from the network.
            let is_elsewhere = path.is_empty() || path.contains(':') || path.contains(' ');
            if !is_elsewhere && !is_existing_path(workspace, &file.path, path) {
                let what = format!("links to `{target}`, which is not there");
                findings.push(Finding::on_line(
                    &file.path,
                    number + 1,
                    what,
                    "mend the link",
                ));
            }
        }
    }
    findings
}

fn is_existing_path(workspace: &Workspace, from: &str, link: &str) -> bool {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                // A link that leaves the repository is broken for readers elsewhere.
                if parts.pop().is_none() {
                    return false;
                }
            }
            name => parts.push(name),
        }
    }
    let target = parts.join("/");
    // Only files are listed, so a folder exists if it contains a file.
    let below = format!("{target}/");
    workspace
        .files
        .iter()
        .any(|file| file.path == target || file.path.starts_with(&below))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    fn found(files: &[(&str, &str)], about: &str) -> Vec<String> {
        let findings = check_documents(&Workspace::of(files));
        findings
            .iter()
            .filter(|finding| finding.path == about)
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn missing_papers_are_found() {
        assert_eq!(found(&[], "README.md").len(), 1);
        assert_eq!(
            found(&[("LICENSE-MIT", "MIT")], "LICENSE-MIT"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn everybody_runs_the_tests_by_the_same_command() {
        assert_eq!(found(&[(".ci/run", "cargo test")], ".ci/run").len(), 1);
        assert_eq!(found(&[(".ci/run", TEST_COMMAND)], ".ci/run").len(), 0);
    }

    #[test]
    fn the_map_is_short_and_its_paths_exist() {
        let check = |text: &str| {
            let files = [(CODE_MAP, text), ("crates/a/src/b/c.rs", "")];
            check_code_map_paths(&Workspace::of(&files)).len()
        };
        assert_eq!(check(&"a\n".repeat(121)), 1);
        assert_eq!(
            check("`crates/a/src/b/`, `crates/<name>/src`, `crates/a x`"),
            0
        );
        assert_eq!(check("see `crates/a/src/d.rs`, not `d.rs`"), 1);
    }

    #[test]
    fn the_map_names_every_crate() {
        let crates = [
            ("crates/store/src/lib.rs", ""),
            ("crates/store-sqlite/src/lib.rs", ""),
        ];
        let with = |text| found(&[crates[0], crates[1], (CODE_MAP, text)], CODE_MAP).len();
        assert_eq!(with("`crates/store-sqlite`"), 1);
        assert_eq!(with("`crates/store`, `crates/store-sqlite`"), 0);
    }

    #[test]
    fn the_table_of_crates_is_the_one_the_rules_have() {
        let with = |row| found(&[(CODE_MAP, row)], CODE_MAP).len();
        assert_eq!(with("| 0 | `crates/ir` P | items |"), 0);
        assert_eq!(with("| 5 | `crates/contexture` | the façade |"), 0);
        assert_eq!(with("| 1 | `crates/ir` P | items |"), 1);
        assert_eq!(with("| 0 | `crates/ir` | items |"), 1);
        assert_eq!(
            with("| 3 | `crates/store-sqlite`, `crates/lost` | stores |"),
            1
        );
    }

    #[test]
    fn a_crate_says_what_it_is() {
        let packages = vec![Package {
            name: "contexture-ir".to_owned(),
            ..Package::default()
        }];
        let findings = check_documents(&Workspace {
            packages,
            ..Workspace::default()
        });
        assert!(
            findings
                .iter()
                .any(|finding| finding.what == "has no description")
        );
    }

    #[test]
    fn dead_links_are_found() {
        let text = "cargo xtask test [a](docs/b.md) [c](docs/lost.md#x) [d](https://e.org) [f](#g)\n```\nv[0](x)\n```\n";
        let found = found(
            &[
                ("README.md", text),
                ("docs/b.md", "[up](../README.md) [here](.)"),
            ],
            "README.md",
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("docs/lost.md"), "{found:?}");
    }
}
