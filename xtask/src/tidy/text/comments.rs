//! Enough of the code's lines are `//` comments.
//!
//! Documentation comments (`///`, `//!`) are not counted. The shares are relative to code lines, without tests.

use std::collections::BTreeMap;

use crate::tidy::files::source::LexedSource;
use crate::tidy::files::workspace::Workspace;
use crate::tidy::finding::Finding;

/// Required comment lines per ten thousand code lines, in the whole workspace.
const WORKSPACE_SHARE: usize = 300;
/// Required comment lines per ten thousand code lines, in each crate.
const CRATE_SHARE: usize = 150;
/// Recorded data and its loaders, which are not counted.
const NOT_COUNTED: &str = "crates/testdata";
/// Number of code lines below which a crate is not checked.
const CODE_LINES_FOR_A_SHARE: usize = 200;

#[derive(Debug, Default, Clone, Copy)]
struct LineCounts {
    comments: usize,
    code: usize,
}

impl LineCounts {
    fn of(text: &str, source: &LexedSource) -> Self {
        let mut counts = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            // The lexer counts lines from 1.
            if line.is_empty() || source.is_test_line(index + 1) {
                continue;
            }
            let is_doc = line.starts_with("///") || line.starts_with("//!");
            match (is_doc, line.starts_with("//")) {
                (true, _) => {}
                (false, true) => counts.comments += 1,
                (false, false) => counts.code += 1,
            }
        }
        counts
    }

    fn add(&mut self, other: Self) {
        self.comments += other.comments;
        self.code += other.code;
    }

    /// Returns the comment lines per ten thousand code lines.
    fn share(self) -> usize {
        self.comments * 10_000 / self.code.max(1)
    }
}

/// Checks the share of comment lines in the workspace and in each crate.
pub(crate) fn check_comments(workspace: &Workspace) -> Vec<Finding> {
    let mut all = LineCounts::default();
    let mut crates: BTreeMap<&str, LineCounts> = BTreeMap::new();
    for (file, source) in workspace.shipped_files() {
        let counted = file.crate_directory().filter(|name| *name != NOT_COUNTED);
        if let Some((directory, text)) = counted.zip(file.text.as_deref()) {
            let counts = LineCounts::of(text, source);
            all.add(counts);
            crates.entry(directory).or_default().add(counts);
        }
    }
    let mut findings: Vec<Finding> = crates
        .into_iter()
        .filter_map(|(directory, counts)| share_finding(directory, counts, CRATE_SHARE))
        .collect();
    findings.extend(share_finding("crates", all, WORKSPACE_SHARE));
    findings
}

fn share_finding(path: &str, counts: LineCounts, wanted: usize) -> Option<Finding> {
    let is_too_low = counts.code >= CODE_LINES_FOR_A_SHARE && counts.share() < wanted;
    is_too_low.then(|| {
        let percent = |share: usize| format!("{}.{:02} %", share / 100, share % 100);
        let what = format!(
            "{} comment lines in {} code lines ({}), {} are wanted",
            counts.comments,
            counts.code,
            percent(counts.share()),
            percent(wanted)
        );
        Finding::on_file(path, what, "say why where a reader would stop")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(comments: usize, code: usize, rest: &str) -> usize {
        let text = "// Why.\n".repeat(comments) + &"const A: u8 = 1;\n".repeat(code) + rest;
        let files = [("crates/a/src/b.rs", text.as_str())];
        check_comments(&Workspace::of(&files)).len()
    }

    #[test]
    fn too_few_comments_are_found_in_the_crate_and_in_the_workspace() {
        assert_eq!(found(2, 200, ""), 2);
        assert_eq!(found(3, 200, ""), 1);
        assert_eq!(found(6, 200, ""), 0);
        assert_eq!(found(0, 199, ""), 0);
    }

    #[test]
    fn documentation_and_tests_are_not_counted() {
        assert_eq!(found(5, 200, "/// Docs.\n//! More.\nfn f() {}\n"), 1);
        let tests = "#[cfg(test)]\nmod tests {\n    // Why.\n}\n";
        assert_eq!(found(5, 200, tests), 1);
    }
}
