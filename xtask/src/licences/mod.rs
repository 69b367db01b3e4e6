//! `cargo xtask licences`: every dependency has a licence that `deny.toml` allows.
//!
//! `deny.toml` is the only list. This check needs no tool and no network beyond what a build needs; if cargo-deny is
//! installed, its checks of bans and sources run too. cargo-deny could check licences as well, but building it takes
//! several minutes on a build machine with two cores, so this check stays. Security advisories are not checked here,
//! because they change independently of this repository.

mod spdx;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::licences::spdx::SpdxExpression;
use crate::metadata::{Metadata, MetadataScope, Package};
use crate::shell;

const LIST: &str = "deny.toml";

/// The part of `deny.toml` that is read here.
#[derive(Debug, Deserialize)]
struct DenyConfig {
    licenses: LicenceRules,
}

#[derive(Debug, Deserialize)]
struct LicenceRules {
    allow: Vec<String>,
    /// Licences allowed for one crate only.
    #[serde(default)]
    exceptions: Vec<LicenceException>,
}

#[derive(Debug, Deserialize)]
struct LicenceException {
    #[serde(rename = "crate")]
    package: String,
    allow: Vec<String>,
}

/// Checks every package of the lock file, those for other platforms included.
///
/// # Errors
/// If a package's licence is missing, unreadable or not allowed; all such packages are listed.
pub(crate) fn check_licences() -> Result<()> {
    let text = fs::read_to_string(shell::workspace_root().join(LIST))
        .with_context(|| format!("cannot read {LIST}"))?;
    let rules: DenyConfig =
        toml::from_str(&text).with_context(|| format!("cannot understand {LIST}"))?;
    let metadata = Metadata::load(MetadataScope::Everything)?;
    let packages: Vec<&Package> = metadata
        .packages
        .iter()
        // Packages of this workspace have no source; they are not dependencies.
        .filter(|package| package.source.is_some())
        .collect();
    let faults: Vec<String> = packages
        .iter()
        .filter_map(|package| find_licence_fault(package, &rules))
        .collect();
    for fault in &faults {
        println!("{fault}");
    }
    if !faults.is_empty() {
        bail!(
            "{} of {} dependencies are not under allowed terms",
            faults.len(),
            packages.len()
        );
    }
    println!(
        "   {} dependencies: {}",
        packages.len(),
        summarize_licences(&packages)
    );
    run_cargo_deny()
}

/// Returns why this package is not allowed, and the remedy.
fn find_licence_fault(package: &Package, rules: &DenyConfig) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    // Licence files are not parsed: a person has to judge their terms.
    let Some(terms) = &package.license else {
        return Some(format!(
            "{name}: declares no licence; add an exception to {LIST} after reading it"
        ));
    };
    let expression = match SpdxExpression::parse(terms) {
        Ok(expression) => expression,
        Err(error) => {
            return Some(format!(
                "{name}: `{terms}` is not an SPDX expression ({error})"
            ));
        }
    };
    let is_ours = |exception: &&LicenceException| exception.package == package.name;
    let exceptions = rules.licenses.exceptions.iter().filter(is_ours);
    let allowed: Vec<&String> = rules
        .licenses
        .allow
        .iter()
        // An exception for one crate applies to no other.
        .chain(exceptions.flat_map(|exception| &exception.allow))
        .collect();
    let is_allowed =
        expression.is_satisfied(&|licence| allowed.iter().any(|allowed| *allowed == licence));
    (!is_allowed).then(|| {
        format!(
            "{name}: `{terms}` is not allowed; replace the dependency, or add the licence to {LIST}"
        )
    })
}

/// Counts each expression, most frequent first.
fn summarize_licences(packages: &[&Package]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for terms in packages
        .iter()
        .filter_map(|package| package.license.as_deref())
    {
        *counts.entry(terms).or_default() += 1;
    }
    let mut counts: Vec<(usize, &str)> = counts.into_iter().map(|(terms, n)| (n, terms)).collect();
    // Most frequent first; ties are sorted by name, so that every run prints the same.
    counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let words: Vec<String> = counts
        .iter()
        .map(|(n, terms)| format!("{n} {terms}"))
        .collect();
    words.join(", ")
}

fn run_cargo_deny() -> Result<()> {
    let mut installed = shell::cargo_command();
    installed.args(["deny", "--version"]);
    if !shell::can_run(installed) {
        // Not a failure: the tool is optional, and the licences are checked above without it.
        println!("   cargo-deny is not installed; bans and sources were not checked");
        return Ok(());
    }
    let mut deny = shell::cargo_command();
    deny.args([
        "deny",
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ]);
    shell::run_command(deny)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(terms: Option<&str>) -> Option<String> {
        let rules = "[licenses]\nallow = [\"MIT\", \"ISC\"]\n\
                     exceptions = [{ crate = \"odd\", allow = [\"Ring\"] }]";
        let package = Package {
            name: "odd".to_owned(),
            license: terms.map(str::to_owned),
            ..Package::default()
        };
        find_licence_fault(&package, &toml::from_str(rules).unwrap())
    }

    #[test]
    fn allowed_and_excepted_terms_pass() {
        assert_eq!(found(Some("MIT OR GPL-3.0-only")), None);
        assert_eq!(found(Some("Ring AND ISC")), None);
    }

    #[test]
    fn other_terms_missing_terms_and_nonsense_do_not() {
        assert!(found(Some("GPL-3.0-only")).unwrap().contains("not allowed"));
        assert!(
            found(Some("MIT AND GPL-3.0-only"))
                .unwrap()
                .contains("not allowed")
        );
        assert!(found(None).unwrap().contains("no licence"));
        assert!(found(Some("MIT OR")).unwrap().contains("not an SPDX"));
    }

    #[test]
    fn the_list_of_the_workspace_is_understood() {
        let text = fs::read_to_string(shell::workspace_root().join(LIST)).unwrap();
        let rules: DenyConfig = toml::from_str(&text).unwrap();
        assert!(rules.licenses.allow.contains(&"MIT".to_owned()));
    }
}
