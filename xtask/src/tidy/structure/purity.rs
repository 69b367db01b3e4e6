//! The pure crates do no I/O and use no clock, randomness, environment, thread or async runtime.
//!
//! This is the fast check: it matches names, so a comment or a test is never a finding, and code that does not compile
//! yet is still checked. The precise check is clippy, which resolves types: the root `clippy.toml` lists the same
//! things as disallowed, and every pure crate enables those lints by the line in `OPT_IN`, whose presence is checked
//! here. Neither sees what a dependency does inside; `crate_layers::IMPURE_LIBRARIES` lists forbidden dependencies.

use crate::metadata::Package;
use crate::tidy::files::paths::{self, Mention, MentionKind};
use crate::tidy::files::source::LexedSource;
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;
use crate::tidy::structure::crate_layers::{self, IMPURE_LIBRARIES};

/// The line that a pure crate's `lib.rs` must contain, for clippy.
pub(crate) const OPT_IN: &str =
    "#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]";

/// Paths that no pure crate may use, including everything below them.
const FORBIDDEN_PATHS: &[(&str, &str)] = &[
    ("std::fs", "take the bytes as a parameter"),
    ("std::net", "take the bytes as a parameter"),
    ("std::os", "take the value as a parameter"),
    ("std::env", "take the value as a parameter"),
    ("std::process", "return an error"),
    ("std::thread", "let the caller decide about threads"),
    ("std::time::Instant", "take the time as a parameter"),
    ("std::time::SystemTime", "take the time as a parameter"),
    ("std::io::stdin", "take a reader or bytes"),
    ("std::io::stdout", "return the text"),
    ("std::io::stderr", "return the text"),
    ("std::collections::HashMap", USE_ORDERED_MAP),
    ("std::collections::HashSet", USE_ORDERED_MAP),
    ("std::collections::hash_map", USE_ORDERED_MAP),
    ("std::hash::RandomState", USE_ORDERED_MAP),
    ("tokio", "leave async to the engine"),
    ("rand", "take ids and seeds as parameters"),
];

/// Single words that are forbidden anywhere, so that an import under another path does not hide them.
const FORBIDDEN_WORDS: &[(&str, &str)] = &[
    ("async", "leave async to the engine"),
    ("await", "leave async to the engine"),
    ("HashMap", USE_ORDERED_MAP),
    ("HashSet", USE_ORDERED_MAP),
    ("SystemTime", "take the time as a parameter"),
    ("Instant", "take the time as a parameter"),
];

const USE_ORDERED_MAP: &str = "use BTreeMap, IndexMap or Vec: the iteration order can reach bytes";

/// Checks the code and the dependencies of the pure crates.
pub(crate) fn check_purity(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace
        .packages
        .iter()
        .filter(|package| is_pure(&package.name))
    {
        findings.extend(check_dependencies(package));
    }
    for (file, source) in workspace
        .shipped_files()
        .filter(|(file, _)| is_in_pure_crate(file))
    {
        findings.extend(check_mentions(file, source));
        if file.path_in_src() == Some("lib.rs") {
            findings.extend(check_lint_opt_in(file));
        }
    }
    findings
}

fn is_pure(package: &str) -> bool {
    crate_layers::find_crate_rule(package).is_some_and(|room| room.pure)
}

fn is_in_pure_crate(file: &WorkspaceFile) -> bool {
    let name = file
        .crate_directory()
        .and_then(|home| home.strip_prefix("crates/"));
    name.is_some_and(|name| is_pure(&format!("contexture-{name}")))
}

fn check_dependencies(package: &Package) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", package.directory());
    let normal = package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind.is_none());
    normal
        .filter_map(|dependency| {
            let (name, why) = IMPURE_LIBRARIES
                .iter()
                .find(|(name, _)| *name == dependency.name)?;
            let what = format!(
                "`{}` is pure and depends on `{name}`, which {why}",
                package.name
            );
            Some(Finding::on_file(
                &manifest,
                what,
                "do that work in a crate above",
            ))
        })
        .collect()
}

fn check_mentions(file: &WorkspaceFile, source: &LexedSource) -> Vec<Finding> {
    let mut findings = Vec::new();
    for mention in paths::path_mentions(&source.code) {
        if let Some((name, remedy)) = find_forbidden_path(&mention) {
            let what = format!("a pure crate mentions `{name}`");
            let finding = Finding::on_line(&file.path, mention.line, what, remedy);
            // One line may name the same thing twice.
            if findings.last() != Some(&finding) {
                findings.push(finding);
            }
        }
    }
    findings
}

fn find_forbidden_path(mention: &Mention) -> Option<(&'static str, &'static str)> {
    let mut path = mention.segments.join("::");
    if let Some(rest) = path
        .strip_prefix("core::")
        .or_else(|| path.strip_prefix("alloc::"))
    {
        path = format!("std::{rest}");
    }
    let below = |banned: &str| {
        path.strip_prefix(banned)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    // `use std::collections::*` brings the hash maps in; a lone word such as a variable `rand` is not a path.
    let brings_maps =
        path == "std::collections" && matches!(mention.kind, MentionKind::Glob { .. });
    if brings_maps {
        return Some(("std::collections::*", USE_ORDERED_MAP));
    }
    let is_import = mention.kind != MentionKind::Code;
    let by_path = FORBIDDEN_PATHS
        .iter()
        .find(|(banned, _)| below(banned) && (is_import || mention.segments.len() > 1));
    by_path
        .or_else(|| {
            FORBIDDEN_WORDS
                .iter()
                .find(|(word, _)| mention.segments.iter().any(|s| s == word))
        })
        .copied()
}

fn check_lint_opt_in(file: &WorkspaceFile) -> Option<Finding> {
    // The line may be broken by rustfmt.
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let text = squeezed(file.text.as_deref().unwrap_or_default());
    (!text.contains(&squeezed(OPT_IN))).then(|| {
        Finding::on_file(
            &file.path,
            "a pure crate without clippy's list of disallowed things",
            format!("add `{OPT_IN}` below the module docs"),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::metadata::Dependency;
    use crate::shell;

    /// Returns the names found in one file of a pure crate.
    fn found(code: &str) -> Vec<String> {
        let workspace = Workspace::of(&[("crates/ir/src/a.rs", code)]);
        check_purity(&workspace)
            .into_iter()
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn each_impure_name_is_found() {
        for code in [
            "use std::fs;",
            "use std::{fmt, env};",
            "use std::time::{Duration, Instant};",
            "fn f() { std::process::exit(1) }",
            "fn f() { let _ = std::time::SystemTime::now(); }",
            "use std::collections::HashMap;",
            "use std::collections::{BTreeMap, hash_map::Entry};",
            "use std::collections::*;",
            "fn f(map: &other::HashSet<u8>) {}",
            "async fn f() {}",
            "fn f() { std::thread::spawn(|| ()); }",
            "fn f() { println!(\"{}\", std::env::args().count()); }",
            "use tokio::sync::Mutex;",
            "fn f() -> u8 { rand::random() }",
            "use core::net::IpAddr;",
        ] {
            assert_eq!(found(code).len(), 1, "{code}: {:?}", found(code));
        }
    }

    #[test]
    fn innocent_names_are_not() {
        for code in [
            "//! Never uses std::fs.\n/// Nor std::env.\nfn f() {}",
            "const TABLE: &str = include_str!(concat!(env!(\"OUT_DIR\"), \"/std::fs\"));",
            "use std::time::Duration;",
            "use std::collections::{BTreeMap, BTreeSet, VecDeque};",
            "fn f(rand: u8) -> u8 { rand }",
            "#[cfg(test)] mod tests { use std::collections::HashMap; use std::fs; }",
        ] {
            assert_eq!(found(code), Vec::<String>::new(), "{code}");
        }
    }

    #[test]
    fn crates_that_are_not_pure_may() {
        let workspace = Workspace::of(&[("crates/cli/src/a.rs", "use std::fs;")]);
        assert_eq!(check_purity(&workspace), []);
    }

    #[test]
    fn a_pure_crate_opts_in_to_clippys_list() {
        let check =
            |text: &str| check_purity(&Workspace::of(&[("crates/ir/src/lib.rs", text)])).len();
        assert_eq!(check("//! Docs.\nmod a;"), 1);
        assert_eq!(check(&format!("//! Docs.\n{OPT_IN}\nmod a;")), 0);
    }

    /// Compiles a file with clippy under the workspace's `clippy.toml`; returns its messages, or `None` without clippy.
    fn clippy(code: &str) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("sample.rs");
        std::fs::write(&file, format!("//! A sample.\n{code}\n")).unwrap();
        let mut command = Command::new("clippy-driver");
        command.args([
            "--crate-type",
            "lib",
            "--edition",
            "2024",
            "--emit",
            "metadata",
        ]);
        command.args([
            "-A",
            "clippy::disallowed_methods",
            "-A",
            "clippy::disallowed_types",
        ]);
        command.arg("--out-dir").arg(directory.path()).arg(&file);
        let output = command
            .env("CLIPPY_CONF_DIR", shell::workspace_root())
            .output()
            .ok()?;
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn clippy_bites_crates_that_opt_in_and_no_others() {
        // Not found by names alone: an alias of the module, a glob import of the type.
        let code = "use std::{collections::*, fs as disk, time as clock};\n\
                    /// Impure.\npub fn f() -> HashMap<u8, u8> {\n\
                    let _ = (disk::read(\"a\"), clock::Instant::now());\nHashMap::new()\n}";
        let Some(messages) = clippy(&format!("{OPT_IN}\n{code}")) else {
            println!("clippy is not installed: not tested");
            return;
        };
        for name in [
            "std::collections::HashMap",
            "std::fs::read",
            "std::time::Instant",
        ] {
            assert!(
                messages.contains(&format!("`{name}`")),
                "{name} in {messages}"
            );
        }
        assert_eq!(clippy(code).unwrap(), "");
        let ordered = "/// Pure.\npub fn f() -> std::collections::BTreeMap<u8, u8> { std::collections::BTreeMap::new() }";
        assert_eq!(clippy(&format!("{OPT_IN}\n{ordered}")).unwrap(), "");
    }

    #[test]
    fn impure_dependencies_are_found() {
        let with = |kind: Option<&str>| Package {
            name: "contexture-ir".to_owned(),
            dependencies: vec![Dependency {
                name: "rand".to_owned(),
                kind: kind.map(str::to_owned),
            }],
            ..Package::default()
        };
        assert_eq!(check_dependencies(&with(None)).len(), 1);
        assert_eq!(check_dependencies(&with(Some("dev"))), []);
    }
}
