//! The bill of materials (SBOM): what the command is made of, as CycloneDX 1.5 in JSON.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::dist::{Arguments, PACKAGE};
use crate::metadata::Metadata;
use crate::shell;
use crate::tools::CYCLONEDX;

/// Writes the bill of materials of the command: its crates for this platform and these features.
///
/// # Errors
/// If cargo-cyclonedx cannot be built, fails or writes no bill for the command.
pub(crate) fn write_bill(
    metadata: &Metadata,
    arguments: &Arguments,
    target: &str,
    bill: &Path,
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
    let mut is_copied = false;
    for package in &metadata.packages {
        let beside = shell::workspace_root()
            .join(package.directory())
            .join(&file);
        if !beside.is_file() {
            continue;
        }
        if package.name == PACKAGE {
            // Where this machine has the crates is nobody's business.
            let root = format!("{}/", shell::workspace_root().display());
            fs::write(bill, fs::read_to_string(&beside)?.replace(&root, ""))?;
            is_copied = true;
        }
        // Those of the other crates say nothing about the command.
        fs::remove_file(&beside)?;
    }
    written?;
    if !is_copied {
        bail!("cargo-cyclonedx wrote no bill for {PACKAGE}");
    }
    println!("{}", bill.display());
    Ok(())
}
