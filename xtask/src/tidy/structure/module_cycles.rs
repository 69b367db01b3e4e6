//! The dependencies between the top-level modules of a crate have no cycles.
//!
//! A module is a folder or a file directly under `src`; `lib.rs`, `main.rs` and `bin/` are the crate's root and no
//! module. An edge leads from the module that contains a path to the module the path begins with: `crate::x::…`,
//! `super::x::…` where `super` reaches the root, and names that the root re-exports from `x`. Files inside one module
//! may depend on each other, and tests on everything.
//!
//! Paths are read from tokens, without the compiler. Not here: calls of methods whose `impl` block is in another
//! module; `inherent_impls` forbids those blocks for the types that had them.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::files::paths::{self, Mention, MentionKind};
use crate::tidy::files::source::LexedSource;
use crate::tidy::files::workspace::{Workspace, WorkspaceFile};
use crate::tidy::finding::Finding;

/// The first path by which one module depends on another.
struct Evidence {
    path: String,
    line: usize,
    symbol: String,
}

/// Edges between a crate's modules, with the first evidence of each.
type ModuleGraph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Evidence>>;

/// Reports every group of modules that depend on one another, with one finding per edge.
pub(crate) fn check_module_cycles(workspace: &Workspace) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<(&WorkspaceFile, &LexedSource)>> = BTreeMap::new();
    for (file, source) in workspace.shipped_files() {
        if let Some(directory) = file.crate_directory() {
            crates.entry(directory).or_default().push((file, source));
        }
    }
    crates
        .into_values()
        .flat_map(|files| cycle_findings(&module_graph(&files)))
        .collect()
}

/// Returns the top-level module of a path below `src`; `None` for the root and for separate programs.
fn top_level_module(path_in_src: &str) -> Option<&str> {
    let (first, is_folder) = match path_in_src.split_once('/') {
        Some((folder, _)) => (folder, true),
        None => (path_in_src.strip_suffix(".rs")?, false),
    };
    // A folder may be called `main`; then it is a module.
    let is_root = matches!(first, "lib" | "main") && !is_folder;
    (!is_root && first != "bin").then_some(first)
}

/// Returns how many `super` lead from the file's own module to the crate's root.
fn depth_below_root(path_in_src: &str) -> usize {
    let folders = path_in_src.matches('/').count();
    folders + usize::from(!path_in_src.ends_with("/mod.rs"))
}

fn module_graph<'a>(files: &[(&'a WorkspaceFile, &LexedSource)]) -> ModuleGraph<'a> {
    let modules: BTreeSet<&str> = files
        .iter()
        .filter_map(|(file, _)| top_level_module(file.path_in_src()?))
        .collect();
    let reexports = root_reexports(files, &modules);
    let mut graph = ModuleGraph::new();
    for (file, source) in files {
        let Some((path, from)) = file
            .path_in_src()
            .and_then(|path| Some((path, top_level_module(path)?)))
        else {
            continue;
        };
        for mention in paths::path_mentions(&source.code) {
            let Some(name) = name_at_root(&mention, depth_below_root(path)) else {
                continue;
            };
            let target = modules
                .get(name)
                .or_else(|| reexports.get(name))
                .copied()
                .filter(|target| *target != from);
            if let Some(to) = target {
                graph
                    .entry(from)
                    .or_default()
                    .entry(to)
                    // The first occurrence is enough: whoever removes the edge finds the others by compiling.
                    .or_insert_with(|| Evidence {
                        path: file.path.clone(),
                        line: mention.line,
                        symbol: mention.segments.join("::"),
                    });
            }
        }
    }
    graph
}

/// Returns the segment that a path names directly under the crate's root, if it begins there.
fn name_at_root(mention: &Mention, depth: usize) -> Option<&str> {
    let is_super = |segment: &&String| *segment == "super";
    let skipped = match mention.segments.first()?.as_str() {
        "crate" => 1,
        "super" => {
            // Each inline module around the path is one more level to climb.
            let levels = mention.segments.iter().take_while(is_super).count();
            (levels == depth + mention.inline_modules.len()).then_some(levels)?
        }
        _ => return None,
    };
    mention.segments.get(skipped).map(String::as_str)
}

/// Returns the names that `lib.rs` or `main.rs` imports from its own modules, with the module of each.
fn root_reexports<'a>(
    files: &[(&'a WorkspaceFile, &LexedSource)],
    modules: &BTreeSet<&'a str>,
) -> BTreeMap<String, &'a str> {
    let mut names = BTreeMap::new();
    let roots = files
        .iter()
        .filter(|(file, _)| matches!(file.path_in_src(), Some("lib.rs" | "main.rs")));
    for mention in roots.flat_map(|(_, source)| paths::path_mentions(&source.code)) {
        let MentionKind::Import { name, .. } = &mention.kind else {
            continue;
        };
        let mut segments = mention.segments.iter().map(String::as_str);
        let first = segments.find(|segment| !matches!(*segment, "crate" | "self"));
        if let Some(module) = first.and_then(|first| modules.get(first)) {
            names.insert(name.clone(), *module);
        }
    }
    names
}

/// Returns one finding for each edge inside a group of modules that reach one another.
fn cycle_findings(graph: &ModuleGraph<'_>) -> Vec<Finding> {
    // A crate has a few dozen modules, so computing reachability for each is cheap.
    let reachable: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|module| (*module, reachable_modules(graph, module)))
        .collect();
    let reaches = |from: &str, to: &str| reachable.get(from).is_some_and(|set| set.contains(to));
    let mut findings = Vec::new();
    for (from, targets) in graph {
        for (to, evidence) in targets.iter().filter(|(to, _)| reaches(to, from)) {
            let group: Vec<&str> = graph
                .keys()
                .filter(|module| reaches(from, module) && reaches(module, from))
                .copied()
                .collect();
            let what = format!(
                "module `{from}` names `{to}` ({}), and they are in one cycle: {}",
                evidence.symbol,
                group.join(", ")
            );
            let remedy = "move what is needed below both, or what needs it above both";
            findings.push(Finding::on_line(
                &evidence.path,
                evidence.line,
                what,
                remedy,
            ));
        }
    }
    findings
}

/// Returns every module that `start` depends on, directly or not; `start` itself only if there is a cycle.
fn reachable_modules<'a>(graph: &ModuleGraph<'a>, start: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&str> = vec![start];
    while let Some(module) = waiting.pop() {
        for target in graph.get(module).into_iter().flat_map(BTreeMap::keys) {
            // Each module is expanded once, so cycles terminate.
            if found.insert(*target) {
                waiting.push(target);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of a crate, given below `crates/a/src`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<String> = files
            .iter()
            .map(|(path, _)| format!("crates/a/src/{path}"))
            .collect();
        let files: Vec<(&str, &str)> = paths
            .iter()
            .zip(files)
            .map(|(path, (_, text))| (path.as_str(), *text))
            .collect();
        check_module_cycles(&Workspace::of(&files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn modules_that_need_each_other_are_reported_edge_by_edge() {
        let found = found(&[
            ("a/mod.rs", "use crate::b::B;"),
            ("b.rs", "\nfn f() { super::c::f() }"),
            ("c/deep.rs", "use super::super::{x, a::A};"),
            ("d.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found[0].starts_with("crates/a/src/a/mod.rs:1: module `a` names `b` (crate::b::B)"),
            "{found:?}"
        );
        assert!(found[1].contains("one cycle: a, b, c"), "{found:?}");
    }

    #[test]
    fn names_that_the_root_reexports_are_followed() {
        let found = found(&[
            (
                "lib.rs",
                "mod a; mod b; pub use a::A; pub use b::{B as C, D};",
            ),
            ("a.rs", "use crate::C; pub struct A(C);"),
            ("b.rs", "use crate::A; pub struct B(A);"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn files_of_one_module_may_know_each_other() {
        let found = found(&[
            (
                "a/mod.rs",
                "use crate::a::x::X; mod inner { use super::y::Y; }",
            ),
            ("a/x.rs", "use crate::a::y::Y;"),
            ("a/y.rs", "use super::x::X; use crate::b::B;"),
            ("b.rs", "mod inner { use super::a; }"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn tests_programs_and_comments_are_left_out() {
        let found = found(&[
            ("a.rs", "use crate::b::B; // crate::c::C"),
            ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
            (
                "c.rs",
                "/// See [`crate::a`].\nconst TEXT: &str = \"crate::a\";",
            ),
            ("bin/tool.rs", "use crate::a::A;"),
            ("main.rs", "use crate::a::A;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
