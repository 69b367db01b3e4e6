//! The house rules that no compiler checks: layers, purity, sizes, module docs, circles, names, words, fixtures, papers, tests that papers name.
//!
//! Each check is a function from the files of the workspace to findings, in a file of its own, with tests that show it
//! bite. `cargo xtask tidy` prints the findings; the test below makes them fail `cargo xtask test`.

mod behaviour;
mod circles;
mod documents;
mod exempt;
mod finding;
mod fixtures;
mod layers;
mod modules;
mod names;
mod paths;
mod purity;
mod rooms;
mod signatures;
mod silence;
mod sizes;
mod source;
mod words;
mod workspace;

use anyhow::{Result, bail};

use crate::tidy::finding::Finding;
use crate::tidy::workspace::Workspace;

type TidyCheck = fn(&Workspace) -> Vec<Finding>;

const CHECKS: &[TidyCheck] = &[
    layers::check_layers,
    purity::check_purity,
    sizes::check_sizes,
    modules::check_modules,
    circles::check_module_cycles,
    names::check_names,
    signatures::check_signatures,
    silence::check_suppressions,
    words::check_committed_text,
    fixtures::check_fixtures,
    documents::check_documents,
    behaviour::check_behaviour_tables,
];

/// Prints every finding and what is worth a second look.
///
/// # Errors
/// When there is a finding, or the workspace cannot be read.
pub(crate) fn run_checks() -> Result<()> {
    let workspace = Workspace::load()?;
    let findings = collect_findings(&workspace);
    for finding in &findings {
        println!("{finding}");
    }
    let long = sizes::files_over_soft_limit(&workspace);
    if !long.is_empty() {
        let list: Vec<String> = long
            .iter()
            .map(|(lines, path)| format!("{path} ({lines})"))
            .collect();
        println!("   long, worth splitting: {}", list.join(", "));
    }
    match findings.len() {
        0 => {
            println!("   {} files, nothing to mend", workspace.files.len());
            Ok(())
        }
        1 => bail!("1 thing to mend"),
        n => bail!("{n} things to mend"),
    }
}

fn collect_findings(workspace: &Workspace) -> Vec<Finding> {
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(workspace)).collect();
    findings.sort();
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let findings = collect_findings(&Workspace::load().unwrap());
        let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(
            list.is_empty(),
            "{} things to mend:\n{}",
            list.len(),
            list.join("\n")
        );
    }
}
