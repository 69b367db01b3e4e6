//! Every file documents its purpose, and `lib.rs` is a table of contents.
//!
//! A `lib.rs` contains docs, attributes, `mod` and explicit `use`: no logic, no glob exports. The same applies to all
//! files of the façade crate except `open.rs`.

use crate::tidy::files::paths::{self, MentionKind};
use crate::tidy::files::source::{LexedSource, Token};
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;
use crate::tidy::structure::crate_layers::{FACADE, FACADE_CODE};

/// Keywords that define something.
const DEFINITIONS: &[&str] = &[
    "fn",
    "impl",
    "struct",
    "enum",
    "union",
    "trait",
    "static",
    "const",
    "type",
    "macro_rules",
];

/// Checks module docs of all source files, and the content of the tables of contents.
pub(crate) fn check_modules(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in workspace
        .files
        .iter()
        .filter(|file| file.is_rust() && !file.is_data())
    {
        findings.extend(check_lexes(file));
        if file.path_in_src().is_some() || file.path.contains("/benches/") {
            findings.extend(check_module_docs(file));
        }
    }
    for (file, source) in workspace.shipped_files() {
        let is_facade =
            file.crate_directory() == Some(FACADE) && file.path_in_src() != Some(FACADE_CODE);
        if is_facade || file.path_in_src() == Some("lib.rs") {
            findings.extend(check_only_reexports(file, source));
        }
    }
    findings
}

fn check_lexes(file: &WorkspaceFile) -> Option<Finding> {
    let error = file.lex_error.as_ref()?;
    Some(Finding::on_file(
        &file.path,
        format!("is not Rust ({error})"),
        "mend it, or move it to fixtures",
    ))
}

fn check_module_docs(file: &WorkspaceFile) -> Option<Finding> {
    let first = file.text.as_deref()?.lines().next().unwrap_or_default();
    let documented = first
        .strip_prefix("//!")
        .is_some_and(|rest| !rest.trim().is_empty());
    (!documented).then(|| {
        let remedy = "begin with `//!`: purpose, invariants, and what is not here";
        Finding::on_line(&file.path, 1, "has no module docs", remedy)
    })
}

fn check_only_reexports(file: &WorkspaceFile, source: &LexedSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    let defined: Vec<&Token> = definition_tokens(&source.code).collect();
    if let Some(first) = defined.first() {
        let what = format!(
            "a table of contents defines {} things, first a `{}`",
            defined.len(),
            first.text
        );
        let remedy = "move them to files of their own and re-export them";
        findings.push(Finding::on_line(&file.path, first.line, what, remedy));
    }
    for mention in paths::path_mentions(&source.code) {
        if mention.kind == (MentionKind::Glob { public: true }) {
            let what = format!("`pub use {}::*`", mention.segments.join("::"));
            findings.push(Finding::on_line(
                &file.path,
                mention.line,
                what,
                "name what is exported",
            ));
        }
    }
    findings
}

/// Defining words outside attributes (`#![cfg_attr(…, type_length_limit)]` defines nothing).
fn definition_tokens(code: &[Token]) -> impl Iterator<Item = &Token> {
    let mut brackets = 0usize;
    code.iter().filter(move |token| {
        match token.text.as_str() {
            "[" => brackets += 1,
            "]" => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        brackets == 0 && DEFINITIONS.contains(&token.text.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check_modules(&Workspace::of(&[(path, text)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_file_without_docs_is_found() {
        assert_eq!(found("crates/a/src/b.rs", "fn f() {}").len(), 1);
        assert_eq!(found("crates/a/src/b.rs", "//!\nfn f() {}").len(), 1);
        assert_eq!(
            found("crates/a/src/b.rs", "//! Does b.\nfn f() {}"),
            Vec::<String>::new()
        );
        assert_eq!(found("crates/a/benches/b.rs", "fn f() {}").len(), 1);
    }

    #[test]
    fn logic_and_globs_in_lib_are_found() {
        for text in [
            "fn f() {}",
            "struct S;",
            "pub use a::*;",
            "pub mod prelude { pub use a::*; }",
        ] {
            let found = found("crates/a/src/lib.rs", &format!("//! A.\n{text}"));
            assert_eq!(found.len(), 1, "{text}: {found:?}");
        }
        let contents = "//! A.\n#![doc(html_root_url = \"x\")]\nmod a;\npub mod b;\npub use a::{B, c as d};\n\
                        #[cfg(test)] mod tests { fn f() {} }";
        assert_eq!(found("crates/a/src/lib.rs", contents), Vec::<String>::new());
    }

    #[test]
    fn the_facade_is_only_contents_in_every_file() {
        assert_eq!(
            found("crates/contexture/src/prelude.rs", "//! P.\nfn f() {}").len(),
            1
        );
        for elsewhere in ["contexture/src/open.rs", "engine/src/prelude.rs"] {
            assert_eq!(
                found(&format!("crates/{elsewhere}"), "//! P.\nfn f() {}").len(),
                0
            );
        }
        assert_eq!(
            found("crates/contexture/src/open/more.rs", "//! P.\nfn f() {}").len(),
            1
        );
    }

    #[test]
    fn what_does_not_lex_is_found() {
        assert!(found("crates/a/src/b.rs", "//! B.\nfn f() {")[0].contains("is not Rust"));
    }
}
