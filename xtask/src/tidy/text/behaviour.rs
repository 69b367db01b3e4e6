//! The tables of `docs/behaviour` name the test of each row, and these tests exist.
//!
//! A row's last cell names tests as `` `crate::module::name` ``: a function `name` in the file of that module, in the
//! crate's `src` or `tests`. A row without a test says `not yet`, so that it is not taken for tested.
//!
//! Not here: whether a test shows what its row says, which is for the reader to judge.

use std::collections::BTreeSet;

use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

const FOLDER: &str = "docs/behaviour/";
const NOT_YET: &str = "not yet";

/// Checks the last cell of every row of every table.
pub(crate) fn check_behaviour_tables(workspace: &Workspace) -> Vec<Finding> {
    let papers = workspace
        .files
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && file.path.ends_with(".md"));
    let functions = function_paths(workspace);
    papers
        .flat_map(|paper| check_rows(paper, &functions))
        .collect()
}

/// Returns every function of every crate: the path of its file without the extension, and its name.
fn function_paths(workspace: &Workspace) -> BTreeSet<(&str, &str)> {
    let mut functions = BTreeSet::new();
    for (file, source) in workspace.rust_files() {
        let path = file.path.strip_suffix(".rs").unwrap_or(&file.path);
        let path = path.strip_suffix("/mod").unwrap_or(path);
        for pair in source.all_tokens.windows(2) {
            if let [keyword, name] = pair
                && keyword.text == "fn"
            {
                functions.insert((path, name.text.as_str()));
            }
        }
    }
    functions
}

fn check_rows(paper: &WorkspaceFile, functions: &BTreeSet<(&str, &str)>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_table = false;
    for (number, line) in paper
        .text
        .as_deref()
        .unwrap_or_default()
        .lines()
        .enumerate()
    {
        let Some(row) = line.strip_prefix('|') else {
            in_table = false;
            continue;
        };
        // The rows start after the line of dashes.
        if row.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ')) {
            in_table = true;
            continue;
        }
        let row = row.trim_end().trim_end_matches('|');
        let cell = row.rsplit('|').next().unwrap_or_default().trim();
        if !in_table || cell.starts_with(NOT_YET) {
            continue;
        }
        let tests: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        // A last cell of plain words could be mistaken for a test.
        if tests.is_empty() {
            findings.push(Finding::on_line(
                &paper.path,
                number + 1,
                "names no test",
                "name one as `crate::module::name`, or say `not yet`",
            ));
        }
        let lost = tests
            .iter()
            .filter(|test| !is_existing_function(test, functions));
        findings.extend(lost.map(|test| {
            let what = format!("names the test `{test}`, which is not there");
            Finding::on_line(
                &paper.path,
                number + 1,
                what,
                "name the test that shows it now",
            )
        }));
    }
    findings
}

/// Whether there is a function of this name in the file of this module of this crate.
fn is_existing_function(test: &str, functions: &BTreeSet<(&str, &str)>) -> bool {
    let mut path: Vec<&str> = test.split("::").collect();
    let (Some(name), true) = (path.pop(), path.len() >= 2) else {
        return false;
    };
    let home = format!("crates/{}/", path.remove(0));
    let module = format!("/{}", path.join("/"));
    functions.iter().any(|(file, function)| {
        *function == name && file.starts_with(&home) && file.ends_with(&module)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &str) -> Vec<String> {
        let text = format!("# A\n\n| What | Test |\n|---|:-:|\n{rows}\n\n`a::b::prose`\n");
        let workspace = Workspace::of(&[
            ("docs/behaviour/a.md", &text),
            ("docs/other.md", "| a |\n|---|\n| `a::b::c` |"),
            (
                "crates/a/tests/it/b.rs",
                "#[test] fn it_holds() {} proptest! { fn always(x in 0..1) {} }",
            ),
            ("crates/a/src/deep/mod.rs", "mod tests { fn inside() {} }"),
            ("crates/ab/tests/it/b.rs", "// fn said() {}"),
        ]);
        check_behaviour_tables(&workspace)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn tests_that_exist_are_fine() {
        for row in [
            "| x | `a::b::it_holds` |",
            "| x | y | `a::b::it_holds`, `a::b::always` |",
            "| x | `a::deep::inside`: and why |",
            "| x | not yet: memory |",
        ] {
            assert_eq!(found(row), Vec::<String>::new(), "{row}");
        }
    }

    #[test]
    fn tests_that_do_not_are_found_and_so_are_rows_without() {
        for row in [
            "| x | `a::b::it_held` |",
            "| x | `a::deep::it_holds` |",
            "| x | `ab::b::it_holds` |",
            "| x | `ab::b::said` |",
            "| x | `it_holds` |",
            "| x | `a::it_holds` |",
            "| x | surely |",
            "| `a::b::it_holds` | |",
        ] {
            let found = found(row);
            assert_eq!(found.len(), 1, "{row}: {found:?}");
            assert!(found[0].starts_with("docs/behaviour/a.md:5: "), "{found:?}");
        }
    }
}
