//! Imports between the files of a crate form no circle: a file knows only what lies below it.
//!
//! An edge leads from the file that names something to the file that *defines* it. A re-export is followed to its
//! target and is no edge of its own, so `use crate::Item` leads past `lib.rs` to the file of `Item`, and a parent may
//! pass on its children's names without knowing them. `mod child;` is no edge either.
//!
//! Paths are read from tokens, without the compiler: what a glob or a macro brings in is seen only when the path is
//! written out. That is enough to find circles people write.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::finding::Finding;
use crate::tidy::paths::{self, Mention, MentionKind, is_name};
use crate::tidy::source::Token;
use crate::tidy::workspace::{Workspace, WorkspaceFile};

/// Reports one circle for each knot of files that know each other.
pub(crate) fn check_module_cycles(workspace: &Workspace) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<Module<'_>>> = BTreeMap::new();
    for (file, source) in workspace.shipped_files() {
        if let Some((home, module)) = file.crate_directory().zip(Module::new(file, &source.code)) {
            crates.entry(home).or_default().push(module);
        }
    }
    crates
        .into_values()
        .flat_map(|modules| ModuleGraph::new(modules).find_cycles())
        .collect()
}

/// A file as a module of its crate.
struct Module<'a> {
    path: &'a str,
    name: Vec<String>,
    mentions: Vec<Mention>,
    /// Names of the items the file defines at its top level, and macros anywhere.
    defines: BTreeSet<&'a str>,
    /// Names that occur in code, outside `use`.
    used_names: BTreeSet<String>,
}

impl<'a> Module<'a> {
    /// Nothing for files that are crates of their own.
    fn new(file: &'a WorkspaceFile, code: &'a [Token]) -> Option<Self> {
        let below = file.path_in_src()?.strip_suffix(".rs")?;
        if below.starts_with("bin/") {
            return None;
        }
        let mut name: Vec<String> = below.split('/').map(str::to_owned).collect();
        if name.last().is_some_and(|last| last == "mod") || below == "lib" || below == "main" {
            name.pop();
        }
        let mentions = paths::path_mentions(code);
        let in_code = mentions
            .iter()
            .filter(|mention| mention.kind == MentionKind::Code);
        let used = in_code
            .filter_map(|mention| mention.segments.first().cloned())
            .collect();
        Some(Self {
            path: &file.path,
            name,
            mentions,
            defines: defined_names(code),
            used_names: used,
        })
    }
}

const DEFINING: &[&str] = &[
    "struct",
    "enum",
    "union",
    "trait",
    "type",
    "fn",
    "const",
    "static",
    "macro_rules",
];

fn defined_names(code: &[Token]) -> BTreeSet<&str> {
    let mut depth = 0usize;
    let mut names = BTreeSet::new();
    for (at, token) in code.iter().enumerate() {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            word if DEFINING.contains(&word) && (depth == 0 || word == "macro_rules") => {
                let after = code
                    .get(at + 1..)
                    .unwrap_or_default()
                    .iter()
                    .map(|token| token.text.as_str());
                names.extend(after.take(2).find(|text| is_name(text) && *text != "mut"));
            }
            _ => {}
        }
    }
    names
}

/// An edge, with the line it comes from.
type Edges = BTreeMap<usize, usize>;

struct ModuleGraph<'a> {
    modules: Vec<Module<'a>>,
    by_name: BTreeMap<Vec<String>, usize>,
}

impl<'a> ModuleGraph<'a> {
    fn new(modules: Vec<Module<'a>>) -> Self {
        let mut by_name = BTreeMap::new();
        for (at, module) in modules.iter().enumerate() {
            // Beside a `lib.rs`, a `main.rs` is a crate of its own.
            if !(module.name.is_empty() && module.path.ends_with("/main.rs")) {
                by_name.insert(module.name.clone(), at);
            }
        }
        if let Some(main) = modules
            .iter()
            .position(|module| module.path.ends_with("/src/main.rs"))
        {
            by_name.entry(Vec::new()).or_insert(main);
        }
        Self { modules, by_name }
    }

    fn find_cycles(&self) -> Vec<Finding> {
        let edges: Vec<Edges> = (0..self.modules.len())
            .map(|at| self.module_edges(at))
            .collect();
        let mut reported = BTreeSet::new();
        let mut findings = Vec::new();
        for start in 0..self.modules.len() {
            if let Some(circle) = shortest_cycle(&edges, start)
                && circle.iter().all(|at| !reported.contains(at))
            {
                reported.extend(circle.iter().copied());
                findings.extend(self.cycle_finding(&edges, &circle));
            }
        }
        findings
    }

    fn cycle_finding(&self, edges: &[Edges], circle: &[usize]) -> Option<Finding> {
        let first = self.modules.get(*circle.first()?)?;
        let mut text = String::from("imports form a circle: ");
        let next = circle.iter().skip(1).chain(circle.first());
        let mut line = 0;
        for (from, to) in circle.iter().zip(next) {
            let at = edges.get(*from)?.get(to).copied()?;
            if line == 0 {
                line = at;
            }
            let name = self.modules.get(*from)?.path;
            let name = name.rsplit_once("/src/").map_or(name, |(_, name)| name);
            text.push_str(&format!("{name}:{at} → "));
        }
        text.push_str("the first");
        Some(Finding::on_line(
            first.path,
            line,
            text,
            "move what both need into a file below both",
        ))
    }

    /// The files that this one knows, each with the first line that names it.
    fn module_edges(&self, at: usize) -> Edges {
        let mut edges = Edges::new();
        let Some(module) = self.modules.get(at) else {
            return edges;
        };
        for mention in &module.mentions {
            let passes_on = match &mention.kind {
                MentionKind::Import { name, public } => {
                    *public && !module.used_names.contains(name)
                }
                MentionKind::Glob { public } => *public,
                MentionKind::Code => false,
            };
            if passes_on {
                continue;
            }
            if let Some(target) = self
                .absolute_path(module, mention)
                .and_then(|path| self.defining_module(&path))
                && target != at
            {
                edges.entry(target).or_insert(mention.line);
            }
        }
        edges
    }

    /// The path from the crate's root, or nothing when it leads out of the crate or nowhere we know.
    fn absolute_path(&self, module: &Module<'_>, mention: &Mention) -> Option<Vec<String>> {
        let mut base: Vec<String> = module
            .name
            .iter()
            .chain(&mention.inline_modules)
            .cloned()
            .collect();
        let mut segments = mention.segments.as_slice();
        match segments.first()?.as_str() {
            "crate" => {
                base.clear();
                segments = segments.get(1..)?;
            }
            "self" => segments = segments.get(1..)?,
            "super" => {
                while let Some((first, rest)) = segments.split_first()
                    && first == "super"
                {
                    base.pop()?;
                    segments = rest;
                }
            }
            // A path that begins with a child module; a lone word is a local name.
            child => {
                base.truncate(module.name.len());
                base.push(child.to_owned());
                let is_path = segments.len() > 1 || mention.kind != MentionKind::Code;
                if !is_path || !self.by_name.contains_key(&base) {
                    return None;
                }
                segments = segments.get(1..)?;
            }
        }
        base.extend(segments.iter().cloned());
        Some(base)
    }

    /// The file that defines what the path names.
    fn defining_module(&self, path: &[String]) -> Option<usize> {
        self.follow_reexports(path, &mut BTreeSet::new())
    }

    fn follow_reexports(&self, path: &[String], seen: &mut BTreeSet<Vec<String>>) -> Option<usize> {
        // Re-exports may go in circles themselves.
        if !seen.insert(path.to_vec()) {
            return None;
        }
        let known = (0..=path.len())
            .rev()
            .find(|n| path.get(..*n).is_some_and(|p| self.by_name.contains_key(p)))?;
        let at = *self.by_name.get(path.get(..known)?)?;
        let Some(name) = path.get(known) else {
            return Some(at);
        };
        let module = self.modules.get(at)?;
        if module.defines.contains(name.as_str()) {
            return Some(at);
        }
        let rest = path.get(known + 1..).unwrap_or_default();
        for mention in module
            .mentions
            .iter()
            .filter(|mention| mention.inline_modules.is_empty())
        {
            let through = match &mention.kind {
                MentionKind::Import { name: local, .. } if local == name => {
                    self.absolute_path(module, mention)
                }
                MentionKind::Glob { .. } => self.resolve_glob(module, mention, name),
                _ => None,
            };
            if let Some(mut through) = through {
                through.extend(rest.iter().cloned());
                return self.follow_reexports(&through, seen).or(Some(at));
            }
        }
        Some(at)
    }

    /// The name below a glob's module, if that module defines it.
    fn resolve_glob(
        &self,
        module: &Module<'_>,
        mention: &Mention,
        name: &str,
    ) -> Option<Vec<String>> {
        let mut path = self.absolute_path(module, mention)?;
        let target = self.modules.get(*self.by_name.get(&path)?)?;
        path.push(name.to_owned());
        target.defines.contains(name).then_some(path)
    }
}

/// The shortest way from a file back to itself.
fn shortest_cycle(edges: &[Edges], start: usize) -> Option<Vec<usize>> {
    let mut before: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for next in edges.get(at)?.keys() {
            if *next == start {
                let mut circle = vec![at];
                let mut at = at;
                while at != start {
                    at = *before.get(&at)?;
                    circle.push(at);
                }
                circle.reverse();
                return Some(circle);
            }
            if !before.contains_key(next) {
                before.insert(*next, at);
                queue.push_back(*next);
            }
        }
    }
    None
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
    fn two_files_that_import_each_other_are_a_circle() {
        let found = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "\nuse crate::a::A;\npub struct B;"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("a.rs:1 → b.rs:2 → the first"),
            "{found:?}"
        );
    }

    #[test]
    fn a_circle_of_three_is_reported_once() {
        let found = found(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "fn f() { crate::b::f() }"),
            ("b.rs", "pub fn f() { super::c::f() }"),
            ("c.rs", "use super::a; pub fn f() { a::f() }"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn the_way_through_lib_is_seen() {
        let found = found(&[
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
            ("a.rs", "use crate::B; pub struct A(B);"),
            ("b.rs", "use crate::A; pub struct B(A);"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].contains("lib.rs"), "{found:?}");
    }

    #[test]
    fn child_and_parent_that_use_each_other_are_a_cycle() {
        let parent = "mod child; pub use child::f; pub struct P; ";
        let child = "use super::P; pub fn f(_: P) {}";
        let lib = ("lib.rs", "mod parent;");
        let only_passes_on = [lib, ("parent.rs", parent), ("parent/child.rs", child)];
        assert_eq!(found(&only_passes_on), Vec::<String>::new());
        let calls = format!("{parent} fn g() {{ f(P) }}");
        assert_eq!(
            found(&[lib, ("parent.rs", &calls), ("parent/child.rs", child)]).len(),
            1
        );
        let calls = "mod child; pub struct P; fn g() { child::f(P) }";
        assert_eq!(
            found(&[lib, ("parent/mod.rs", calls), ("parent/child.rs", child)]).len(),
            1
        );
    }

    #[test]
    fn siblings_through_their_parent_are_not_a_circle() {
        let found = found(&[
            ("lib.rs", "mod p;"),
            (
                "p/mod.rs",
                "mod a; mod b; pub use a::A; use b::B; fn f(_: B) {}",
            ),
            ("p/a.rs", "pub struct A;"),
            ("p/b.rs", "use super::A; pub struct B(A);"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn tests_may_look_up() {
        let found = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            (
                "b.rs",
                "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
            ),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn super_inside_an_inline_module_is_the_file_itself() {
        let found = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B; mod inner { use super::B; }"),
            ("b.rs", "pub struct B; mod inner { fn f(_: super::B) {} }"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
