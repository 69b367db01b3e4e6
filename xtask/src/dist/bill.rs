//! The bills of materials (SBOM): what the command and the module for Python are made of, as CycloneDX 1.5 in JSON.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::dist::Arguments;
use crate::metadata::Metadata;
use crate::shell;
use crate::tools::CYCLONEDX;

/// Writes the bills of materials of the command and of the module: their crates for this platform and these features.
///
/// # Errors
/// If cargo-cyclonedx cannot be built, fails or writes no bill for one of them.
pub(crate) fn write_bills(
    metadata: &Metadata,
    arguments: &Arguments,
    target: &str,
    bills: [(&str, &Path); 2],
) -> Result<()> {
    // A name that nobody else gives a file: the tool writes one beside every manifest of the workspace.
    let name = format!("contexture-bill-{}", std::process::id());
    let file = format!("{name}.json");
    let mut command = CYCLONEDX.find_or_build(&metadata.target_directory)?;
    command.args(["--format", "json", "--spec-version", "1.5", "--quiet"]);
    command.args(["--target", target, "--override-filename", &name]);
    if let Some(features) = &arguments.features {
        command.args(["--features", features]);
    }
    let manifest = shell::workspace_root().join("crates/cli/Cargo.toml");
    command.arg("--manifest-path").arg(manifest);
    let again = shell::command_line(&command);
    let written = shell::run_step("bill of materials", &again, || shell::run_command(command));
    let mut copied = Vec::new();
    for package in &metadata.packages {
        let beside = shell::workspace_root()
            .join(package.directory())
            .join(&file);
        if !beside.is_file() {
            continue;
        }
        if let Some((name, bill)) = bills.iter().find(|(name, _)| *name == package.name) {
            // Where this machine has the crates is nobody's business.
            let root = format!("{}/", shell::workspace_root().display());
            fs::write(bill, fs::read_to_string(&beside)?.replace(&root, ""))?;
            copied.push(*name);
        }
        // Those of the other crates say nothing about what is shipped.
        fs::remove_file(&beside)?;
    }
    written?;
    for (name, bill) in bills {
        if !copied.contains(&name) {
            bail!("cargo-cyclonedx wrote no bill for {name}");
        }
        println!("{}", bill.display());
    }
    Ok(())
}
