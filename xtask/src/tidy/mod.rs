//! The rules of the code base that no compiler checks: layers, purity, sizes, modules, names, comments, documents.
//!
//! Each check is a function from the files of the workspace to findings, in a file of its own, with tests that show it
//! bite. `cargo xtask tidy` prints the findings; the test below makes them fail `cargo xtask test`. Rules listed in
//! `exempt::PENDING` are printed and fail nothing.

mod exempt;
mod files;
mod finding;
mod naming;
mod structure;
mod surface;
mod text;

use anyhow::{Result, bail};

use crate::tidy::exempt::PENDING;
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

/// A rule by name, so that it can be pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TidyRule {
    Layers,
    Purity,
    FileSizes,
    FunctionSizes,
    FileLayout,
    ModuleContents,
    ModuleCycles,
    InherentImpls,
    Names,
    NameCounts,
    FormatNames,
    Comments,
    DocComments,
    PendingDocComments,
    Signatures,
    Suppressions,
    CommittedText,
    Fixtures,
    Documents,
    CodeMapPaths,
    BehaviourTables,
    ApiFiles,
    UnusedItems,
}

pub(crate) use crate::tidy::surface::api_files::write_api_files;

type TidyCheck = fn(&Workspace) -> Vec<Finding>;

const CHECKS: &[(TidyRule, TidyCheck)] = &[
    (TidyRule::Layers, layers::check_layers),
    (TidyRule::Purity, purity::check_purity),
    (TidyRule::FileSizes, sizes::check_sizes),
    (TidyRule::FunctionSizes, sizes::check_function_sizes),
    (TidyRule::FileLayout, file_layout::check_file_layout),
    (TidyRule::ModuleContents, modules::check_modules),
    (TidyRule::ModuleCycles, module_cycles::check_module_cycles),
    (
        TidyRule::InherentImpls,
        inherent_impls::check_inherent_impls,
    ),
    (TidyRule::Names, names::check_names),
    (TidyRule::NameCounts, name_counts::check_name_counts),
    (TidyRule::FormatNames, name_counts::check_format_names),
    (TidyRule::Comments, comments::check_comments),
    (TidyRule::DocComments, doc_comments::check_doc_comments),
    (
        TidyRule::PendingDocComments,
        doc_comments::count_pending_doc_comments,
    ),
    (TidyRule::Signatures, signatures::check_signatures),
    (
        TidyRule::Suppressions,
        lint_suppressions::check_suppressions,
    ),
    (
        TidyRule::CommittedText,
        committed_text::check_committed_text,
    ),
    (TidyRule::Fixtures, fixtures::check_fixtures),
    (TidyRule::Documents, documents::check_documents),
    (TidyRule::CodeMapPaths, documents::check_code_map_paths),
    (TidyRule::BehaviourTables, behaviour::check_behaviour_tables),
    (TidyRule::ApiFiles, api_files::check_api_files),
    (TidyRule::UnusedItems, api_files::check_unused_items),
];

/// Prints every finding, what pending rules find, and the files worth a second look.
///
/// # Errors
/// When a rule that binds has a finding, or the workspace cannot be read.
pub(crate) fn run_checks() -> Result<()> {
    let workspace = Workspace::load()?;
    let findings = collect_findings(&workspace, Binding::Required);
    for finding in &findings {
        println!("{finding}");
    }
    for finding in collect_findings(&workspace, Binding::Pending) {
        println!("   pending: {finding}");
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

/// Whether findings of a rule fail the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    Required,
    Pending,
}

/// The findings of the rules that bind so, in order of their paths.
fn collect_findings(workspace: &Workspace, binding: Binding) -> Vec<Finding> {
    let is_wanted = |rule: &TidyRule| PENDING.contains(rule) == (binding == Binding::Pending);
    let mut findings: Vec<Finding> = CHECKS
        .iter()
        .filter(|(rule, _)| is_wanted(rule))
        .flat_map(|(_, check)| check(workspace))
        .collect();
    findings.sort();
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let findings = collect_findings(&Workspace::load().unwrap(), Binding::Required);
        let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(
            list.is_empty(),
            "{} things to mend:\n{}",
            list.len(),
            list.join("\n")
        );
    }
}
