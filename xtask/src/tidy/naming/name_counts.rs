//! Checks on names across lists of functions, types and files: verbs, shared names, repeated file names.
//!
//! Functions that do something have verbs as names. A fallible or async function named by a participle (`kept`, `said`)
//! sounds like a value instead of an action. Not here: names that are wrong anywhere (`names`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::tidy::exempt::{FORMAT_NAMERS, SHARED_TYPE_NAMES};
use crate::tidy::files::paths::is_name;
use crate::tidy::files::source::Token;
use crate::tidy::files::workspace::Workspace;
use crate::tidy::finding::Finding;
use crate::tidy::surface::public_items::{bracket_len, inherent_type};

/// Words that must not be the name of a function that returns `Result` or is `async`.
const AVOIDED_NAMES: &[&str] = &[
    "again",
    "ago",
    "aside",
    "away",
    "basis",
    "before",
    "begun",
    "behind",
    "belongs",
    "beside",
    "bound",
    "brought",
    "came",
    "done",
    "drawn",
    "driven",
    "found",
    "given",
    "goes",
    "gone",
    "half",
    "heard",
    "held",
    "kept",
    "known",
    "laid",
    "left",
    "lost",
    "made",
    "meant",
    "met",
    "needle",
    "news",
    "nowhere",
    "other",
    "owes",
    "paid",
    "pays",
    "said",
    "seen",
    "sent",
    "shown",
    "spent",
    "stood",
    "taken",
    "thought",
    "told",
    "together",
    "understood",
    "whereabouts",
    "whole",
    "whose",
    "wishes",
    "words",
    "written",
];
/// Verbs that end like participles.
const VERBS_IN_ED: &[&str] = &["embed", "exceed", "feed", "need", "seed", "shed", "speed"];
/// Number of types of one name above which the name counts as shared.
const TYPES_OF_ONE_NAME: usize = 3;
/// Maximum share of functions with a one-word name, not counting constructors and methods of foreign traits.
const ONE_WORD_PERCENT: usize = 45;
/// Number of functions below which a crate's share is not checked.
const FUNCTIONS_FOR_A_SHARE: usize = 20;
const TEST_NAME_LENGTH: usize = 60;
/// File names that a crate may have at most once; `words` and `document` only in crates about documents.
const STEMS_TO_USE_ONCE: &[&str] = &["words", "document", "entry", "call", "ledger", "history"];
const CRATE_OF_DOCUMENTS: &str = "crates/api";

/// Checks names of functions, types and files.
pub(crate) fn check_name_counts(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = function_names(workspace);
    findings.extend(shared_type_names(workspace));
    findings.extend(repeated_stems(workspace));
    findings.extend(long_test_names(workspace));
    findings
}

/// Checks that only the format folders in `wire`, and the files that are excused, name one provider's format.
pub(crate) fn check_format_names(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unused: BTreeSet<&str> = FORMAT_NAMERS.iter().map(|one| one.what).collect();
    for (file, source) in workspace.shipped_files() {
        let is_free = matches!(
            file.crate_directory(),
            None | Some("crates/wire" | "crates/testdata")
        );
        let Some(line) = format_name_line(&source.code).filter(|_| !is_free) else {
            continue;
        };
        let path = file.path.as_str();
        if !unused.remove(path) {
            findings.push(Finding::on_line(
                path,
                line,
                "names a provider's format",
                "ask the format's specification (`Format::spec`) in wire",
            ));
        }
    }
    // Without the file the exemption cannot be checked: workspaces in tests have none of these files.
    let stale = unused
        .into_iter()
        .filter(|path| workspace.file_text(path).is_some());
    findings.extend(stale.map(|path| {
        let what = "is excused for naming formats and names none";
        Finding::on_file(path, what, "take it out of `exempt.rs`")
    }));
    findings
}

/// Returns the first line of code on which a provider's format is named.
fn format_name_line(code: &[Token]) -> Option<usize> {
    let mut windows = code.windows(4);
    windows.find_map(|window| match window {
        [format, colon, _, provider] => {
            (format.text == "Format" && colon.text == ":" && is_provider(&provider.text))
                .then_some(format.line)
        }
        _ => None,
    })
}

/// Whether a variant names a provider; constants are not variants.
fn is_provider(name: &str) -> bool {
    let is_variant = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    is_variant && !["Ui", "Items"].contains(&name)
}

/// Reports fallible participles, and crates in which most functions have a one-word name.
fn function_names(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (file, source) in workspace.shipped_files() {
        let Some(directory) = file.crate_directory() else {
            continue;
        };
        let of_traits = trait_implementations(&source.code);
        for (at, window) in source.code.windows(2).enumerate() {
            let [keyword, name] = window else { continue };
            // The type `fn(A) -> B` has no name after `fn`.
            if keyword.text != "fn" || !is_name(&name.text) {
                continue;
            }
            let is_named_here =
                name.text != "new" && !of_traits.iter().any(|range| range.contains(&at));
            let (one_word, all) = counts.entry(directory).or_default();
            *all += usize::from(is_named_here);
            *one_word += usize::from(is_named_here && !name.text.contains('_'));
            let before = at.checked_sub(1).and_then(|before| source.code.get(before));
            let is_async = before.is_some_and(|token| token.text == "async");
            let rest = source.code.get(at..).unwrap_or_default();
            if is_avoided(&name.text) && (is_async || returns_result(rest)) {
                let what = format!("function `{}` can fail or waits", name.text);
                findings.push(Finding::on_line(
                    &file.path,
                    name.line,
                    what,
                    "name it by a verb",
                ));
            }
        }
    }
    findings.extend(
        counts
            .into_iter()
            .filter(|(_, (one_word, all))| {
                *all >= FUNCTIONS_FOR_A_SHARE && *one_word * 100 > *all * ONE_WORD_PERCENT
            })
            .map(|(directory, (one_word, all))| {
                let what = format!("{one_word} of {all} functions have a name of one word");
                Finding::on_file(directory, what, "say what they do: a verb and its object")
            }),
    );
    findings
}

/// Returns the token ranges of the bodies of `impl Trait for Type`.
fn trait_implementations(code: &[Token]) -> Vec<Range<usize>> {
    let mut bodies = Vec::new();
    for (at, token) in code.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| code.get(before));
        // Elsewhere the word starts a type: `f: impl Fn()`.
        let begins_item = before
            .is_none_or(|token| matches!(token.text.as_str(), "}" | "{" | ";" | "]" | "unsafe"));
        if token.text != "impl" || !begins_item {
            continue;
        }
        let head = code.get(at + 1..).unwrap_or_default();
        let Some(open) = head.iter().position(|token| token.text == "{") else {
            continue;
        };
        let (head, body) = head.split_at(open);
        if inherent_type(head).is_none() {
            let start = at + 1 + open;
            bodies.push(start..start + bracket_len(body));
        }
    }
    bodies
}

fn is_avoided(name: &str) -> bool {
    let is_participle = !name.contains('_') && name.ends_with("ed") && !VERBS_IN_ED.contains(&name);
    is_participle || AVOIDED_NAMES.contains(&name)
}

/// Whether the signature that starts here has `Result` in its return type.
fn returns_result(tokens: &[Token]) -> bool {
    let mut depth = 0usize;
    let mut is_return_type = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "{" | ";" if depth == 0 => return false,
            // `->` is two tokens; inside brackets it belongs to `Fn(A) -> B`.
            ">" if depth == 0 => {
                let before = at.checked_sub(1).and_then(|before| tokens.get(before));
                is_return_type |= before.is_some_and(|token| token.text == "-");
            }
            "Result" if is_return_type => return true,
            _ => {}
        }
    }
    false
}

/// Reports names that more than three types share, if there are too many such names.
fn shared_type_names(workspace: &Workspace) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (file, source) in workspace.shipped_files() {
        let mut depth = 0usize;
        for window in source.code.windows(2) {
            let [keyword, name] = window else { continue };
            match keyword.text.as_str() {
                // Types inside functions and modules are local and may have any name.
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "struct" | "enum" | "union" | "trait" | "type"
                    if depth == 0 && is_name(&name.text) =>
                {
                    places.entry(&name.text).or_default().push(&file.path);
                }
                _ => {}
            }
        }
    }
    places.retain(|_, paths| paths.len() > TYPES_OF_ONE_NAME);
    if places.len() <= SHARED_TYPE_NAMES {
        return Vec::new();
    }
    let shared = places.len();
    places
        .into_iter()
        .filter_map(|(name, paths)| {
            let what = format!(
                "`{name}` is the name of {} types; {shared} names are shared so, {SHARED_TYPE_NAMES} may be",
                paths.len()
            );
            let first = paths.first()?;
            Some(Finding::on_file(first, what, "name it after what it holds"))
        })
        .collect()
}

fn repeated_stems(workspace: &Workspace) -> Vec<Finding> {
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut findings = Vec::new();
    for (file, _) in workspace.shipped_files() {
        let stem = file.name().strip_suffix(".rs").unwrap_or_default();
        let Some(directory) = file
            .crate_directory()
            .filter(|name| *name != CRATE_OF_DOCUMENTS)
        else {
            continue;
        };
        if STEMS_TO_USE_ONCE.contains(&stem) && !seen.insert((directory, stem)) {
            let what = format!("a second file `{stem}.rs` in {directory}");
            findings.push(Finding::on_file(&file.path, what, "say whose it is"));
        }
    }
    findings
}

/// Returns names of functions marked `#[test]` or `#[tokio::test]`.
fn long_test_names(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in workspace.rust_files() {
        let mut is_test = false;
        for window in source.all_tokens.windows(2) {
            let [token, next] = window else { continue };
            match (token.text.as_str(), next.text.as_str()) {
                ("test", "]" | "(") => is_test = true,
                ("fn", name) if is_test => {
                    is_test = false;
                    if name.len() > TEST_NAME_LENGTH {
                        let what =
                            format!("the name of test `{name}` has {} characters", name.len());
                        let remedy = "name subject, condition and result in 60";
                        findings.push(Finding::on_line(&file.path, next.line, what, remedy));
                    }
                }
                ("{" | "}" | ";", _) => is_test = false,
                _ => {}
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check_name_counts(&Workspace::of(files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn found_in(text: &str) -> usize {
        found(&[("crates/a/src/b.rs", text)]).len()
    }

    #[test]
    fn participles_that_fail_or_wait_are_found() {
        assert_eq!(found_in("fn kept() -> Result<A> {}"), 1);
        assert_eq!(found_in("impl A { async fn stored(self) {} }"), 1);
        assert_eq!(found_in("fn told(f: impl Fn(A) -> B) -> Option<A> {}"), 0);
        assert_eq!(found_in("fn feed() -> Result<A> {} fn kept() -> A {}"), 0);
        assert_eq!(found_in("fn stored_calls() -> Result<A> {}"), 0);
    }

    #[test]
    fn a_crate_of_one_word_functions_is_found() {
        let text = |short: usize| "fn f() {}\n".repeat(short) + &"fn f_g() {}\n".repeat(20 - short);
        assert_eq!(found_in(&text(9)), 0);
        assert_eq!(found_in(&text(10)), 1);
        let of_a_trait = format!("impl A<f> for B {{ {} }}", "fn f() {}\n".repeat(10));
        assert_eq!(found_in(&(text(9) + &of_a_trait)), 0);
        let of_a_type = format!("impl A {{ {} }}", "fn f(f: impl F) {}\n".repeat(10));
        assert_eq!(found_in(&(text(9) + &of_a_type)), 1);
        let constructors = format!("impl A {{ {} }}", "fn new() {}\n".repeat(10));
        assert_eq!(found_in(&(text(9) + &constructors)), 0);
    }

    #[test]
    fn names_of_many_types_are_found_where_there_are_many() {
        let text = |names: usize| -> String {
            (0..names)
                .map(|n| format!("struct A{n};\n").repeat(4))
                .collect()
        };
        assert_eq!(found_in(&text(12)), 0);
        assert_eq!(found_in(&text(13)), 13);
    }

    #[test]
    fn a_second_file_of_one_stem_is_found() {
        let twice = |name: &str, stem: &str| {
            let paths = [
                format!("crates/{name}/src/b/{stem}.rs"),
                format!("crates/{name}/src/c/{stem}.rs"),
            ];
            let [first, second] = &paths;
            found(&[(first, ""), (second, "")]).len()
        };
        assert_eq!(twice("a", "entry"), 1);
        assert_eq!(twice("a", "stream"), 0);
        assert_eq!(twice("api", "document"), 0);
    }

    #[test]
    fn long_names_of_tests_are_found() {
        let test = |length: usize| format!("#[tokio::test] async fn {}() {{}}", "a".repeat(length));
        let path = "crates/a/tests/it/b.rs";
        assert_eq!(found(&[(path, &test(60))]).len(), 0);
        assert_eq!(found(&[(path, &test(61))]).len(), 1);
        assert_eq!(
            found(&[(path, &test(61).replace("#[tokio::test]", ""))]).len(),
            0
        );
    }

    #[test]
    fn formats_named_outside_wire_are_found() {
        let check = |path: &str, text: &str| -> Vec<String> {
            let findings = check_format_names(&Workspace::of(&[(path, text)]));
            findings.iter().map(ToString::to_string).collect()
        };
        let named = "fn f() {}\nfn g() { h(Format::Anthropic); }\n";
        let found = check("crates/a/src/b.rs", named);
        assert!(
            found.len() == 1 && found[0].contains("crates/a/src/b.rs:2"),
            "{found:?}"
        );
        assert!(check("crates/wire/src/b.rs", named).is_empty());
        let others = [
            "fn f() { g(Format::Ui, Format::Items, Format::ALL); }",
            "/// As `Format::Gemini` does.\nfn f() {} // Format::Gemini\n",
            "#[cfg(test)]\nmod tests { fn f() { g(Format::Gemini); } }",
        ];
        for text in others {
            assert!(check("crates/a/src/b.rs", text).is_empty(), "{text}");
        }
        let excused = FORMAT_NAMERS[0].what;
        assert!(check(excused, named).is_empty());
        assert_eq!(check(excused, "fn f() {}").len(), 1);
    }
}
