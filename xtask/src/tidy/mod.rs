//! The rules of the code base that no compiler checks: layers, purity, sizes, modules, names, comments, documents.
//!
//! Each check is a function from the files of the workspace to findings, in a file of its own, with tests that prove
//! that it finds violations. `cargo xtask tidy` prints the findings; the test below makes `cargo xtask test` fail on
//! them.

mod exempt;
mod files;
mod finding;
mod naming;
mod structure;
mod surface;
mod text;

use anyhow::{Result, bail};

use crate::tidy::files::workspace::Workspace;
use crate::tidy::finding::Finding;
use crate::tidy::naming::{name_counts, names, signatures};
use crate::tidy::structure::{
    file_layout, inherent_impls, layers, module_cycles, modules, purity, sizes,
};
use crate::tidy::surface::api_files;
use crate::tidy::text::{
    behaviour, comments, committed_text, doc_comments, documents, fixtures, lint_suppressions,
};

pub(crate) use crate::tidy::surface::api_files::write_api_files;

type TidyCheck = fn(&Workspace) -> Vec<Finding>;

const CHECKS: &[TidyCheck] = &[
    layers::check_layers,
    purity::check_purity,
    sizes::check_sizes,
    sizes::check_function_sizes,
    file_layout::check_file_layout,
    modules::check_modules,
    module_cycles::check_module_cycles,
    inherent_impls::check_inherent_impls,
    names::check_names,
    name_counts::check_name_counts,
    name_counts::check_format_names,
    comments::check_comments,
    doc_comments::check_doc_comments,
    signatures::check_signatures,
    lint_suppressions::check_suppressions,
    committed_text::check_committed_text,
    fixtures::check_fixtures,
    documents::check_documents,
    documents::check_code_map_paths,
    behaviour::check_behaviour_tables,
    api_files::check_api_files,
    api_files::check_unused_items,
];

/// Prints every finding, and the files that should be reviewed.
///
/// # Errors
/// If there is a finding, or the workspace cannot be read.
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

/// Returns the findings of all rules, in order of their paths.
fn collect_findings(workspace: &Workspace) -> Vec<Finding> {
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(workspace)).collect();
    findings.sort();
    findings.dedup();
    findings
}
