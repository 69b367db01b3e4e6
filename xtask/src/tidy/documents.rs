//! The papers of the house are there, short enough to be read, complete, and their links lead somewhere.

use std::collections::BTreeSet;

use crate::tidy::finding::Finding;
use crate::tidy::workspace::{File, Workspace};

const PAPERS: &[&str] = &[
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
/// What a newcomer types and a build machine runs: the same.
const TEST_COMMAND: &str = "cargo xtask test";
const SAYING_IT: &[&str] = &["README.md", "CONTRIBUTING.md", ".ci/run"];
const MAP: &str = "ARCHITECTURE.md";
const MAP_LINES: usize = 300;

/// Checks which documents exist, the map's length and completeness, descriptions of crates, and links.
pub(crate) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for paper in PAPERS
        .iter()
        .filter(|paper| workspace.text(paper).is_none())
    {
        findings.push(Finding::about(paper, "is missing", "write it"));
    }
    for paper in SAYING_IT {
        if workspace
            .text(paper)
            .is_some_and(|text| !text.contains(TEST_COMMAND))
        {
            let what = format!("does not say `{TEST_COMMAND}`");
            findings.push(Finding::about(
                paper,
                what,
                "everybody runs the tests by the same command",
            ));
        }
    }
    findings.extend(map(workspace));
    for package in &workspace.packages {
        if package
            .description
            .as_deref()
            .unwrap_or_default()
            .is_empty()
        {
            let manifest = format!("{}/Cargo.toml", package.directory());
            findings.push(Finding::about(
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
    findings.extend(markdown.flat_map(|file| links(workspace, file)));
    findings
}

fn map(workspace: &Workspace) -> Vec<Finding> {
    let Some(text) = workspace.text(MAP) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > MAP_LINES {
        let what = format!("{lines} lines, {MAP_LINES} are allowed");
        findings.push(Finding::about(
            MAP,
            what,
            "move detail to module docs or docs/design",
        ));
    }
    let homes: BTreeSet<&str> = workspace.files.iter().filter_map(File::home).collect();
    for home in homes.into_iter().filter(|home| !names(text, home)) {
        let what = format!("does not name {home}");
        findings.push(Finding::about(MAP, what, "put the crate on the map"));
    }
    findings
}

/// True when `crates/store` occurs and is not only the beginning of `crates/store-sqlite`.
fn names(text: &str, home: &str) -> bool {
    text.match_indices(home).any(|(at, _)| {
        let after = text
            .get(at + home.len()..)
            .unwrap_or_default()
            .chars()
            .next();
        !after.is_some_and(|c| c.is_alphanumeric() || c == '-' || c == '_')
    })
}

/// Relative links to files that are not there.
fn links(workspace: &Workspace, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_code = false;
    for (number, line) in file.text.as_deref().unwrap_or_default().lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        let targets = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|_| !in_code) {
            let path = target.split('#').next().unwrap_or_default();
            let is_elsewhere = path.is_empty() || path.contains(':') || path.contains(' ');
            if !is_elsewhere && !exists(workspace, &file.path, path) {
                let what = format!("links to `{target}`, which is not there");
                findings.push(Finding::at(&file.path, number + 1, what, "mend the link"));
            }
        }
    }
    findings
}

fn exists(workspace: &Workspace, from: &str, link: &str) -> bool {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return false;
                }
            }
            name => parts.push(name),
        }
    }
    let target = parts.join("/");
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
        let findings = check(&Workspace::of(files));
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
    fn the_map_is_short_and_names_every_crate() {
        assert_eq!(found(&[(MAP, &"a\n".repeat(301))], MAP).len(), 1);
        let crates = [
            ("crates/store/src/lib.rs", ""),
            ("crates/store-sqlite/src/lib.rs", ""),
        ];
        let with = |text| found(&[crates[0], crates[1], (MAP, text)], MAP).len();
        assert_eq!(with("`crates/store-sqlite`"), 1);
        assert_eq!(with("`crates/store`, `crates/store-sqlite`"), 0);
    }

    #[test]
    fn a_crate_says_what_it_is() {
        let packages = vec![Package {
            name: "contexture-ir".to_owned(),
            ..Package::default()
        }];
        let findings = check(&Workspace {
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
