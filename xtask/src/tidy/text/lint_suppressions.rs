//! Nothing is left unfinished, and no lint or test is disabled without a reason.
//!
//! `todo!`, `unimplemented!` and `dbg!` must not be committed; a lint is suppressed, or a test ignored, only with a
//! reason.

use crate::tidy::files::source::{LexedSource, Token};
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

const LEFTOVER_MACROS: &[(&str, &str)] = &[
    ("todo", "finish it"),
    ("unimplemented", "finish it"),
    ("dbg", "take it out"),
];

/// Checks all Rust code, tests included.
pub(crate) fn check_suppressions(workspace: &Workspace) -> Vec<Finding> {
    workspace
        .rust_files()
        .flat_map(|(file, source)| check_file(file, source))
        .collect()
}

fn check_file(file: &WorkspaceFile, source: &LexedSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for at in 0..source.all_tokens.len() {
        let rest = source.all_tokens.get(at..).unwrap_or_default();
        findings.extend(
            find_leftover_macro(rest)
                .or_else(|| find_unexplained_attribute(rest))
                .map(|(line, what, remedy)| Finding::on_line(&file.path, line, what, remedy)),
        );
    }
    findings
}

type SuppressionFault = (usize, String, &'static str);

fn find_leftover_macro(tokens: &[Token]) -> Option<SuppressionFault> {
    let [name, bang, open, ..] = tokens else {
        return None;
    };
    let is_call = bang.text == "!" && matches!(open.text.as_str(), "(" | "[" | "{");
    let (word, remedy) = LEFTOVER_MACROS
        .iter()
        .find(|(word, _)| is_call && *word == name.text)?;
    Some((name.line, format!("`{word}!`"), remedy))
}

/// Reports `#[ignore]`, `#[allow(…)]`, `#![expect(…)]` and their `cfg_attr` forms, if they have no reason.
fn find_unexplained_attribute(tokens: &[Token]) -> Option<SuppressionFault> {
    let [hash, rest @ ..] = tokens else {
        return None;
    };
    let attribute = match rest {
        [bang, open, inside @ ..] if bang.text == "!" && open.text == "[" => inside,
        [open, inside @ ..] if open.text == "[" => inside,
        _ => return None,
    };
    if hash.text != "#" {
        return None;
    }
    let words = attribute_tokens(attribute);
    let has = |word: &str| words.iter().any(|token| token.text == word);
    if words.first().is_some_and(|first| first.text == "ignore") && !has("=") {
        return Some((
            hash.line,
            "a test is ignored without a reason".to_owned(),
            "write `#[ignore = \"why\"]`",
        ));
    }
    let suppresses = ["allow", "expect"].into_iter().find(|word| {
        words
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.text == *word && b.text == "("))
    })?;
    (!has("reason")).then(|| {
        let what = format!("`{suppresses}` without a reason");
        (hash.line, what, "write `#[expect(lint, reason = \"why\")]`")
    })
}

/// Returns the tokens up to the bracket that closes the attribute.
fn attribute_tokens(tokens: &[Token]) -> &[Token] {
    let mut depth = 0usize;
    let end = tokens.iter().position(|token| match token.text.as_str() {
        "[" => {
            depth += 1;
            false
        }
        "]" if depth == 0 => true,
        "]" => {
            depth -= 1;
            false
        }
        _ => false,
    });
    tokens
        .get(..end.unwrap_or(tokens.len()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let workspace = Workspace::of(&[("crates/a/src/b.rs", text)]);
        check_suppressions(&workspace)
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn leftovers_are_found_in_tests_too() {
        assert_eq!(found("fn f() { todo!() }"), ["`todo!`"]);
        assert_eq!(
            found("fn f() { unimplemented!(\"later\") }"),
            ["`unimplemented!`"]
        );
        assert_eq!(
            found("#[cfg(test)] mod tests { fn f() { dbg!(1); } }"),
            ["`dbg!`"]
        );
    }

    #[test]
    fn silence_without_a_reason_is_found() {
        assert_eq!(found("#[test] #[ignore] fn f() {}").len(), 1);
        assert_eq!(found("#[allow(dead_code)] fn f() {}").len(), 1);
        assert_eq!(found("#![expect(unused)]").len(), 1);
        assert_eq!(found("#[cfg_attr(test, allow(unused))] fn f() {}").len(), 1);
    }

    #[test]
    fn reasons_are_heard() {
        for text in [
            "#[test] #[ignore = \"soak\"] fn f() {}",
            "#[expect(dead_code, reason = \"read by the next version\")] fn f() {}",
            "fn todo(expect: u8) { x.expect(\"no attribute\") }",
            "// todo!() in a comment\nconst A: &str = \"dbg!(1)\";",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }
}
