//! `docs/api/<crate>.txt`: one line per public item of a library, so that reviews show changes of the public API.
//!
//! The files are written by `cargo xtask api` and checked by `cargo xtask tidy`. cargo-public-api would list generated
//! items too, but needs a nightly compiler and an installation on every build machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result};

use crate::shell;
use crate::tidy::files::source::Token;
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;
use crate::tidy::surface::public_items::{PublicItem, list_public_items};

const FOLDER: &str = "docs/api";
/// Programs and the module for Python, which no crate links to.
const NOT_LISTED: &[&str] = &["bindings/python", "crates/cli", "xtask"];

/// Writes the file of each library.
///
/// # Errors
/// If the workspace cannot be read, or a file cannot be written.
pub(crate) fn write_api_files() -> Result<()> {
    let folder = shell::workspace_root().join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {FOLDER}"))?;
    for (path, text) in render_api_files(&Workspace::load()?) {
        let full = shell::workspace_root().join(&path);
        fs::write(full, text).with_context(|| format!("cannot write {path}"))?;
        println!("   {path}");
    }
    Ok(())
}

/// Checks that the files are what `cargo xtask api` would write.
pub(crate) fn check_api_files(workspace: &Workspace) -> Vec<Finding> {
    let expected = render_api_files(workspace);
    let mut findings = Vec::new();
    for (path, text) in &expected {
        let stored = workspace.file_text(path).unwrap_or_default();
        let line = stored.lines().zip(text.lines()).position(|(a, b)| a != b);
        if stored != text {
            let line = line.unwrap_or_else(|| stored.lines().count().min(text.lines().count()));
            let what = "is not what the crate has";
            findings.push(Finding::on_line(
                path,
                line + 1,
                what,
                "run cargo xtask api",
            ));
        }
    }
    let stored = workspace.files.iter().map(|file| file.path.as_str());
    for path in stored.filter(|path| path.starts_with(FOLDER) && path.ends_with(".txt")) {
        if !expected.contains_key(path) {
            findings.push(Finding::on_file(path, "belongs to no library", "remove it"));
        }
    }
    findings
}

/// Returns path and text of the file of each library.
fn render_api_files(workspace: &Workspace) -> BTreeMap<String, String> {
    let mut crates: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (file, source) in workspace.shipped_files() {
        if let Some(directory) = file
            .crate_directory()
            .filter(|name| !NOT_LISTED.contains(name))
        {
            let items = list_public_items(&source.code);
            let lines = items.into_iter().map(|item| item.text);
            crates.entry(directory).or_default().extend(lines);
        }
    }
    let is_listed = |(directory, lines): &(&str, BTreeSet<String>)| {
        let root = format!("{directory}/src/lib.rs");
        !lines.is_empty() && workspace.file_text(&root).is_some()
    };
    crates
        .into_iter()
        .filter(is_listed)
        .map(|(directory, lines)| {
            let name = directory.trim_start_matches("crates/");
            let text: String = lines.into_iter().map(|line| line + "\n").collect();
            (format!("{FOLDER}/{name}.txt"), text)
        })
        .collect()
}

/// Reports public items whose name occurs in no other crate, document, example or test of the workspace, one per line.
///
/// Names are compared as words, so an unused item that shares its name with another is not found.
pub(crate) fn check_unused_items(workspace: &Workspace) -> Vec<Finding> {
    let words = words_by_user(workspace);
    let is_used = |name: &str, directory: &str| {
        words
            .get(name)
            .is_some_and(|users| users.iter().any(|user| *user != directory))
    };
    let mut crates: BTreeMap<&str, Vec<(&str, PublicItem)>> = BTreeMap::new();
    let mut associated: BTreeSet<&str> = BTreeSet::new();
    for (file, source) in workspace.shipped_files() {
        if let Some(directory) = file
            .crate_directory()
            .filter(|name| !NOT_LISTED.contains(name))
        {
            associated.extend(associated_types(&source.code));
            let items = list_public_items(&source.code).into_iter();
            let items = items.map(|item| (file.path.as_str(), item));
            crates.entry(directory).or_default().extend(items);
        }
    }
    let mut findings = Vec::new();
    for (directory, items) in &crates {
        let in_signatures = words_of_signatures(items);
        let traits = trait_names(items);
        for (path, item) in items {
            // A type in a public signature is used without being named elsewhere, and so is an associated type of a
            // trait implementation: `<Plan as Layer>::State`.
            let is_reached = in_signatures.contains(item.name.as_str())
                || associated.contains(item.name.as_str());
            // The methods of a trait are as public as the trait.
            let is_of_trait = item_owner(item).is_some_and(|owner| traits.contains(owner));
            if is_whole_item(item) && !is_reached && !is_of_trait && !is_used(&item.name, directory)
            {
                let what = format!("nothing outside the crate names `{}`", item.name);
                let remedy = "make it `pub(crate)`, or show it in a document or a test";
                findings.push(Finding::on_line(path, item.line, what, remedy));
            }
        }
    }
    findings
}

/// Returns the types of `type Error = ParseError;`, wherever they occur.
fn associated_types(code: &[Token]) -> impl Iterator<Item = &str> {
    code.windows(5).filter_map(|window| match window {
        [word, _, equals, given, end] => {
            let is_given = word.text == "type" && equals.text == "=" && end.text == ";";
            is_given.then_some(given.text.as_str())
        }
        _ => None,
    })
}

/// Returns the names of the public traits among these items.
fn trait_names<'i>(items: &'i [(&str, PublicItem)]) -> BTreeSet<&'i str> {
    let traits = items.iter().map(|(_, item)| item);
    let traits = traits.filter(|item| item.text.starts_with("trait "));
    traits.map(|item| item.name.as_str()).collect()
}

/// Returns `Guard` of `fn Guard::check(&self)`.
fn item_owner(item: &PublicItem) -> Option<&str> {
    let (_, declaration) = item.text.split_once(' ')?;
    let (owner, member) = declaration.split_once("::")?;
    member.starts_with(&item.name).then_some(owner)
}

/// Whether the item is a field or a variant, which is not checked apart from its type.
fn is_whole_item(item: &PublicItem) -> bool {
    ["fn", "const", "static", "type", "struct", "enum", "trait"]
        .iter()
        .any(|kind| item.text.starts_with(kind))
}

/// Returns the words of public signatures and fields, without the names that they declare.
fn words_of_signatures<'i>(items: &'i [(&str, PublicItem)]) -> BTreeSet<&'i str> {
    let mut words = BTreeSet::new();
    for (_, item) in items {
        let signature = match item.text.starts_with("fn ") {
            true => item.text.split_once('('),
            false => item.text.split_once(": "),
        };
        let types = signature.map(|(_, types)| types).unwrap_or_default();
        words.extend(types.split(|c: char| !c.is_alphanumeric() && c != '_'));
    }
    words
}

/// Returns for each word where it occurs: crates by their directory, other files by their path.
fn words_by_user(workspace: &Workspace) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut words: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in workspace.files.iter().filter(|file| is_user(file)) {
        let text = file.text.as_deref().unwrap_or_default();
        let is_source = file.path_in_src().is_some();
        let user = match file.crate_directory() {
            Some(directory) if is_source => directory,
            _ => file.path.as_str(),
        };
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            words.entry(word).or_default().insert(user);
        }
        if is_source {
            // Examples in documentation use an item like an outside caller.
            for line in text.lines().map(str::trim_start) {
                let example = line
                    .strip_prefix("/// ")
                    .or_else(|| line.strip_prefix("//! "));
                let shown = example.unwrap_or_default();
                for word in shown.split(|c: char| !c.is_alphanumeric() && c != '_') {
                    words.entry(word).or_default().insert("documentation");
                }
            }
        }
    }
    words
}

fn is_user(file: &WorkspaceFile) -> bool {
    let is_generated = file.path.starts_with(FOLDER) || file.path == "docs/renames.md";
    (file.is_rust() || file.path.ends_with(".md")) && !file.is_data() && !is_generated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let findings = check_api_files(&Workspace::of(files));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_file_that_is_not_current_is_found() {
        let code = ("crates/a/src/lib.rs", "pub fn f() {}");
        assert_eq!(found(&[code]).len(), 1);
        assert_eq!(found(&[code, ("docs/api/a.txt", "fn f()\n")]), [""; 0]);
        let both = found(&[code, ("docs/api/a.txt", "fn g()\n"), ("docs/api/b.txt", "")]);
        assert_eq!(both.len(), 2, "{both:?}");
    }

    #[test]
    fn programs_have_no_file() {
        assert_eq!(
            found(&[("crates/cli/src/lib.rs", "pub fn f() {}")]),
            [""; 0]
        );
        assert_eq!(found(&[("crates/a/src/main.rs", "pub fn f() {}")]), [""; 0]);
    }

    #[test]
    fn an_item_that_nobody_names_is_found() {
        let unused = |other: &str, text: &str| {
            let files = [
                ("crates/a/src/lib.rs", "pub fn ef() {} fn g() { ef() }"),
                (other, text),
            ];
            check_unused_items(&Workspace::of(&files)).len()
        };
        assert_eq!(unused("crates/a/src/b.rs", "fn h() { ef() }"), 1);
        assert_eq!(unused("crates/b/src/lib.rs", "fn h() { a::ef() }"), 0);
        assert_eq!(unused("crates/a/tests/it/main.rs", "ef()"), 0);
        assert_eq!(unused("docs/a.md", "`ef`"), 0);
        assert_eq!(unused("crates/a/src/b.rs", "/// ef();"), 0);
    }

    #[test]
    fn what_a_trait_brings_along_is_not_found() {
        let unused = |text: &str| {
            let files = [
                ("crates/a/src/lib.rs", text),
                ("crates/b/src/lib.rs", "fn h(t: impl a::Tee) {}"),
            ];
            check_unused_items(&Workspace::of(&files)).len()
        };
        assert_eq!(unused("pub trait Tee { fn ef(&self); }"), 0);
        assert_eq!(
            unused("pub struct Tee; impl Tee { pub fn ef(&self) {} }"),
            1
        );
        assert_eq!(
            unused("pub struct Es; impl a::Tee for u8 { type State = Es; }"),
            0
        );
        assert_eq!(unused("pub struct Es; type State = Vec<Es>;"), 1);
    }
}
