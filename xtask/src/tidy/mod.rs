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

type Check = fn(&Workspace) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    layers::check,
    purity::check,
    sizes::check,
    modules::check,
    circles::check,
    names::check,
    signatures::check,
    silence::check,
    words::check,
    fixtures::check,
    documents::check,
    behaviour::check,
];

/// Prints every finding and what is worth a second look.
///
/// # Errors
/// When there is a finding, or the workspace cannot be read.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let findings = check(&workspace);
    for finding in &findings {
        println!("{finding}");
    }
    let long = sizes::worth_a_look(&workspace);
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

fn check(workspace: &Workspace) -> Vec<Finding> {
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
        let findings = check(&Workspace::load().unwrap());
        let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(
            list.is_empty(),
            "{} things to mend:\n{}",
            list.len(),
            list.join("\n")
        );
    }
}
