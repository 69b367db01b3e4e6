//! Committed text is about the project only: no paths of somebody's machine, no tickets that readers cannot open.
//!
//! Every text file of ours is checked, comments included; recorded data is not ours to edit and is skipped. The words
//! are written in two halves so that this file does not match itself.

use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

/// Texts that no file may contain, ignoring case.
const FORBIDDEN_WORDS: &[(&str, &str)] = &[
    (concat!("/ho", "me/"), MACHINE_REMEDY),
    (concat!("/ro", "ot/"), MACHINE_REMEDY),
    (concat!("/wo", "rk/"), MACHINE_REMEDY),
    (concat!("/us", "ers/"), MACHINE_REMEDY),
    (concat!("/tm", "p/h/"), MACHINE_REMEDY),
    (concat!("../sh", "ared"), MACHINE_REMEDY),
    (concat!(".lib", "rary/"), MACHINE_REMEDY),
    (concat!("fa", "rm-"), WORKPLACE_REMEDY),
];

/// Texts that no Rust file may contain; case matters.
const UNFINISHED_MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

const MACHINE_REMEDY: &str = "use a path inside the repository";
const WORKPLACE_REMEDY: &str = "say it in the project's own words";
/// Words that make a following number a ticket.
const TICKET_WORDS: &[&str] = &["issue", "ticket"];

/// Checks all text files except recorded data.
pub(crate) fn check_committed_text(workspace: &Workspace) -> Vec<Finding> {
    workspace
        .files
        .iter()
        .filter(|file| !file.is_data())
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &WorkspaceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.text.as_deref().unwrap_or_default().lines().enumerate() {
        // Paths of other systems are written in different cases.
        let lower = line.to_lowercase();
        let forbidden = FORBIDDEN_WORDS
            .iter()
            .map(|(word, remedy)| (word.to_lowercase(), remedy));
        let found = forbidden.filter(|(word, _)| is_standalone_word(&lower, word));
        findings.extend(found.map(|(word, remedy)| {
            Finding::on_line(&file.path, number + 1, format!("says `{word}`"), *remedy)
        }));
        let marks = UNFINISHED_MARKS
            .iter()
            .filter(|mark| file.is_rust() && is_standalone_word(line, mark));
        findings.extend(marks.map(|mark| {
            let remedy = "finish it, or write it down in docs/design";
            Finding::on_line(&file.path, number + 1, format!("says `{mark}`"), remedy)
        }));
        if let Some(ticket) = find_ticket(&lower) {
            let what = format!("says `{ticket}`");
            findings.push(Finding::on_line(
                &file.path,
                number + 1,
                what,
                "say what it was about",
            ));
        }
    }
    findings
}

/// Whether the word occurs, and not as the end of a longer word or of a URL's path.
fn is_standalone_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default().chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '~'))
    })
}

/// Whether a ticket's word with a number occurs, with or without `#`.
fn find_ticket(line: &str) -> Option<String> {
    for name in TICKET_WORDS {
        for (at, _) in line.match_indices(name) {
            let before = line.get(..at).unwrap_or_default().chars().next_back();
            if before.is_some_and(char::is_alphanumeric) {
                continue;
            }
            let rest = line.get(at + name.len()..).unwrap_or_default();
            let rest = rest.strip_prefix('s').unwrap_or(rest);
            let number = rest.strip_prefix(" #").or_else(|| rest.strip_prefix(' '));
            let digits = number.map_or("", |number| {
                number
                    .split(|c: char| !c.is_ascii_digit())
                    .next()
                    .unwrap_or_default()
            });
            if !digits.is_empty() {
                return Some(format!("{name} {digits}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check_committed_text(&Workspace::of(&[("docs/a.md", text)])).len()
    }

    #[test]
    fn machine_paths_and_tickets_are_found() {
        for text in [
            concat!("see /wo", "rk/main"),
            concat!("data in ../sh", "ared/data"),
            concat!("(/HO", "ME/ada/x)"),
            concat!("as iss", "ue #12 asks"),
            concat!("Iss", "ue 2, item 4"),
        ] {
            assert_eq!(found(text), 1, "{text}");
        }
    }

    #[test]
    fn ordinary_prose_is_not() {
        for text in [
            "https://example.org/work/a",
            "an issue of form",
            "a network/path",
            "tissue 12 x",
        ] {
            assert_eq!(found(text), 0, "{text}");
        }
    }

    #[test]
    fn marks_of_unfinished_work_are_found_in_code() {
        let mark = concat!("//! A.\n// TO", "DO later");
        let check = |path: &str| check_committed_text(&Workspace::of(&[(path, mark)])).len();
        assert_eq!((check("crates/a/src/b.rs"), check("docs/a.md")), (1, 0));
    }

    #[test]
    fn recorded_data_is_left_alone() {
        let text = concat!("cd /wo", "rk/repo");
        let workspace = Workspace::of(&[("crates/a/tests/fixtures/b/c.json", text)]);
        assert_eq!(check_committed_text(&workspace), []);
    }
}
