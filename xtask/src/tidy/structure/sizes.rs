//! Files and functions are small enough to be read at once, the repository small enough to be cloned.
//!
//! Tests are not counted: neither `#[cfg(test)]` items nor files under `tests/`.

use std::collections::BTreeMap;

use crate::tidy::exempt::{BIG_FILES, Exemption, LONG_FILES, LONG_FUNCTIONS};
use crate::tidy::files::paths::is_name;
use crate::tidy::files::source::Token;
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

/// Above this a file should be reviewed; `cargo xtask tidy` lists it.
const SOFT_LINES: usize = 500;
const HARD_LINES: usize = 800;
const FUNCTION_LINES: usize = 100;
/// Above this a function counts as long; only a small share of a crate's functions may be.
const LONG_FUNCTION_LINES: usize = 40;
const LONG_FUNCTION_PERCENT: usize = 5;
/// Number of functions below which a crate's share is not checked.
const FUNCTIONS_FOR_A_SHARE: usize = 20;
const FILE_BYTES: u64 = 1 << 20;

/// The exemptions in force; a parameter so that tests can pass their own.
#[derive(Debug, Clone, Copy)]
struct SizeExemptions {
    files: &'static [Exemption],
    functions: &'static [Exemption],
    big: &'static [Exemption],
}

const EXEMPTIONS: SizeExemptions = SizeExemptions {
    files: LONG_FILES,
    functions: LONG_FUNCTIONS,
    big: BIG_FILES,
};

/// Checks lines of files and bytes of files.
pub(crate) fn check_sizes(workspace: &Workspace) -> Vec<Finding> {
    check_files(workspace, EXEMPTIONS)
}

/// Checks lines of functions: none over the limit, few long ones in a crate.
pub(crate) fn check_function_sizes(workspace: &Workspace) -> Vec<Finding> {
    check_functions(workspace, EXEMPTIONS)
}

fn check_files(workspace: &Workspace, exemptions: SizeExemptions) -> Vec<Finding> {
    let mut findings = apply_exemptions(long_files(workspace), exemptions.files);
    findings.extend(apply_exemptions(big_files(workspace), exemptions.big));
    findings
}

fn check_functions(workspace: &Workspace, exemptions: SizeExemptions) -> Vec<Finding> {
    let mut findings = apply_exemptions(long_functions(workspace), exemptions.functions);
    findings.extend(crates_of_long_functions(workspace));
    findings
}

/// Reports crates with more than the allowed share of long functions.
fn crates_of_long_functions(workspace: &Workspace) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (file, source) in workspace.shipped_files() {
        let Some(directory) = file.crate_directory() else {
            continue;
        };
        let (long, all) = counts.entry(directory).or_default();
        for function in function_sizes(&source.code) {
            *all += 1;
            *long += usize::from(function.lines > LONG_FUNCTION_LINES);
        }
    }
    counts
        .into_iter()
        .filter(|(_, (long, all))| {
            *all >= FUNCTIONS_FOR_A_SHARE && *long * 100 > *all * LONG_FUNCTION_PERCENT
        })
        .map(|(directory, (long, all))| {
            let what = format!(
                "{long} of {all} functions have more than {LONG_FUNCTION_LINES} lines, \
                 {LONG_FUNCTION_PERCENT} % are allowed"
            );
            Finding::on_file(directory, what, "split the longest into steps with names")
        })
        .collect()
}

/// Returns files over the soft limit, longest first: worth splitting, but allowed.
pub(crate) fn files_over_soft_limit(workspace: &Workspace) -> Vec<(usize, &str)> {
    let mut files: Vec<(usize, &str)> = files_with_line_count(workspace)
        .map(|(file, lines)| (lines, file.path.as_str()))
        .filter(|(lines, _)| *lines > SOFT_LINES)
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    files
}

/// Returns Rust files with the number of their lines outside tests.
fn files_with_line_count(workspace: &Workspace) -> impl Iterator<Item = (&WorkspaceFile, usize)> {
    let code = workspace.rust_files().filter(|(file, source)| {
        !source.is_test_only && !file.path.contains("/tests/") && file.name() != "tests.rs"
    });
    code.map(|(file, source)| (file, source.lines))
}

/// Findings, each with the name under which it may be exempted.
type NamedFindings = Vec<(String, Finding)>;

fn long_files(workspace: &Workspace) -> NamedFindings {
    let long = files_with_line_count(workspace).filter(|(_, lines)| *lines > HARD_LINES);
    long.map(|(file, lines)| {
        let what = format!("{lines} lines without tests, {HARD_LINES} are allowed");
        (
            file.path.clone(),
            Finding::on_file(&file.path, what, "split it by concept"),
        )
    })
    .collect()
}

fn long_functions(workspace: &Workspace) -> NamedFindings {
    let mut named = Vec::new();
    for (file, source) in workspace.shipped_files() {
        for function in function_sizes(&source.code) {
            if function.lines > FUNCTION_LINES {
                let FunctionSize { name, line, lines } = function;
                let what = format!("`{name}` has {lines} lines, {FUNCTION_LINES} are allowed");
                let finding =
                    Finding::on_line(&file.path, line, what, "split it into steps with names");
                named.push((format!("{}::{name}", file.path), finding));
            }
        }
    }
    named
}

struct FunctionSize {
    name: String,
    line: usize,
    lines: usize,
}

/// Returns every `fn name … { … }`, with its number of lines from `fn` to the closing brace.
fn function_sizes(code: &[Token]) -> Vec<FunctionSize> {
    let mut found = Vec::new();
    for (at, window) in code.windows(2).enumerate() {
        let [keyword, name] = window else { continue };
        if keyword.text != "fn" || !is_name(&name.text) {
            continue;
        }
        let rest = code.get(at..).unwrap_or_default();
        if let Some(last) = last_line_of_body(rest) {
            let lines = last.saturating_sub(keyword.line) + 1;
            found.push(FunctionSize {
                name: name.text.clone(),
                line: keyword.line,
                lines,
            });
        }
    }
    found
}

/// Returns the line of the brace that closes the body; `None` for a declaration that ends with `;`.
fn last_line_of_body(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0usize;
    for token in tokens {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    return Some(token.line);
                }
            }
            // A trait's function without a body.
            ";" if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn big_files(workspace: &Workspace) -> NamedFindings {
    let big = workspace
        .files
        .iter()
        .filter(|file| file.bytes > FILE_BYTES);
    big.map(|file| {
        let what = format!("{} bytes, {FILE_BYTES} are allowed", file.bytes);
        let remedy = "make it smaller, compress it, or excuse it in xtask/src/tidy/exempt.rs";
        (
            file.path.clone(),
            Finding::on_file(&file.path, what, remedy),
        )
    })
    .collect()
}

/// Removes exempted findings, and reports unused exemptions.
fn apply_exemptions(named: NamedFindings, exemptions: &[Exemption]) -> Vec<Finding> {
    let stale = exemptions
        .iter()
        // An exemption that is no longer needed would hide the next violation.
        .filter(|excuse| !named.iter().any(|(name, _)| name == excuse.what))
        .map(|excuse| {
            let what = format!(
                "{} is excused ({}) but needs no excuse",
                excuse.what, excuse.reason
            );
            Finding::on_file("xtask/src/tidy/exempt.rs", what, "remove the entry")
        });
    let stale: Vec<Finding> = stale.collect();
    let is_excused = |name: &str| exemptions.iter().any(|one| one.what == name);
    let left = named
        .into_iter()
        .filter(|(name, _)| !is_excused(name))
        .map(|(_, finding)| finding);
    left.chain(stale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: SizeExemptions = SizeExemptions {
        files: &[],
        functions: &[],
        big: &[],
    };

    fn lines(n: usize) -> String {
        "const A: u8 = 1;\n".repeat(n)
    }

    fn found(path: &str, text: &str, exemptions: SizeExemptions) -> Vec<String> {
        let workspace = Workspace::of(&[(path, text)]);
        let mut findings = check_files(&workspace, exemptions);
        findings.extend(check_functions(&workspace, exemptions));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_long_file_is_found_and_its_tests_do_not_count() {
        assert_eq!(found("crates/a/src/b.rs", &lines(801), NOBODY).len(), 1);
        assert_eq!(found("crates/a/src/b.rs", &lines(800), NOBODY).len(), 0);
        let with_tests = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            lines(700),
            lines(700)
        );
        assert_eq!(found("crates/a/src/b.rs", &with_tests, NOBODY).len(), 0);
        assert_eq!(
            found("crates/a/tests/it/main.rs", &lines(801), NOBODY).len(),
            0
        );
    }

    #[test]
    fn a_file_over_the_soft_limit_is_only_mentioned() {
        let workspace = Workspace::of(&[
            ("crates/a/src/b.rs", &lines(501)),
            ("crates/a/src/c.rs", ""),
        ]);
        assert_eq!(
            files_over_soft_limit(&workspace),
            [(501, "crates/a/src/b.rs")]
        );
        assert_eq!(check_files(&workspace, NOBODY), []);
    }

    #[test]
    fn a_long_function_is_found_wherever_it_stands() {
        let body = "    let _ = [1; 2];\n".repeat(99);
        for text in [
            format!("fn f(a: [u8; 2]) -> [u8; 2] {{\n{body}}}"),
            format!("impl A {{\npub(crate) async fn f<T>() where T: B {{\n{body}}}\n}}"),
        ] {
            let found = found("crates/a/src/b.rs", &text, NOBODY);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("`f` has 101 lines"), "{found:?}");
        }
        let declared = format!("trait A {{ fn f(&self); }}\nmod b {{\n{body}}}");
        assert_eq!(found("crates/a/src/b.rs", &declared, NOBODY).len(), 0);
    }

    #[test]
    fn a_crate_of_many_long_functions_is_found() {
        let functions = |count: usize, lines: usize| {
            let body = "    f();\n".repeat(lines - 2);
            format!("fn f() {{\n{body}}}\n").repeat(count)
        };
        let check = |long: usize, all: usize| {
            let text = functions(long, 41) + &functions(all - long, 30);
            found("crates/a/src/b.rs", &text, NOBODY).len()
        };
        assert_eq!(check(1, 20), 0);
        assert_eq!(check(2, 20), 1);
        assert_eq!(check(2, 19), 0);
    }

    #[test]
    fn a_big_file_is_found() {
        let text = "x".repeat((1 << 20) + 1);
        assert_eq!(found("crates/a/data/b.json", &text, NOBODY).len(), 1);
    }

    #[test]
    fn an_excuse_is_heard_and_a_stale_one_is_found() {
        const EXCUSED: SizeExemptions = SizeExemptions {
            files: &[Exemption {
                what: "crates/a/src/b.rs",
                reason: "one table",
            }],
            ..NOBODY
        };
        assert_eq!(found("crates/a/src/b.rs", &lines(801), EXCUSED).len(), 0);
        let stale = found("crates/a/src/b.rs", &lines(10), EXCUSED);
        assert!(stale[0].contains("needs no excuse"), "{stale:?}");
    }
}
