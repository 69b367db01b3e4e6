//! Crates depend only on lower layers, and reserved libraries only occur in their crates.
//!
//! The table is in `crate_layers`. Not here: what the code inside a crate may use (`purity`).

use crate::metadata::{Dependency, Package};
use crate::tidy::files::workspace::Workspace;
use crate::tidy::finding::Finding;
use crate::tidy::structure::crate_layers::{self, CrateRule, FOR_TESTS, RESERVED_LIBRARIES};

/// Checks every dependency of every package of the workspace.
pub(crate) fn check_layers(workspace: &Workspace) -> Vec<Finding> {
    let ours: Vec<&str> = workspace
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    workspace
        .packages
        .iter()
        .flat_map(|package| check_package(package, &ours))
        .collect()
}

fn check_package(package: &Package, ours: &[&str]) -> Vec<Finding> {
    let manifest = format!("{}/Cargo.toml", package.directory());
    let mut findings = Vec::new();
    let Some(room) = crate_layers::find_crate_rule(&package.name) else {
        let what = format!("`{}` has no room", package.name);
        findings.push(Finding::on_file(
            &manifest,
            what,
            "give it a floor in xtask/src/tidy/structure/crate_layers.rs",
        ));
        return findings;
    };
    let expected = crate_layers::package_directory(&package.name);
    if package.directory() != expected {
        let what = format!("`{}` does not live in {expected}", package.name);
        findings.push(Finding::on_file(
            &manifest,
            what,
            "name packages `contexture-` + directory",
        ));
    }
    for dependency in &package.dependencies {
        let fault = if ours.contains(&dependency.name.as_str()) {
            check_internal_dependency(room, dependency)
        } else {
            check_reserved_library(room, dependency)
        };
        findings.extend(fault.map(|(what, remedy)| Finding::on_file(&manifest, what, remedy)));
    }
    findings
}

/// Returns what is wrong with a dependency on another crate of the workspace, and the remedy.
fn check_internal_dependency(
    room: &CrateRule,
    dependency: &Dependency,
) -> Option<(String, String)> {
    // A crate without a rule is reported elsewhere.
    let to = crate_layers::find_crate_rule(&dependency.name)?;
    let what = |why: &str| format!("`{}` depends on `{}`, {why}", room.package, to.package);
    let for_tests = FOR_TESTS.contains(&to.package);
    // Tests may depend on their own layer: a development dependency makes no cycle between libraries.
    if dependency.kind.as_deref() == Some("dev") {
        let allowed = to.layer <= room.layer || for_tests;
        return (!allowed).then(|| {
            (
                what("which stands above it, for its tests"),
                "move the test up to where both are known".into(),
            )
        });
    }
    // A crate for tests may depend on another one.
    if for_tests && !FOR_TESTS.contains(&room.package) {
        return Some((
            what("which is for tests"),
            "make it a development dependency".into(),
        ));
    }
    if let Some(only) = room.allowed_dependencies {
        return (!only.contains(&to.package)).then(|| {
            (
                what("outside what it may know"),
                format!("it may know {}", only.join(", ")),
            )
        });
    }
    let allowed = to.layer < room.layer || room.allowed_peers.contains(&to.package);
    (!allowed).then(|| {
        let where_ = if to.layer == room.layer {
            "on the same floor"
        } else {
            "which stands above it"
        };
        (what(where_), "move what both need to a lower floor".into())
    })
}

/// Returns what is wrong with a dependency on a library, and the remedy.
fn check_reserved_library(room: &CrateRule, dependency: &Dependency) -> Option<(String, String)> {
    if dependency.kind.as_deref() == Some("dev") {
        return None;
    }
    let name = dependency.name.as_str();
    let rule = RESERVED_LIBRARIES
        .iter()
        .find(|rule| rule.libraries.contains(&name) && !rule.crates.contains(&room.package))?;
    let what = format!("`{}` depends on `{name}`, but {}", room.package, rule.why);
    Some((
        what,
        format!("move that work to {}", rule.crates.join(" or ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let directory = match name {
            "contexture" => "contexture",
            name => name.trim_start_matches("contexture-"),
        };
        let manifest = shell::workspace_root()
            .join("crates")
            .join(directory)
            .join("Cargo.toml");
        Package {
            name: name.to_owned(),
            manifest_path: manifest.to_string_lossy().into_owned(),
            dependencies: dependencies
                .iter()
                .map(|(name, kind)| Dependency {
                    name: (*name).to_owned(),
                    kind: kind.map(str::to_owned),
                })
                .collect(),
            ..Package::default()
        }
    }

    /// The findings for a package with one dependency.
    fn faults(from: &str, to: &str, kind: Option<&str>) -> String {
        let findings = check_layers(&Workspace {
            packages: vec![package(from, &[(to, kind)]), package(to, &[])],
            ..Workspace::default()
        });
        // The other package may be a library without a rule, which is not checked here.
        findings
            .iter()
            .filter(|finding| !finding.what.ends_with("has no room"))
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn arrows_down_are_fine() {
        for (from, to) in [
            ("contexture-wire", "contexture-ir"),
            ("contexture-sessions", "contexture-wire"),
            ("contexture-store-sqlite", "contexture-store"),
            ("contexture-runs", "contexture-engine"),
            ("contexture", "contexture-store-sqlite"),
            ("contexture-server", "contexture-mcp"),
        ] {
            assert_eq!(faults(from, to, None), "", "{from} → {to}");
        }
    }

    #[test]
    fn arrows_up_and_across_are_found() {
        for (from, to, why) in [
            ("contexture-ir", "contexture-wire", "above"),
            ("contexture-wire", "contexture-tokens", "same floor"),
            ("contexture-engine", "contexture-runs", "same floor"),
            ("contexture-compile", "contexture-store", "same floor"),
            ("contexture-store-sqlite", "contexture-wire", "may know"),
            ("contexture-engine", "contexture-store-testkit", "for tests"),
        ] {
            let text = faults(from, to, None);
            assert!(text.contains(why), "{from} → {to}: {text:?}");
        }
    }

    #[test]
    fn tests_may_use_neighbours_and_the_testkit_but_nothing_above() {
        assert_eq!(
            faults("contexture-store", "contexture-store-testkit", Some("dev")),
            ""
        );
        assert_eq!(
            faults("contexture-compile", "contexture-sessions", Some("dev")),
            ""
        );
        assert!(faults("contexture-wire", "contexture-engine", Some("dev")).contains("above"));
    }

    #[test]
    fn a_crate_without_a_room_is_found() {
        let workspace = Workspace {
            packages: vec![package("contexture-attic", &[])],
            ..Workspace::default()
        };
        let findings = check_layers(&workspace);
        assert!(
            findings[0]
                .to_string()
                .contains("`contexture-attic` has no room"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_package_lives_in_the_directory_of_its_name() {
        let mut moved = package("contexture-wire", &[]);
        moved.manifest_path = moved.manifest_path.replace("wire", "wires");
        let findings = check_layers(&Workspace {
            packages: vec![moved],
            ..Workspace::default()
        });
        assert!(
            findings[0].what.contains("does not live in crates/wire"),
            "{findings:?}"
        );
    }

    #[test]
    fn reserved_libraries_stay_in_their_rooms() {
        let alone = |from: &str, to: &str, kind| {
            check_package(&package(from, &[(to, kind)]), &[from]).len()
        };
        assert_eq!(alone("contexture-engine", "rusqlite", None), 1);
        assert_eq!(alone("contexture-store-sqlite", "rusqlite", None), 0);
        assert_eq!(alone("contexture-store", "anyhow", None), 1);
        assert_eq!(alone("contexture-server", "reqwest", None), 1);
        assert_eq!(alone("contexture-cli", "rusqlite", Some("dev")), 0);
    }
}
