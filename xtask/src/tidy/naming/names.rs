//! Names describe the content: not `utils`, and no type called `Manager`.

use crate::tidy::files::source::{LexedSource, Token};
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

const EMPTY_MODULE_NAMES: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "misc", "stuff",
];
/// Words that must not be the whole name of a type: too general, or used by the language.
const EMPTY_TYPE_NAMES: &[&str] = &["Context", "Thread"];
const EMPTY_TYPE_SUFFIXES: &[&str] = &["Manager", "Helper", "Helpers", "Util", "Utils"];

/// Checks file, directory, module and type names of all Rust code, tests included.
pub(crate) fn check_names(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in workspace.rust_files() {
        findings.extend(check_path(file));
        findings.extend(check_declarations(file, source));
    }
    findings
}

fn check_path(file: &WorkspaceFile) -> Option<Finding> {
    let stem = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    let empty = stem
        .split('/')
        .find(|part| EMPTY_MODULE_NAMES.contains(part))?;
    let what = format!("is called `{empty}`");
    Some(Finding::on_file(
        &file.path,
        what,
        "name it after what is inside",
    ))
}

fn check_declarations(file: &WorkspaceFile, source: &LexedSource) -> Vec<Finding> {
    let pairs = source
        .all_tokens
        .windows(2)
        .filter_map(|window| match window {
            [keyword, name] => Some((keyword, name)),
            _ => None,
        });
    pairs
        .filter_map(|(keyword, name)| {
            find_name_fault(keyword, name)
                .map(|(what, remedy)| Finding::on_line(&file.path, name.line, what, remedy))
        })
        .collect()
}

fn find_name_fault(keyword: &Token, name: &Token) -> Option<(String, &'static str)> {
    let text = name.text.as_str();
    match keyword.text.as_str() {
        "mod" if EMPTY_MODULE_NAMES.contains(&text) => {
            Some((format!("module `{text}`"), "name it after what is inside"))
        }
        "struct" | "enum" | "union" | "trait" | "type"
            if EMPTY_TYPE_NAMES.contains(&text)
                || EMPTY_TYPE_SUFFIXES
                    .iter()
                    .any(|ending| text.ends_with(ending)) =>
        {
            Some((
                format!("type `{text}`"),
                "use the field's word from docs/glossary.md",
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check_names(&Workspace::of(&[(path, text)])).len()
    }

    #[test]
    fn empty_names_are_found() {
        assert_eq!(found("crates/a/src/utils.rs", ""), 1);
        assert_eq!(found("crates/a/src/common/mod.rs", ""), 1);
        assert_eq!(found("crates/a/tests/it/helpers.rs", ""), 1);
        assert_eq!(found("crates/a/src/b.rs", "mod misc { }"), 1);
        assert_eq!(found("crates/a/src/b.rs", "pub struct CacheManager;"), 1);
        assert_eq!(found("crates/a/src/b.rs", "trait Context {}"), 1);
    }

    #[test]
    fn names_that_say_something_are_not() {
        assert_eq!(
            found(
                "crates/a/src/utility_bill.rs",
                "struct ContextWindow; fn helper() {}"
            ),
            0
        );
    }
}
